#include "vkml/ops/select/select.h"

#include <algorithm>
#include <limits>

#include "vkml/autograd/node.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise_internal.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/select/select_kernel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr int kAxes = 4;
constexpr std::int64_t kLargestDispatch = std::int64_t{1} << 31;

/// The tensors of one launch, all of the output's shape (broadcast by strides), and the bits of the numbers.
struct Pick {
    Tensor cond, a, b, out;
    std::uint64_t a_bits, b_bits;
};

void launch_pick(const Pick& pick) {
    const Tensor& out = pick.out;
    if (out.numel() == 0) return;
    if (out.numel() > kLargestDispatch) {  // in halves of the outermost axis that has some
        int axis = 0;
        while (out.shape()[axis] == 1) axis++;
        const std::int64_t extent = out.shape()[axis];
        const auto cut = [&](std::int64_t from, std::int64_t to) {
            const auto piece = [&](const Tensor& t) {
                return t.defined() ? t.view(slice(t.layout(), axis, from, to, 1)) : Tensor();
            };
            launch_pick({piece(pick.cond), piece(pick.a), piece(pick.b), piece(out), pick.a_bits, pick.b_bits});
        };
        cut(0, extent / 2);
        cut(extent / 2, extent);
        return;
    }
    SelectArgs args{};
    args.cond = pick.cond.address();
    args.a = pick.a.defined() ? pick.a.address() : 0;
    args.b = pick.b.defined() ? pick.b.address() : 0;
    args.out = out.address();
    args.count = static_cast<std::uint32_t>(out.numel());
    for (int i = 0; i < 2; i++) {
        args.a_bits[i] = static_cast<std::uint32_t>(pick.a_bits >> (32 * i));
        args.b_bits[i] = static_cast<std::uint32_t>(pick.b_bits >> (32 * i));
    }
    std::uint32_t rank = 0;
    const auto packed = [](const Tensor& t) { return !t.defined() || t.is_contiguous(); };
    if (!packed(pick.cond) || !packed(pick.a) || !packed(pick.b)) {
        const auto strides = [&](const Tensor& t) { return t.defined() ? t.strides() : Dims::filled(out.ndim(), 0); };
        const Strides all[] = {strides(pick.cond), strides(pick.a), strides(pick.b)};
        const Collapsed loop = collapse(out.shape(), all);
        bool fits = loop.shape.size() <= kAxes;
        for (const Strides& one : loop.strides)
            for (std::int64_t s : one) fits &= s == static_cast<std::int32_t>(s);
        if (!fits)
            return launch_pick({contiguous(pick.cond), packed(pick.a) ? pick.a : clone(pick.a),
                                packed(pick.b) ? pick.b : clone(pick.b), out, pick.a_bits, pick.b_bits});
        rank = static_cast<std::uint32_t>(loop.shape.size());
        for (int i = 0; i < loop.shape.size(); i++) {
            args.sizes[i] = static_cast<std::uint32_t>(loop.shape[i]);
            args.cond_strides[i] = static_cast<std::int32_t>(loop.strides[0][i]);
            args.a_strides[i] = static_cast<std::int32_t>(loop.strides[1][i]);
            args.b_strides[i] = static_cast<std::int32_t>(loop.strides[2][i]);
        }
    }
    const Spec spec{kThreads, rank, pick.a.defined() ? 1u : 0u, pick.b.defined() ? 1u : 0u};
    stream_of(out).launch(select_kernel, storage_dtype(itemsize(out.dtype())), spec,
                          linear_grid(ceil_div(args.count, kThreads)), args, {pick.cond, pick.a, pick.b}, {out});
}

/// cond ? x : y in `dtype`, recorded. `op` names it in errors.
Tensor select(std::string_view op, const Tensor& cond, const Arg& x, const Arg& y, DType dtype) {
    check<DTypeError>(cond.dtype() == DType::boolean, op, ": ", op == "where" ? "cond" : "mask",
                      ": expected bool, got ", cond.dtype());
    const Device device = common_device(op, {&cond, &x.tensor(), &y.tensor()});
    Shape shape = cond.shape();
    for (const Arg* arg : {&x, &y})
        if (arg->is_tensor()) shape = broadcast_shapes(op, shape, arg->tensor().shape());
    const auto of_dtype = [dtype](const Arg& arg) { return arg.is_tensor() ? cast(arg.tensor(), dtype) : Tensor(); };
    const auto view = [&shape](const Tensor& t) { return t.defined() ? t.view(expand(t.layout(), shape)) : Tensor(); };
    const Tensor a = of_dtype(x), b = of_dtype(y), out = empty(shape, dtype, device);
    launch_pick({view(cond), view(a), view(b), out, x.is_tensor() ? 0 : x.number().bits(dtype),
                 y.is_tensor() ? 0 : y.number().bits(dtype)});
    if (!is_floating(dtype)) return out;
    const Shape a_shape = a.defined() ? a.shape() : Shape(), b_shape = b.defined() ? b.shape() : Shape();
    return record(op, out, {a, b, cond}, keep_inputs(2), [a_shape, b_shape](const Backward& back) -> Grads {
        const Tensor& g = back.grad();
        Grads grads(3);
        if (back.needs(0)) grads[0] = sum_to(where(back.input(2), g, 0), a_shape);
        if (back.needs(1)) grads[1] = sum_to(where(back.input(2), 0, g), b_shape);
        return grads;
    });
}

/// A number as x's dtype would hold it: 1.5 into integers is 1.
Tensor fill_masked(std::string_view op, const Tensor& x, const Tensor& mask, const Arg& value) {
    check(!value.is_tensor() || value.tensor().ndim() == 0, op,
          ": value: expected a number or a tensor of rank 0, got shape ",
          value.is_tensor() ? value.tensor().shape() : Shape());
    check(broadcast_shapes(op, x.shape(), mask.shape()) == x.shape(), op,
          ": mask: expected a shape that broadcasts to ", x.shape(), ", got ", mask.shape());
    return select(op, mask, value, x, x.dtype());
}

bool both_numbers(const Arg& min, const Arg& max) { return !min.is_tensor() && !max.is_tensor(); }

/// The dtype x and its bounds meet in, and x in it.
Tensor promoted(const Tensor& x, const Arg& bound) { return cast(x, promoted_dtype("clamp", x, bound)); }

}  // namespace

Tensor where(const Tensor& cond, const Arg& x, const Arg& y) {
    DType dtype;
    if (x.is_tensor() || y.is_tensor())
        dtype = promoted_dtype("where", x, y);
    else {
        const DType a = x.number().natural_dtype(), b = y.number().natural_dtype();
        dtype = kind(a) >= kind(b) ? a : b;
    }
    return select("where", cond, x, y, dtype);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Arg& value) {
    return fill_masked("masked_fill", x, mask, value);
}

Tensor clamp_min(const Tensor& x, const Arg& min) {
    if (min.is_tensor()) return maximum(x, min);
    return apply_unary(UnaryOp::clamp_min, promoted(x, min), min.number());
}

Tensor clamp_max(const Tensor& x, const Arg& max) {
    if (max.is_tensor()) return minimum(x, max);
    return apply_unary(UnaryOp::clamp_max, promoted(x, max), max.number());
}

Tensor clamp(const Tensor& x, const std::optional<Arg>& min, const std::optional<Arg>& max) {
    check(min || max, "clamp: expected min, max or both, got neither");
    if (!max) return clamp_min(x, *min);
    if (!min) return clamp_max(x, *max);
    if (!both_numbers(*min, *max)) return clamp_max(clamp_min(x, *min), *max);
    return apply_unary(UnaryOp::clamp, promoted(promoted(x, *min), *max), min->number(), max->number());
}

const Tensor& clamp_(const Tensor& target, const std::optional<Arg>& min, const std::optional<Arg>& max) {
    return replace_in_place("clamp_", target, [&](const Tensor& before) { return clamp(before, min, max); });
}
const Tensor& clamp_min_(const Tensor& target, const Arg& min) {
    return replace_in_place("clamp_min_", target, [&](const Tensor& before) { return clamp_min(before, min); });
}
const Tensor& clamp_max_(const Tensor& target, const Arg& max) {
    return replace_in_place("clamp_max_", target, [&](const Tensor& before) { return clamp_max(before, max); });
}
const Tensor& masked_fill_(const Tensor& target, const Tensor& mask, const Arg& value) {
    return replace_in_place("masked_fill_", target,
                            [&](const Tensor& before) { return fill_masked("masked_fill_", before, mask, value); });
}

}  // namespace vkml
