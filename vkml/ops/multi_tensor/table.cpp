#include "vkml/ops/multi_tensor/table.h"

#include "vkml/ops/copy/copy.h"
#include "vkml/ops/multi_tensor/multi_tensor_args.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {

void TensorTable::clear() {
    entries_ = 0;
    groups_ = 0;
    words_.clear();
}

void TensorTable::add(const std::array<Address, kAddresses>& addresses, std::int64_t count) {
    static_assert(kAddresses == kTableCount && kTableFirstGroup == kTableCount + 1);
    words_.insert(words_.end(), addresses.begin(), addresses.end());
    words_.insert(words_.end(), {static_cast<std::uint64_t>(count), groups_});
    entries_++;
    groups_ += ceil_div(static_cast<std::uint64_t>(count), kTableGroupElements);
}

const Tensor& TensorTable::upload(Device device) {
    if (table_.defined() && words_ == uploaded_) return table_;
    const Unrecorded once(stream(device));
    table_ = from_host(words_.data(), {static_cast<std::int64_t>(words_.size())}, DType::i64, device);
    uploaded_ = words_;
    return table_;
}

std::uint32_t TensorTable::groups() const {
    check<Error>(groups_ < (std::uint64_t{1} << 32), "multi-tensor pass: expected fewer than 2^44 elements, got more");
    return static_cast<std::uint32_t>(groups_);
}

}  // namespace vkml
