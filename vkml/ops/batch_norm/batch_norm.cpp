#include "vkml/ops/batch_norm/batch_norm.h"

#include <algorithm>
#include <utility>

#include "vkml/autograd/node.h"
#include "vkml/ops/batch_norm/batch_norm_kernel.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

void check_input(std::string_view op, const Tensor& x) {
    check<DTypeError>(is_floating(x.dtype()), op, ": expected a floating-point tensor, got ", x.dtype());
    check(x.ndim() >= 2, op, ": expected rank >= 2, got ", x.shape());
}

void check_channels(std::string_view op, std::string_view name, const Tensor& x, const Tensor& t) {
    if (!t.defined()) return;
    const Shape channels{x.shape()[1]};
    check(t.shape() == channels, op, ": ", name, ": expected shape ", channels, ", got ", t.shape());
    check<DTypeError>(t.dtype() == x.dtype() || t.dtype() == DType::f32, op, ": ", name, ": expected ", x.dtype(),
                      " or float32, got ", t.dtype());
    common_device(op, {&x, &t});
}

/// One value per channel in the dtype that is computed with, shaped to broadcast over the input.
struct Channels {
    DType wide;
    Shape shape;

    explicit Channels(const Tensor& x)
        : wide(x.dtype() == DType::f64 ? DType::f64 : DType::f32), shape(Shape::filled(x.ndim(), 1)) {
        shape[1] = x.shape()[1];
    }
    Tensor operator()(const Tensor& t) const { return reshape(cast(t, wide), shape); }
};

/// What both operators work with: the values of a channel in the dtype computed with.
struct Wide {
    Channels channels;
    Dims dims;     // all but the channels
    double count;  // elements of a channel

    explicit Wide(const Tensor& x) : channels(x), dims{0} {
        for (int i = 2; i < x.ndim(); i++) dims.push_back(i);
        count = static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(1, x.shape()[1]));
    }
    Tensor flat(const Tensor& t) const { return t.defined() ? contiguous(cast(t, channels.wide)) : t; }
    /// Weight and bias as the kernels take them: on the GPU they convert 16-bit ones themselves.
    std::pair<Tensor, Tensor> affine(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
        const auto fits = [&](const Tensor& t) { return !t.defined() || t.dtype() == x.dtype(); };
        if (x.device().is_cpu() || !fits(weight) || !fits(bias)) return {flat(weight), flat(bias)};
        return {weight.defined() ? contiguous(weight) : weight, bias.defined() ? contiguous(bias) : bias};
    }
    Tensor mean(const Tensor& t) const { return div(sum(t, dims, true), count); }
};

Tensor cast_like(const Tensor& t, const Tensor& like) { return cast(t, like.dtype()); }

/// x less each channel's first value, so that a mean that is large against the spread loses no digits.
Tensor shifted(const Tensor& x, const Wide& wide, Tensor& first) {
    {
        const NoGrad off;
        first = x;
        for (int i = 0; i < x.ndim(); i++)
            if (i != 1) first = slice(first, i, 0, 1);
        first = cast(first, wide.channels.wide);
    }
    return sub(cast(x, wide.channels.wide), first);
}

Tensor normalised(const Tensor& centred, const Tensor& variance, const Tensor& weight, const Tensor& bias, double eps,
                  const Channels& channels, DType dtype) {
    Tensor scale = rsqrt(add(variance, eps));
    if (weight.defined()) scale = mul(scale, channels(weight));
    Tensor y = mul(centred, scale);
    if (bias.defined()) y = add(y, channels(bias));
    return cast(y, dtype);
}

/// The gradients of batch_norm from ordinary operators: for a backward that is itself recorded.
Grads composed_backward(const Backward& b, double eps) {
    const Tensor x = b.input(0), mean = b.input(1), variance = b.input(2), weight = b.input(3);
    const Wide wide(x);
    const Tensor g = cast(b.grad(), wide.channels.wide), c = sub(cast(x, wide.channels.wide), wide.channels(mean));
    const Tensor r = rsqrt(add(wide.channels(variance), eps)),
                 gw = weight.defined() ? mul(g, wide.channels(weight)) : g;
    const auto channel = [&](const Tensor& t, const Tensor& like) {
        return cast_like(reshape(t, {x.shape()[1]}), like);
    };
    Grads grads(5);
    if (b.needs(0)) grads[0] = cast_like(mul(gw, r), x);
    if (b.needs(1)) grads[1] = channel(neg(mul(sum(gw, wide.dims, true), r)), mean);
    if (b.needs(2)) grads[2] = channel(mul(sum(mul(gw, c), wide.dims, true), mul(mul(mul(r, r), r), -0.5)), variance);
    if (b.needs(3)) grads[3] = channel(mul(sum(mul(g, c), wide.dims, true), r), weight);
    if (b.needs(4)) grads[4] = channel(sum(g, wide.dims, true), b.input(4));
    return grads;
}

Grads fused_backward(const Backward& b, const Tensor& mean, const Tensor& rstd) {
    const Tensor x = b.input(0), weight = b.input(3);
    const Wide wide(x);
    const Tensor w = wide.flat(weight);
    Grads grads(5);
    if (b.needs(0)) grads[0] = batch_norm_backward(b.grad(), x, mean, rstd, w, {});
    if (!b.needs(1) && !b.needs(2) && !b.needs(3) && !b.needs(4)) return grads;
    const Tensor sums = batch_norm_sums(b.grad(), x, mean, rstd, false);
    const Tensor total = select(sums, 0, 0), product = select(sums, 0, 1);
    const Tensor scale = w.defined() ? mul(w, rstd) : rstd;
    if (b.needs(1)) grads[1] = cast_like(neg(mul(total, scale)), b.input(1));
    if (b.needs(2)) grads[2] = cast_like(mul(mul(product, mul(scale, rstd)), -0.5), b.input(2));
    if (b.needs(3)) grads[3] = cast_like(product, weight);
    if (b.needs(4)) grads[4] = cast_like(total, b.input(4));
    return grads;
}

/// The gradients of batch_norm_train from ordinary operators, those through its mean and variance included.
Grads composed_train_backward(const Backward& b, double eps) {
    const Tensor x = b.input(0), weight = b.input(1), &gy = b.grad(0), &gmean = b.grad(1), &gvariance = b.grad(2);
    const Wide wide(x);
    Tensor first;
    const Tensor moved = shifted(x, wide, first), c = sub(moved, wide.mean(moved));
    const Tensor r = rsqrt(add(wide.mean(square(c)), eps)), hat = mul(c, r);
    Tensor dx;
    const auto more = [&](const Tensor& t) { dx = dx.defined() ? add(dx, t) : t; };
    Grads grads(3);
    if (gy.defined()) {
        const Tensor g = cast(gy, wide.channels.wide), gw = weight.defined() ? mul(g, wide.channels(weight)) : g;
        more(mul(r, sub(sub(gw, wide.mean(gw)), mul(hat, wide.mean(mul(gw, hat))))));
        const auto channel = [&](const Tensor& t, const Tensor& like) {
            return cast_like(reshape(sum(t, wide.dims, true), {x.shape()[1]}), like);
        };
        if (b.needs(1)) grads[1] = channel(mul(g, hat), weight);
        if (b.needs(2)) grads[2] = channel(g, b.input(2));
    }
    if (!b.needs(0)) return grads;
    if (gmean.defined()) more(expand(div(wide.channels(gmean), wide.count), x.shape()));
    if (gvariance.defined()) more(mul(c, div(wide.channels(gvariance), wide.count / 2)));
    if (dx.defined()) grads[0] = cast_like(dx, x);
    return grads;
}

Grads fused_train_backward(const Backward& b, const Tensor& relative, const Tensor& rstd) {
    const Tensor x = b.input(0), weight = b.input(1);
    const Wide wide(x);
    const Tensor sums = batch_norm_sums(b.grad(0), x, relative, rstd, true);
    Grads grads(3);
    if (b.needs(0))
        grads[0] = batch_norm_backward(b.grad(0), x, relative, rstd, wide.affine(x, weight, {}).first, sums);
    if (!b.needs(1) && !b.needs(2)) return grads;
    const Tensor stored = cast_like(sums, b.needs(1) ? weight : b.input(2));
    if (b.needs(1)) grads[1] = select(stored, 0, 1);
    if (b.needs(2))
        grads[2] = cast_like(select(stored.dtype() == b.input(2).dtype() ? stored : sums, 0, 0), b.input(2));
    return grads;
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, double eps) {
    check_input("batch_norm", input);
    check_channels("batch_norm", "mean", input, mean);
    check_channels("batch_norm", "variance", input, variance);
    check_channels("batch_norm", "weight", input, weight);
    check_channels("batch_norm", "bias", input, bias);
    const Wide wide(input);
    if (!batch_norm_fits(input))
        return normalised(sub(cast(input, wide.channels.wide), wide.channels(mean)), wide.channels(variance), weight,
                          bias, eps, wide.channels, input.dtype());
    Tensor y, middle, rstd;
    {
        const NoGrad off;
        middle = wide.flat(mean);
        rstd = rsqrt(add(wide.flat(variance), eps));
        const auto [w, shift] = wide.affine(input, weight, bias);
        y = batch_norm_apply(input, middle, rstd, w, shift, false);
    }
    return record("batch_norm", y, {input, mean, variance, weight, bias}, keep_inputs(0, 1, 2, 3, 4),
                  [eps, middle, rstd](const Backward& b) {
                      return grad_enabled() ? composed_backward(b, eps) : fused_backward(b, middle, rstd);
                  });
}

BatchNormTrained batch_norm_train(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
    check_input("batch_norm_train", input);
    check_channels("batch_norm_train", "weight", input, weight);
    check_channels("batch_norm_train", "bias", input, bias);
    const std::int64_t count = input.numel() / std::max<std::int64_t>(1, input.shape()[1]);
    check(count > 1, "batch_norm_train: expected more than one value per channel, got ", input.shape());
    const Wide wide(input);
    if (!batch_norm_fits(input)) {
        Tensor first;
        const Tensor x = shifted(input, wide, first), middle = wide.mean(x), centred = sub(x, middle),
                     variance = wide.mean(square(centred));
        const Shape flat{input.shape()[1]};
        return {normalised(centred, variance, weight, bias, eps, wide.channels, input.dtype()),
                reshape(add(middle, first), flat), reshape(variance, flat)};
    }
    BatchStatistics s;
    Tensor y;
    {
        const NoGrad off;
        s = batch_norm_statistics(input, eps);
        const auto [w, shift] = wide.affine(input, weight, bias);
        y = batch_norm_apply(input, s.relative, s.rstd, w, shift, true);
    }
    const TensorArg inputs[] = {input, weight, bias};
    const std::vector<Tensor> out =
        record("batch_norm_train", std::vector<Tensor>{y, s.mean, s.variance}, inputs, keep_inputs(0, 1, 2),
               [eps, relative = s.relative, rstd = s.rstd](const Backward& b) {
                   const bool composed = grad_enabled() || b.grad(1).defined() || b.grad(2).defined();
                   return composed ? composed_train_backward(b, eps) : fused_train_backward(b, relative, rstd);
               });
    return {out[0], out[1], out[2]};
}

}  // namespace vkml
