#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "vkml/core/tensor.h"
#include "vkml/runtime/slang/row_args.h"
#include "vkml/runtime/stream.h"

/// Launching row kernels: operators that reduce along an axis and map the same elements (slang/rows.slang).
namespace vkml {

static_assert(sizeof(RowArgs) <= kMaxPushConstants);

/// A kernel of the structure "wide" and what its module was compiled with (slang/rows_wide.slang).
struct RowWide {
    const Kernel* kernel;
    std::uint32_t threads, chunks, held;
};

/// The structures of one operator and the name of its choice table ("softmax.rows").
struct RowKernels {
    std::string_view site;
    const Kernel *resident, *looped, *partial, *apply;
    std::span<const RowWide> wide = {};
    bool reduces = false;  // rows are reduced only: nothing of them need stay in registers
};

/// Where the rows along axes [axis, axis + count) of a tensor lie. `rank` is 0 when the arguments cannot say it: pack
/// the tensor.
struct RowLayout {
    RowArgs args{};
    int rank = 0;
};
RowLayout row_layout(const Tensor& x, int axis, int count = 1);

/// Values of the specialization constants a CPU function reads.
inline constexpr int kRowRank = 5, kRowFloatParameters = 7, kRowFlag = 8;

/// Takes the arguments with all pointers set, chooses the structure and records it. `flag` is the operator's own
/// constant; `float_parameters` says that weight and bias are f32 whatever the dtype.
void launch_rows(std::string_view op, const RowKernels& kernels, const Tensor& x, const RowLayout& layout,
                 bool float_parameters, std::uint32_t flag, UseList reads, UseList writes);

/// For tests: the structure ("resident", "wide", "split", "looped") that is taken wherever it can run; empty restores
/// the table.
void force_row_structure(std::string_view name);

/// The two floats whose sum a kernel takes for eps.
inline void set_eps(RowArgs& args, double eps) {
    args.eps_high = static_cast<float>(eps);
    args.eps_low = static_cast<float>(eps - static_cast<double>(args.eps_high));
}

}  // namespace vkml
