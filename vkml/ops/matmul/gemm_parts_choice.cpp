#include "vkml/ops/matmul/gemm_choice.h"
#include "vkml/runtime/probe/matrix_advantage.h"

/// Which products of `highest` are computed from three bf16 parts.
namespace vkml {

const char* refuses_parts(const GemmProblem& p, Stream& on) {
    if (on.device().is_cpu() || p.dtype != DType::f32 || p.precision != Precision::highest)
        return "only f32 in highest is cut into bf16 parts";
    if (parts_are_off()) return "VKML_GEMM_PARTS is OFF";
    if (const char* reason = lacks_cooperative(on.limits(), DType::bf16)) return reason;
    if (p.n < 1024 || p.k < 512) return "N or K is too short for bf16 parts";
    if (p.k > 16 * p.n) return "K is too long against N for bf16 parts, which split no K";
    // A row alone reads an operand out of memory at half the rate of gemv_columns: no more than this is given up.
    if (p.n * p.k > std::int64_t{1} << 26) return "the second operand is too large for few rows by bf16 parts";
    // Six products for one. Devices have 2 to 4 times as many operations in matrices, where FMAs win, or 8 and more.
    constexpr double kLeast = 6;
    if (parts_are_forced() || emulates_cooperative() || matrix_advantage(on) >= kLeast) return nullptr;
    return "the device's matrices are not fast enough for six products of bf16 parts";
}

}  // namespace vkml
