#pragma once
#include "vkml/ops/kda/kda_internal.h"
#include "vkml/runtime/backend.h"
#include "vkml/runtime/kernel.h"

/// Precision `fast`: cooperative matrices with bf16 operands, K = V = 128. The same kernels exist in plain arithmetic,
/// "emulated", for tests on other devices. The tables kda.fast and kda.fast_backward say what ran and why not the
/// first.
namespace vkml::kda {

/// The forward. False, with nothing done, where these kernels do not fit.
bool run_forward_fast(std::string_view op, const Problem& p, const Inputs& in, const KdaOutput& out,
                      std::int64_t spacing);
/// The backward, from states every p.chunk_size tokens or, without them, from states of its own.
bool run_backward_fast(std::string_view op, const Problem& p, const Inputs& in, const Tensor& grad_output,
                       const Tensor& grad_final_state, const Tensor& boundaries, const KdaGradients& out);
/// For tests: run the emulation in place of strict where the shapes allow it.
void force_emulation(bool on);

// ---- what the two share

struct FastKernels {
    Kernel prepare, scan_64, scan_32, prepare_backward, states, reverse, epilogue;
    std::size_t slot, slot_backward;  // bytes of the workspace per tile and value head
};
/// Row 0 or 1 of a table: cooperative matrices or the emulation.
const FastKernels& fast_kernels(std::size_t row);

struct FastProblem {
    const Problem& p;
    Strided query, key, value, decay, beta;
    std::int64_t spacing;  // of stored states, in tokens
    bool boundaries;
};
FastProblem fast_problem(const Problem& p, const Inputs& in, std::int64_t spacing, bool boundaries);

/// Rows that begin at 16 bytes, elements side by side.
bool rows_aligned(const Strided& x);
const char* refuses_device(const Limits& limits);
const char* refuses_emulation();
const char* refuses_fast_problem(const FastProblem& f);

struct FastSlab {
    std::int64_t head0, heads, tile0, tiles;
};
void fast_prepare(const FastProblem& f, const Kernel& kernel, const FastSlab& slab, const Storage& workspace);
/// A packed state becomes a copy of the given one, or zeros.
void start_state(const Tensor& to, const Tensor& from);

}  // namespace vkml::kda
