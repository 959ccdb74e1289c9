#include "vkml/ops/cast/cast.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/cast/cast_kernel.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr int kAxes = 6;

bool is_f32_or_16(DType dtype) { return is_floating(dtype) && dtype != DType::f64; }

bool cast_in_vectors(const Tensor& input, const Tensor& out) {
    constexpr std::uint64_t kPer = 8;
    if (!is_f32_or_16(input.dtype()) || !is_f32_or_16(out.dtype())) return false;
    if (!input.is_contiguous() || input.address() % 16 != 0) return false;
    const CastWideArgs args{input.address(), out.address(), static_cast<std::uint64_t>(out.numel())};
    stream_of(out).launch(cast_wide_kernel, input.dtype(), Spec{kThreads, static_cast<std::uint32_t>(out.dtype())},
                          linear_grid(ceil_div(args.count, kThreads * kPer)), args, {input}, {out});
    return true;
}

Tensor cast_values(const Tensor& input, DType dtype) {
    Tensor out = empty(input.shape(), dtype, input.device());
    if (out.numel() == 0 || cast_in_vectors(input, out)) return out;
    CastArgs args{.in = input.address(),
                  .out = out.address(),
                  .count = static_cast<std::uint64_t>(out.numel()),
                  .strides = {},
                  .sizes = {}};
    std::uint32_t rank = 0;
    if (!input.is_contiguous()) {
        const Strides one[] = {input.strides()};
        const Collapsed loop = collapse(input.shape(), one);
        bool fits = loop.shape.size() <= kAxes;
        for (std::int64_t extent : loop.shape) fits &= extent <= std::int64_t{UINT32_MAX};
        if (!fits) return cast_values(clone(input), dtype);
        rank = static_cast<std::uint32_t>(loop.shape.size());
        for (int i = 0; i < loop.shape.size(); i++) {
            args.sizes[i] = static_cast<std::uint32_t>(loop.shape[i]);
            args.strides[i] = loop.strides[0][i];
        }
    }
    const Spec spec{kThreads, static_cast<std::uint32_t>(dtype), rank};
    const Kernel& kernel = dtype == DType::f64 ? cast_to_f64_kernel : cast_kernel;
    stream_of(out).launch(kernel, input.dtype(), spec, linear_grid(ceil_div(args.count, kThreads)), args, {input},
                          {out});
    return out;
}

}  // namespace

Tensor cast(const Tensor& input, DType dtype) {
    if (input.dtype() == dtype) return input;
    Tensor out = cast_values(input, dtype);
    if (!is_floating(dtype) || !is_floating(input.dtype())) return out;
    const DType from = input.dtype();
    return record("cast", std::move(out), {input}, keep_nothing,
                  [from](const Backward& b) -> Grads { return {cast(b.grad(), from)}; });
}

}  // namespace vkml
