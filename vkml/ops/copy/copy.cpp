#include "vkml/ops/copy/copy.h"

#include <vector>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
// Element counts inside one dispatch are 32-bit; larger tensors go in pieces of their outermost axis.
constexpr std::int64_t kLargestDispatch = std::int64_t{1} << 31;

struct Sides {
    Address packed, strided;
    Tensor packed_block, strided_block;
};

void launch_pieces(Stream& on, const Sides& sides, const Shape& shape, const Strides& strides, std::size_t item,
                   bool scatter) {
    if (numel(shape) > kLargestDispatch) {
        const std::int64_t inner = numel(shape) / shape[0];
        const std::int64_t rows = std::max<std::int64_t>(1, kLargestDispatch / inner);
        for (std::int64_t row = 0; row < shape[0]; row += rows) {
            Shape piece = shape;
            Sides part = sides;
            part.packed += static_cast<Address>(row * inner) * item;
            part.strided += static_cast<Address>(row * strides[0]) * item;
            if (inner > kLargestDispatch) {  // one row alone is too large: go inside it
                piece.erase(0);
                Strides rest = strides;
                rest.erase(0);
                launch_pieces(on, part, piece, rest, item, scatter);
                continue;
            }
            piece[0] = std::min(rows, shape[0] - row);
            launch_pieces(on, part, piece, strides, item, scatter);
        }
        return;
    }
    CopyArgs args{.packed = sides.packed, .strided = sides.strided, .strides = {}, .sizes = {}, .count = 0};
    for (int i = 0; i < shape.size(); i++) {
        args.strides[i] = strides[i];
        args.sizes[i] = static_cast<std::uint32_t>(shape[i]);
    }
    args.count = static_cast<std::uint32_t>(numel(shape));
    const Spec spec{kThreads, static_cast<std::uint32_t>(shape.size()), scatter ? 1u : 0u};
    const Grid grid = linear_grid(ceil_div(args.count, kThreads));
    const DType storage = storage_dtype(item);
    if (scatter)
        on.launch(copy_kernel, storage, spec, grid, args, {sides.packed_block}, {sides.strided_block});
    else
        on.launch(copy_kernel, storage, spec, grid, args, {sides.strided_block}, {sides.packed_block});
}

void copy_packed(Stream& on, const Tensor& from, const Tensor& to) {
    constexpr std::size_t kVector = 16, kVectorsPerGroup = kThreads * 4;
    const std::size_t bytes = from.nbytes(), item = itemsize(from.dtype());
    const bool aligned = from.address() % kVector == 0 && to.address() % kVector == 0;
    const std::size_t whole = aligned ? bytes / kVector * kVector : 0;
    if (whole > 0) {
        const CopyPackedArgs args{from.address(), to.address(), whole / kVector};
        on.launch(copy_packed_kernel, DType::none, Spec{kThreads},
                  linear_grid(ceil_div(args.vectors, kVectorsPerGroup)), args, {from}, {to});
    }
    on.copy(to.storage(), static_cast<std::size_t>(to.offset()) * item + whole, from.storage(),
            static_cast<std::size_t>(from.offset()) * item + whole, bytes - whole);
}

/// Copies between a packed and a strided tensor of one shape; `scatter` writes the strided one.
void copy_strided(const Tensor& packed, const Tensor& strided, bool scatter) {
    if (packed.numel() == 0) return;
    Stream& on = stream_of(packed);
    const std::size_t item = itemsize(packed.dtype());
    if (strided.is_contiguous()) return copy_packed(on, scatter ? packed : strided, scatter ? strided : packed);
    const Strides one[] = {strided.strides()};
    const Collapsed loop = collapse(strided.shape(), one);
    launch_pieces(on, {packed.address(), strided.address(), packed, strided}, loop.shape, loop.strides[0], item,
                  scatter);
}

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
