#include "vkml/ops/batch_norm/batch_norm.h"

#include <algorithm>

#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/cast/cast.h"
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

Tensor normalised(const Tensor& centred, const Tensor& variance, const Tensor& weight, const Tensor& bias, double eps,
                  const Channels& channels, DType dtype) {
    Tensor scale = rsqrt(add(variance, eps));
    if (weight.defined()) scale = mul(scale, channels(weight));
    Tensor y = mul(centred, scale);
    if (bias.defined()) y = add(y, channels(bias));
    return cast(y, dtype);
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, double eps) {
    check_input("batch_norm", input);
    check_channels("batch_norm", "mean", input, mean);
    check_channels("batch_norm", "variance", input, variance);
    check_channels("batch_norm", "weight", input, weight);
    check_channels("batch_norm", "bias", input, bias);
    const Channels channels(input);
    return normalised(sub(cast(input, channels.wide), channels(mean)), channels(variance), weight, bias, eps, channels,
                      input.dtype());
}

BatchNormTrained batch_norm_train(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
    check_input("batch_norm_train", input);
    check_channels("batch_norm_train", "weight", input, weight);
    check_channels("batch_norm_train", "bias", input, bias);
    const std::int64_t count = input.numel() / std::max<std::int64_t>(1, input.shape()[1]);
    check(count > 1, "batch_norm_train: expected more than one value per channel, got ", input.shape());
    const Channels channels(input);
    Dims dims{0};
    for (int i = 2; i < input.ndim(); i++) dims.push_back(i);
    // Relative to each channel's first value, so that a mean that is large against the spread loses no digits.
    Tensor first = input;
    {
        const NoGrad off;
        for (int i = 0; i < input.ndim(); i++)
            if (i != 1) first = slice(first, i, 0, 1);
        first = cast(first, channels.wide);
    }
    const Tensor x = sub(cast(input, channels.wide), first);
    const auto mean = [&](const Tensor& t) { return div(sum(t, dims, true), static_cast<double>(count)); };
    const Tensor middle = mean(x), centred = sub(x, middle), variance = mean(square(centred));
    const Shape flat{input.shape()[1]};
    return {normalised(centred, variance, weight, bias, eps, channels, input.dtype()),
            reshape(add(middle, first), flat), reshape(variance, flat)};
}

}  // namespace vkml
