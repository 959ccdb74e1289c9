#include "vkml/ops/attention/attention.h"

#include <cmath>

#include "vkml/autograd/node.h"
#include "vkml/ops/attention/attention_internal.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace attention {
namespace {

Shape leading(const Tensor& t) { return Shape(std::span(t.shape().begin(), static_cast<std::size_t>(t.ndim() - 2))); }
std::int64_t heads_of(const Tensor& t) { return t.ndim() > 2 ? t.size(-3) : 1; }

void check_tensors(const Tensor& query, const Tensor& key, const Tensor& value) {
    check(query.ndim() >= 2 && key.ndim() >= 2 && value.ndim() >= 2, kOp, ": expected rank >= 2, got ", query.shape(),
          ", ", key.shape(), " and ", value.shape());
    check<DTypeError>(is_floating(query.dtype()), kOp, ": expected floating-point tensors, got ", query.dtype());
    check<DTypeError>(query.dtype() == key.dtype() && query.dtype() == value.dtype(), kOp, ": expected one dtype, got ",
                      query.dtype(), ", ", key.dtype(), " and ", value.dtype());
    check(query.size(-1) == key.size(-1), kOp, ": key: expected ", query.size(-1), " columns, got shape ", key.shape());
    check(key.size(-2) == value.size(-2), kOp, ": value: expected ", key.size(-2), " rows, got shape ", value.shape());
}

/// The heads of `t`, which a query's must be a multiple of, read as if there were as many.
Shape grouped_lead(std::string_view name, const Tensor& t, std::int64_t query_heads, bool gqa) {
    Shape lead = leading(t);
    if (!gqa) return lead;
    const std::int64_t heads = heads_of(t);
    check(t.ndim() > 2 && (heads == query_heads || (heads > 0 && query_heads % heads == 0)), kOp, ": ", name,
          ": expected heads that divide query's ", query_heads, ", got shape ", t.shape());
    lead[lead.size() - 1] = query_heads;
    return lead;
}

void check_mask(const Call& call, bool causal) {
    if (!call.mask.defined()) return;
    check(!causal, kOp, ": expected attn_mask or is_causal, got both");
    const DType dtype = call.mask.dtype();
    check<DTypeError>(dtype == DType::boolean || is_floating(dtype), kOp,
                      ": attn_mask: expected a bool or floating-point tensor, got ", dtype);
    Shape scores = call.lead;
    scores.push_back(call.L);
    scores.push_back(call.S);
    bool fits = call.mask.ndim() <= scores.size();
    for (int i = 1; fits && i <= call.mask.ndim(); i++)
        fits = call.mask.size(-i) == 1 || call.mask.size(-i) == scores[scores.size() - i];
    check(fits, kOp, ": attn_mask: expected a shape that broadcasts to ", scores, ", got ", call.mask.shape());
}

Call check_call(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                const AttentionOptions& options) {
    check_tensors(query, key, value);
    check(options.dropout_p >= 0 && options.dropout_p <= 1, kOp, ": dropout_p: expected a number in [0, 1], got ",
          options.dropout_p);
    common_device(kOp, {&query, &key, &value, &mask});
    Call call;
    call.query = query, call.key = key, call.value = value, call.mask = mask;
    call.dropout_p = options.dropout_p, call.causal = options.is_causal;
    call.L = query.size(-2), call.E = query.size(-1), call.S = key.size(-2), call.Ev = value.size(-1);
    call.scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(call.E));
    const bool gqa = options.enable_gqa;
    check(!gqa || query.ndim() > 2, kOp, ": query: expected heads along axis -3, got shape ", query.shape());
    const Shape k = grouped_lead("key", key, heads_of(query), gqa);
    const Shape v = grouped_lead("value", value, heads_of(query), gqa);
    call.lead = broadcast_shapes(kOp, broadcast_shapes(kOp, leading(query), k), v);
    call.query_heads = call.key_heads = call.value_heads = call.lead.empty() ? 1 : call.lead.back();
    if (gqa) call.key_heads = heads_of(key), call.value_heads = heads_of(value);
    check_mask(call, options.is_causal);
    return call;
}

Grads gradients(const Backward& b, Call call, const Tensor& lse) {
    call.query = b.input(0), call.key = b.input(1), call.value = b.input(2);
    if (call.mask.defined()) call.mask = b.input(3);
    const Tensor &grad = b.grad(), output = b.output();
    const TensorArg inputs[] = {grad, call.query, call.key, call.value};
    const bool needs[3] = {b.needs(0), b.needs(1), b.needs(2)};
    const Gradients g = tracks(inputs) ? composed_backward(call, grad) : run_backward(call, output, lse, grad, needs);
    Grads grads{g.query, g.key, g.value};
    if (call.mask.defined()) grads.emplace_back();
    return grads;
}

}  // namespace

Shape Call::output_shape() const {
    Shape shape = lead;
    shape.push_back(L);
    shape.push_back(Ev);
    return shape;
}

}  // namespace attention

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, const AttentionOptions& options) {
    using namespace attention;
    Call call = check_call(query, key, value, attn_mask, options);
    if (call.dropout_p > 0) call.draw = fold(next_draw());
    const Problem p = place(call);
    const Path path = choose_path(call, p);
    if (path == Path::composed) return composed(call);
    const TensorArg inputs[] = {query, key, value};
    Tensor lse;
    if (tracks(inputs)) lse = empty({p.B, p.H, p.rows()}, p.is_f64 ? DType::f64 : DType::f32, query.device());
    const Tensor output = run_forward(call, p, path, lse);
    if (!lse.defined()) return output;
    // The tensors come back through Backward, which notices what has changed since.
    Call kept = call;
    kept.query = kept.key = kept.value = Tensor();
    const auto gradient = [kept, lse](const Backward& b) { return gradients(b, kept, lse); };
    if (!attn_mask.defined())
        return record(kOp, output, {query, key, value}, {.inputs = 0b111, .outputs = 1}, gradient);
    return record(kOp, output, {query, key, value, attn_mask}, {.inputs = 0b1111, .outputs = 1}, gradient);
}

}  // namespace vkml
