#pragma once
#include "vkml/ops/matmul/gemm_product.h"

/// The tile kernels, and what prepares their operands.
namespace vkml {

/// The tensor whose memory holds an operand as the pipeline's tiles can read it: the operand itself, or a copy packed
/// along K and padded to whole tiles. Then `args` says where it lies and how.
Tensor ready_operand(Stream& on, const Product& p, GemmArgs& args, Pipeline pipeline, bool first);
/// Bytes of an element that the tiles read.
std::size_t operand_itemsize(const Product& p, Pipeline pipeline);

/// One launch of tiles over `parts` parts of K, into `c`. f32 sums if they are parts, else the product's type.
void launch_tiles(Stream& on, const Product& p, const GemmArgs& args, Pipeline pipeline, std::uint32_t parts, bool sums,
                  const Tensor& a, const Tensor& b, const Tensor& c);
/// A few rows of f32 from bf16 parts, operands where they lie.
void launch_parts_few(Stream& on, const Product& p, const GemmArgs& args);
/// f32 through halves, one matrix of the batch after another.
void launch_high(Stream& on, const Product& p, const GemmArgs& args, Pipeline pipeline);

/// The kernels on cooperative matrices, by layout: both operands row-major, the second packed along K, the first packed
/// along its rows.
struct CooperativeKernels {
    const Kernel *coopmat, *coopmat_large, *coopmat_wide, *coopmat_small, *coopmat_few;
    const Kernel *high, *high_small;
    const Kernel *parts, *parts_small, *parts_tiny;
    std::uint32_t units = 0;  // multiprocessors that share out the tiles; 0: as many as the device has
};
/// For tests: kernels that need no cooperative matrices, on a device that has none; null ends it.
void emulate_cooperative(const CooperativeKernels* kernels);

}  // namespace vkml
