#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "vkml/core/tensor.h"

namespace vkml {

/// The tensors of one pass, in device memory: however many there are, a kernel takes one address. See
/// multi_tensor_args.h.
class TensorTable {
  public:
    static constexpr std::size_t kAddresses = 6;

    /// Starts anew. What device memory holds stays for the case that nothing changes.
    void clear();
    /// One more tensor of `count` elements, with what belongs to it: 0 for nothing.
    void add(const std::array<Address, kAddresses>& addresses, std::int64_t count);
    /// The table on the device; copied there only if it differs from the last one. In a capture it is copied once, not
    /// at every replay.
    const Tensor& upload(Device device);

    std::uint32_t entries() const { return entries_; }
    /// Workgroups of the pass. Throws Error beyond 2^32.
    std::uint32_t groups() const;

  private:
    std::uint32_t entries_ = 0;
    std::uint64_t groups_ = 0;
    std::vector<std::uint64_t> words_, uploaded_;
    Tensor table_;
};

}  // namespace vkml
