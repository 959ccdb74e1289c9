#include <cmath>
#include <limits>

#include "vkml/core/error.h"
#include "vkml/ops/kda/kda_internal.h"

namespace vkml::kda {
namespace {

void check_rank(std::string_view op, std::string_view name, const Tensor& t, std::string_view axes, int rank) {
    check(t.defined(), op, ": ", name, ": expected a tensor of shape ", axes, ", got an undefined tensor");
    check(t.ndim() == rank, op, ": ", name, ": expected rank ", rank, " ", axes, ", got shape ", t.shape());
}

void check_shape(std::string_view op, std::string_view name, const Tensor& t, const Shape& shape) {
    if (t.defined()) check(t.shape() == shape, op, ": ", name, ": expected shape ", shape, ", got ", t.shape());
}

void check_dtype(std::string_view op, std::string_view name, const Tensor& t, DType dtype, std::string_view as) {
    if (t.defined())
        check<DTypeError>(t.dtype() == dtype, op, ": ", name, ": expected ", dtype, as, ", got ", t.dtype());
}

void check_device(std::string_view op, std::string_view name, const Tensor& t, Device device) {
    if (t.defined())
        check<DeviceError>(t.device() == device, op, ": ", name, ": expected ", device, " as query, got ", t.device());
}

void check_dtypes(std::string_view op, const Inputs& in, Problem& p) {
    p.dtype = in.query.dtype();
    const bool f64 = p.dtype == DType::f64 && p.device.is_cpu();
    check<DTypeError>(p.dtype == DType::f32 || p.dtype == DType::f16 || p.dtype == DType::bf16 || f64, op,
                      ": query: expected float32, float16",
                      p.device.is_cpu() ? ", bfloat16 or float64" : " or bfloat16", ", got ", p.dtype);
    p.wide = f64 ? DType::f64 : DType::f32;
    check_dtype(op, "key", in.key, p.dtype, " as query");
    check_dtype(op, "value", in.value, p.dtype, " as query");
    check_dtype(op, "log_decay", in.log_decay, p.wide, "");
    check_dtype(op, "beta", in.beta, p.wide, "");
    check_dtype(op, in.state_name, in.initial_state, p.wide, "");
}

}  // namespace

Problem check_inputs(std::string_view op, const Inputs& in, std::optional<double> scale, std::int64_t chunk_size) {
    check_rank(op, "query", in.query, "[B, H, T, K]", 4);
    check_rank(op, "key", in.key, "[B, H, T, K]", 4);
    check_rank(op, "value", in.value, "[B, HV, T, V]", 4);
    check_rank(op, "log_decay", in.log_decay, "[B, HV, T, K]", 4);
    check_rank(op, "beta", in.beta, "[B, HV, T]", 3);
    if (in.initial_state.defined()) check_rank(op, in.state_name, in.initial_state, "[B, HV, K, V]", 4);
    Problem p;
    p.B = in.query.size(0), p.H = in.query.size(1), p.T = in.query.size(2), p.K = in.query.size(3);
    p.HV = in.value.size(1), p.V = in.value.size(3);
    check(p.H == 0 ? p.HV == 0 : p.HV % p.H == 0, op, ": value: expected a multiple of ", p.H, " heads, got ", p.HV);
    check(p.K >= 1, op, ": query: expected K >= 1, got 0");
    check(p.V >= 1, op, ": value: expected V >= 1, got 0");
    check_shape(op, "key", in.key, in.query.shape());
    check_shape(op, "value", in.value, p.value_shape());
    check_shape(op, "log_decay", in.log_decay, {p.B, p.HV, p.T, p.K});
    check_shape(op, "beta", in.beta, {p.B, p.HV, p.T});
    check_shape(op, in.state_name, in.initial_state, p.state_shape());
    p.device = in.query.device();
    check_dtypes(op, in, p);
    check_device(op, "key", in.key, p.device);
    check_device(op, "value", in.value, p.device);
    check_device(op, "log_decay", in.log_decay, p.device);
    check_device(op, "beta", in.beta, p.device);
    check_device(op, in.state_name, in.initial_state, p.device);
    p.scale = scale.value_or(1 / std::sqrt(static_cast<double>(p.K)));
    check(std::isfinite(p.scale), op, ": scale: expected a finite number, got ", p.scale);
    check(chunk_size >= 1, op, ": chunk_size: expected a positive integer, got ", chunk_size);
    p.chunk_size = chunk_size;
    return p;
}

void check_widths(std::string_view op, const Problem& p) {
    check<NotImplementedError>(p.T <= kMostTokens, op, ": query: expected T <= ", kMostTokens, ", got ", p.T);
    if (p.device.is_cpu()) return;
    check<NotImplementedError>(p.HV <= 65536, op, ": value: expected at most 65536 heads on ", p.device, ", got ",
                               p.HV);
    check<NotImplementedError>(p.K <= kMostWidth, op, ": query: expected K <= ", kMostWidth, " on ", p.device, ", got ",
                               p.K);
    check<NotImplementedError>(p.V <= kMostWidth, op, ": value: expected V <= ", kMostWidth, " on ", p.device, ", got ",
                               p.V);
}

void check_boundary_count(std::string_view op, const Problem& p) {
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const std::int64_t each = numel(p.state_shape());
    check(each == 0 || p.chunks() <= most / each, op, ": boundaries: expected at most ", most, " elements, got shape ",
          Shape{p.chunks(), p.B, p.HV, p.K, p.V});
}

void check_gradients(std::string_view op, const Problem& p, const Tensor& grad_output, const Tensor& grad_final_state,
                     const Tensor& boundaries) {
    const Shape chunked{p.chunks(), p.B, p.HV, p.K, p.V};
    check_shape(op, "grad_output", grad_output, p.value_shape());
    check_shape(op, "grad_final_state", grad_final_state, p.state_shape());
    check_shape(op, "boundaries", boundaries, chunked);
    check_dtype(op, "grad_output", grad_output, p.dtype, " as query");
    check_dtype(op, "grad_final_state", grad_final_state, p.wide, "");
    check_dtype(op, "boundaries", boundaries, p.wide, "");
    check_device(op, "grad_output", grad_output, p.device);
    check_device(op, "grad_final_state", grad_final_state, p.device);
    check_device(op, "boundaries", boundaries, p.device);
}

}  // namespace vkml::kda
