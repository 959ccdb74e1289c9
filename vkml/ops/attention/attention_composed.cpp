#include <limits>

#include "vkml/ops/attention/attention_internal.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/dropout/dropout.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/matmul/matmul.h"
#include "vkml/ops/rearrange/rearrange.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/select/select.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/ops/softmax/softmax.h"
#include "vkml/ops/tri/tri.h"

namespace vkml::attention {
namespace {

DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
Tensor flipped(const Tensor& t) { return transpose(t, -2, -1); }

Shape with_lead(const Shape& lead, std::int64_t rows, std::int64_t columns) {
    Shape shape = lead;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
}

/// Key or value with a head for every query head, in the output's leading axes.
Tensor spread(const Call& call, const Tensor& t, std::int64_t heads) {
    Tensor x = cast(t, wide(t.dtype()));
    if (heads != call.query_heads) x = repeat_interleave(x, call.query_heads / heads, -3);
    return expand(x, with_lead(call.lead, t.size(-2), t.size(-1)));
}

Tensor query_of(const Call& call) {
    return expand(cast(call.query, wide(call.query.dtype())), with_lead(call.lead, call.L, call.E));
}

/// A row of -inf gives 0 instead of NaN, in the gradient too.
Tensor blocked_softmax(const Tensor& scores) {
    const Tensor blocked = equal(amax(detach(scores), {-1}, true), -std::numeric_limits<double>::infinity());
    return masked_fill(softmax(masked_fill(scores, blocked, 0.0), -1), blocked, 0.0);
}

Tensor probabilities(const Call& call, const Tensor& query, const Tensor& key) {
    Tensor scores = matmul(mul(query, call.scale), flipped(key));
    if (!call.masked() || scores.numel() == 0) return softmax(scores, -1);
    Tensor mask = call.mask;
    if (call.causal) mask = tril(full({call.L, call.S}, 1.0, DType::boolean, scores.device()));
    if (mask.dtype() == DType::boolean)
        scores = masked_fill(scores, logical_not(mask), -std::numeric_limits<double>::infinity());
    else
        scores = add(scores, cast(mask, scores.dtype()));
    return blocked_softmax(scores);
}

Tensor dropped(const Call& call, const Tensor& weights) {
    return call.dropout_p == 0 ? weights : dropout_slice(weights, call.dropout_p, call.draw, 0);
}

/// The gradient of `like` from that of its spread form.
Tensor gathered(const Call& call, const Tensor& grad, const Tensor& like, std::int64_t heads) {
    Tensor g = grad;
    if (heads != call.query_heads) g = sum(unflatten(g, -3, {heads, call.query_heads / heads}), {-3});
    return cast(sum_to(g, like.shape()), like.dtype());
}

}  // namespace

Tensor composed(const Call& call) {
    const Tensor key = spread(call, call.key, call.key_heads), value = spread(call, call.value, call.value_heads);
    const Tensor weights = dropped(call, probabilities(call, query_of(call), key));
    return cast(matmul(weights, value), call.query.dtype());
}

Gradients composed_backward(const Call& call, const Tensor& grad) {
    const Tensor query = query_of(call), key = spread(call, call.key, call.key_heads);
    const Tensor value = spread(call, call.value, call.value_heads), g = cast(grad, query.dtype());
    const Tensor p = probabilities(call, query, key);
    const Tensor dp = dropped(call, matmul(g, flipped(value)));
    const Tensor ds = mul(mul(p, sub(dp, sum(mul(dp, p), {-1}, true))), call.scale);
    return {gathered(call, matmul(ds, key), call.query, call.query_heads),
            gathered(call, matmul(flipped(ds), query), call.key, call.key_heads),
            gathered(call, matmul(flipped(dropped(call, p)), g), call.value, call.value_heads)};
}

}  // namespace vkml::attention
