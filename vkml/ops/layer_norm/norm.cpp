#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/layer_norm/norm_kernel.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kParameterThreads = 128;  // kThreads of norm_parameters.slang

DType value_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

Tensor packed(const Tensor& t) { return t.defined() ? contiguous(t) : t; }

/// The layout of the rows, of a packed copy if the tensor's own cannot be said.
RowLayout readable(Tensor& x, int axes) {
    RowLayout layout = row_layout(x, x.ndim() - axes, axes);
    if (layout.rank == 0) layout = row_layout(x = contiguous(x), x.ndim() - axes, axes);
    return layout;
}

Shape row_shape(const Tensor& x, int axes) {
    Shape shape;
    for (int i = 0; i < x.ndim() - axes; i++) shape.push_back(x.shape()[i]);
    return shape;
}

Address address_of(const Tensor& t) { return t.defined() ? t.address() : 0; }

bool float_parameters(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const Tensor& one = weight.defined() ? weight : bias;
    return one.defined() && one.dtype() != x.dtype();
}

void parameter_grads(const NormKernels& norm, const Tensor& x, const Tensor& g, const RowLayout& layout,
                     NormGrads& grads, const Tensor& mean, const Tensor& rstd, bool as_float) {
    Stream& on = stream_of(x);
    RowArgs args = layout.args;
    const std::uint32_t parts = parameter_parts(args.rows);
    const Storage scratch = on.allocate(std::size_t{parts} * 2 * args.cols * itemsize(value_dtype(x)));
    args.scratch = scratch->address;
    const Spec spec{parts, static_cast<std::uint32_t>(layout.rank), as_float ? 1u : 0u, norm.flag};
    const std::uint64_t columns = ceil_div(args.cols, kParameterThreads);
    on.launch(*norm.parameters_partial, x.dtype(), spec, linear_grid(columns * parts), args, {x, g, mean, rstd},
              {scratch});
    args.weight = address_of(grads.weight);
    args.bias = address_of(grads.bias);
    on.launch(*norm.parameters_fold, x.dtype(), spec, linear_grid(columns), args, {scratch},
              {grads.weight, grads.bias});
}

}  // namespace

NormResult run_norm(const NormKernels& norm, const Tensor& input, int axes, double eps, const Tensor& weight,
                    const Tensor& bias, bool keep) {
    const NoGrad off;
    NormResult out{empty_like(input), {}, {}};
    if (input.numel() == 0) return out;
    Tensor x = input;
    const Tensor w = packed(weight), b = packed(bias);
    RowLayout layout = readable(x, axes);
    if (keep) {
        out.mean = norm.flag == kCentred ? empty(row_shape(x, axes), value_dtype(x), x.device()) : Tensor{};
        out.rstd = empty(row_shape(x, axes), value_dtype(x), x.device());
    }
    RowArgs& args = layout.args;
    args.y = out.y.address();
    args.weight = address_of(w);
    args.bias = address_of(b);
    args.mean = address_of(out.mean);
    args.rstd = address_of(out.rstd);
    set_eps(args, eps);
    launch_rows(norm.op, norm.forward, x, layout, float_parameters(x, w, b), norm.flag, {x, w, b},
                {out.y, out.mean, out.rstd});
    return out;
}

NormGrads run_norm_backward(const NormKernels& norm, const Tensor& gradient, const Tensor& input, int axes,
                            const Tensor& mean, const Tensor& rstd, const Tensor& weight, bool want_x, bool want_weight,
                            const Tensor& bias_like) {
    const NoGrad off;
    NormGrads out;
    const Shape sizes(std::span(input.shape().begin() + (input.ndim() - axes), static_cast<std::size_t>(axes)));
    if (want_weight) out.weight = empty(sizes, weight.dtype(), weight.device());
    if (bias_like.defined()) out.bias = empty(sizes, bias_like.dtype(), bias_like.device());
    if (want_x) out.x = empty_like(input);
    if (input.numel() == 0) {  // no rows: nothing to add up
        for (Tensor* t : {&out.weight, &out.bias})
            if (t->defined() && t->numel() > 0) *t = full(t->shape(), 0.0, t->dtype(), t->device());
        return out;
    }
    Tensor x = input;
    const Tensor g = contiguous(gradient), w = packed(weight);
    RowLayout layout = readable(x, axes);
    RowArgs& args = layout.args;
    args.second = g.address();
    args.mean = address_of(mean);
    args.rstd = rstd.address();
    const bool as_float = float_parameters(x, w, bias_like);
    if (want_x) {
        args.y = out.x.address();
        args.weight = address_of(w);
        launch_rows(norm.op, norm.backward, x, layout, as_float, norm.flag, {x, g, w, mean, rstd}, {out.x});
    }
    if (want_weight || bias_like.defined()) parameter_grads(norm, x, g, layout, out, mean, rstd, as_float);
    return out;
}

NormGrads composed_norm_backward(const NormKernels& norm, const Tensor& gradient, const Tensor& input, int axes,
                                 double eps, const Tensor& weight, bool want_weight, const Tensor& bias_like) {
    const DType wide = value_dtype(input);
    Dims dims, rows;
    for (int i = 0; i < input.ndim(); i++) (i < input.ndim() - axes ? rows : dims).push_back(i);
    const Tensor g = cast(gradient, wide), x = cast(input, wide);
    double count = 1;
    for (const std::int64_t axis : dims) count *= static_cast<double>(input.shape()[static_cast<int>(axis)]);
    const auto mean = [&](const Tensor& t) { return div(sum(t, dims, true), count); };
    const Tensor centred = norm.flag == kCentred ? sub(x, mean(x)) : x;
    const Tensor r = rsqrt(add(mean(square(centred)), eps)), hat = mul(centred, r);
    const Tensor gh = weight.defined() ? mul(g, cast(weight, wide)) : g;
    const Tensor inside = norm.flag == kCentred ? sub(gh, mean(gh)) : gh;
    const auto add_rows = [&](const Tensor& t) { return rows.empty() ? t : sum(t, rows); };
    NormGrads out;
    out.x = cast(mul(r, sub(inside, mul(hat, mean(mul(gh, hat))))), input.dtype());
    if (want_weight) out.weight = cast(add_rows(mul(g, hat)), weight.dtype());
    if (bias_like.defined()) out.bias = cast(add_rows(g), bias_like.dtype());
    return out;
}

int check_norm(std::string_view op, const Tensor& x, std::int64_t axes) {
    check<DTypeError>(is_floating(x.dtype()), op, ": expected a floating-point tensor, got ", x.dtype());
    check(x.ndim() > 0, op, ": normalized_axes: expected a tensor of rank >= 1, got ()");
    check(axes >= 1 && axes <= x.ndim(), op, ": normalized_axes: expected 1 to ", x.ndim(), ", got ", axes);
    return static_cast<int>(axes);
}

void check_norm_parameter(std::string_view op, std::string_view name, const Tensor& x, int axes,
                          const Tensor& parameter) {
    if (!parameter.defined()) return;
    const Shape sizes(std::span(x.shape().begin() + (x.ndim() - axes), static_cast<std::size_t>(axes)));
    check(parameter.shape() == sizes, op, ": ", name, ": expected shape ", sizes, ", got ", parameter.shape());
    check<DTypeError>(parameter.dtype() == x.dtype() || parameter.dtype() == DType::f32, op, ": ", name, ": expected ",
                      x.dtype(), " or float32, got ", parameter.dtype());
    common_device(op, {&x, &parameter});
}

std::int64_t axes_of_sizes(std::string_view op, const Tensor& x, const Shape& sizes) {
    const int axes = sizes.size();
    bool match = axes >= 1 && axes <= x.ndim();
    for (int i = 0; match && i < axes; i++) match = sizes[i] == x.shape()[x.ndim() - axes + i];
    check(match, op, ": normalized_axes: expected the trailing sizes of ", x.shape(), ", got ", sizes);
    return axes;
}

}  // namespace vkml
