#include "vkml/ops/copy/copy.h"

#include <vector>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/strided.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

Tensor packed_copy(const Tensor& input) {
    Tensor out = empty_like(input);
    copy_strided(out, input, false);
    return out;
}

bool overlaps(const Tensor& a, const Tensor& b) { return a.storage() && a.storage() == b.storage(); }

}  // namespace

Tensor contiguous(const Tensor& input) { return input.is_contiguous() ? input : clone(input); }

Tensor clone(const Tensor& input) {
    return record("clone", packed_copy(input), {input}, keep_nothing,
                  [](const Backward& b) -> Grads { return {b.grad()}; });
}

void copy_into(const Tensor& target, const Tensor& source) {
    check<DTypeError>(target.dtype() == source.dtype(), "copy_: expected ", target.dtype(), ", got ", source.dtype());
    common_device("copy_", {&target, &source});
    check(broadcast_shapes("copy_", target.shape(), source.shape()) == target.shape(),
          "copy_: expected a shape that broadcasts to ", target.shape(), ", got ", source.shape());
    check<Error>(!may_self_overlap(target.layout()),
                 "copy_: expected a target whose elements are distinct, got an expanded one");
    if (target.numel() == 0) return;
    Tensor from = source.view(expand(source.layout(), target.shape()));
    if (target.is_contiguous() && !overlaps(target, from))
        copy_strided(target, from, false);
    else {
        if (!from.is_contiguous() || overlaps(target, from)) from = packed_copy(from);
        copy_strided(from, target, true);
    }
    wrote_in_place(target);
}

Tensor to_device(const Tensor& input, Device device) {
    if (input.device() == device) return input;
    Tensor out = empty(input.shape(), input.dtype(), device);
    if (input.numel() > 0) {
        const Tensor packed = input.is_contiguous() ? input : packed_copy(input);
        const std::size_t offset = static_cast<std::size_t>(packed.offset()) * itemsize(packed.dtype());
        if (device.is_cpu()) {
            stream_of(packed).download(out.storage()->host, packed.storage(), offset, packed.nbytes());
        } else if (input.device().is_cpu()) {
            stream(device).upload(out.storage(), 0, static_cast<const std::byte*>(packed.storage()->host) + offset,
                                  packed.nbytes());
        } else {
            std::vector<std::byte> through(packed.nbytes());
            stream_of(packed).download(through.data(), packed.storage(), offset, through.size());
            stream(device).upload(out.storage(), 0, through.data(), through.size());
        }
    }
    const Device home = input.device();
    return record("to", out, {input}, keep_nothing,
                  [home](const Backward& b) -> Grads { return {to_device(b.grad(), home)}; });
}

Tensor from_host(const void* data, const Shape& shape, DType dtype, Device device) {
    Tensor out = empty(shape, dtype, device);
    if (out.numel() > 0) stream(device).upload(out.storage(), 0, data, out.nbytes());
    return out;
}

void to_host(const Tensor& input, void* data) {
    if (input.numel() == 0) return;
    const Tensor packed = input.is_contiguous() ? input : packed_copy(input);
    stream_of(packed).download(data, packed.storage(),
                               static_cast<std::size_t>(packed.offset()) * itemsize(packed.dtype()), packed.nbytes());
}

}  // namespace vkml
