#include "vkml/ops/tri/tri.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/tri/tri.spv.h"
#include "vkml/ops/tri/tri_args.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr int kBatchAxes = 3;
// An edge this far out is beyond every matrix, and adding a row number to it cannot overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 62;

template <class T>
void triangles(const TriArgs& args, bool upper) {
    const T* input = reinterpret_cast<const T*>(args.input);
    T* output = reinterpret_cast<T*>(args.output);
    const std::int64_t lines = static_cast<std::int64_t>(args.matrices * args.rows);
    cpu::parallel_for(
        lines, std::max<std::int64_t>(1, cpu::kGrain / args.columns), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t line = begin; line < end; line++) {
                std::int64_t matrix = line / args.rows;
                const std::int64_t row = line % args.rows, edge = row + args.diagonal, columns = args.columns;
                std::int64_t offset = row * args.row_stride;
                for (int axis = kBatchAxes - 1; axis >= 0; axis--) {
                    offset += matrix % args.sizes[axis] * args.strides[axis];
                    matrix /= args.sizes[axis];
                }
                const std::int64_t low = upper ? std::clamp<std::int64_t>(edge, 0, columns) : 0;
                const std::int64_t high = upper ? columns : std::clamp<std::int64_t>(edge + 1, 0, columns);
                T* to = output + line * columns;
                std::fill(to, to + low, T{0});
                for (std::int64_t c = low; c < high; c++) to[c] = input[offset + c * args.column_stride];
                std::fill(to + high, to + columns, T{0});
            }
        });
}

void tri_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const TriArgs*>(raw);
    const bool upper = spec[1] != 0;
    switch (itemsize(dtype)) {
        case 1:
            return triangles<std::uint8_t>(args, upper);
        case 2:
            return triangles<std::uint16_t>(args, upper);
        case 4:
            return triangles<std::uint32_t>(args, upper);
        default:
            return triangles<std::uint64_t>(args, upper);
    }
}

constexpr Kernel tri_kernel{"tri", spv::tri, tri_cpu};
static_assert(sizeof(TriArgs) <= kMaxPushConstants);

Tensor tri(const char* op, const Tensor& input, std::int64_t diagonal, bool upper) {
    check(input.ndim() >= 2, op, ": expected rank >= 2, got ", input.shape());
    Tensor out = empty_like(input);
    if (out.numel() > 0) {
        Tensor from = input;
        const int matrix = input.ndim() - 2;
        const auto batch_of = [&] {
            Shape shape;
            Strides strides[1];
            for (int i = 0; i < matrix; i++) {
                shape.push_back(from.shape()[i]);
                strides[0].push_back(from.strides()[i]);
            }
            return collapse(shape, strides);
        };
        Collapsed batch = batch_of();
        if (batch.shape.size() > kBatchAxes) {
            from = contiguous(input.view(input.layout()));
            batch = batch_of();
        }
        TriArgs args{.input = from.address(),
                     .output = out.address(),
                     .strides = {},
                     .row_stride = from.strides()[matrix],
                     .column_stride = from.strides()[matrix + 1],
                     .diagonal = std::clamp(diagonal, -kFar, kFar),
                     .matrices = static_cast<std::uint64_t>(numel(batch.shape)),
                     .sizes = {1, 1, 1},
                     .rows = static_cast<std::uint32_t>(from.shape()[matrix]),
                     .columns = static_cast<std::uint32_t>(from.shape()[matrix + 1])};
        for (int i = 0, lead = kBatchAxes - batch.shape.size(); i < batch.shape.size(); i++) {
            args.strides[lead + i] = batch.strides[0][i];
            args.sizes[lead + i] = static_cast<std::uint32_t>(batch.shape[i]);
        }
        stream_of(out).launch(tri_kernel, storage_dtype(itemsize(out.dtype())), Spec{kThreads, upper ? 1u : 0u},
                              linear_grid(args.matrices * args.rows), args, {from}, {out});
    }
    return record(op, out, {input}, keep_nothing,
                  [=](const Backward& b) -> Grads { return {tri(op, b.grad(), diagonal, upper)}; });
}

}  // namespace

Tensor triu(const Tensor& input, std::int64_t diagonal) { return tri("triu", input, diagonal, true); }
Tensor tril(const Tensor& input, std::int64_t diagonal) { return tri("tril", input, diagonal, false); }

}  // namespace vkml
