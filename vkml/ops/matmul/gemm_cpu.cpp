#include <algorithm>
#include <cstring>
#include <vector>

#include "vkml/ops/matmul/gemm_kernel.h"
#include "vkml/runtime/cpu/onednn.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

/// One operand copied row by row into memory of its own; broadcast axes are not repeated.
class Packed {
  public:
    template <class T>
    const T* fill(const T* from, std::int64_t (&strides)[4], std::int64_t outer, std::int64_t inner, std::int64_t rows,
                  std::int64_t columns) {
        const std::int64_t outers = strides[0] == 0 ? 1 : outer, inners = strides[1] == 0 ? 1 : inner;
        const std::int64_t count = outers * inners * rows;
        data_.resize(static_cast<std::size_t>(count * columns) * sizeof(T));
        T* to = reinterpret_cast<T*>(data_.data());
        const std::int64_t s0 = strides[0], s1 = strides[1], s2 = strides[2], s3 = strides[3];
        cpu::parallel_for(count, std::max<std::int64_t>(1, cpu::kGrain / columns),
                          [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t i = begin; i < end; i++) {
                                  const T* row = from + i / rows / inners * s0 + i / rows % inners * s1 + i % rows * s2;
                                  if (s3 == 1)
                                      std::memcpy(to + i * columns, row, static_cast<std::size_t>(columns) * sizeof(T));
                                  else
                                      for (std::int64_t j = 0; j < columns; j++) to[i * columns + j] = row[j * s3];
                              }
                          });
        strides[0] = strides[0] == 0 ? 0 : inners * rows * columns;
        strides[1] = strides[1] == 0 ? 0 : rows * columns;
        strides[2] = columns;
        strides[3] = 1;
        return to;
    }

  private:
    std::vector<std::byte> data_;
};

/// Operands whose rows have gaps are packed first: oneDNN's best kernels want dense ones.
template <class T>
bool with_onednn(const GemmArgs& args, DType dtype) {
    cpu::MatmulProblem p;
    p.dtype = dtype;
    p.m = args.m, p.n = args.n, p.k = args.k, p.inner = args.batch_inner, p.outer = args.batch / args.batch_inner;
    const std::int64_t a_strides[4] = {args.a_outer, args.a_inner, args.a_row, args.a_col};
    const std::int64_t b_strides[4] = {args.b_outer, args.b_inner, args.b_row, args.b_col};
    std::copy_n(a_strides, 4, p.a_strides);
    std::copy_n(b_strides, 4, p.b_strides);
    p.bias = args.bias != 0;
    const T* a = reinterpret_cast<const T*>(args.a);
    const T* b = reinterpret_cast<const T*>(args.b);
    const void* bias_data = reinterpret_cast<const void*>(args.bias);
    void* c = reinterpret_cast<void*>(args.c);
    if (cpu::onednn_matmul(p, a, b, c, bias_data)) return true;
    const cpu::MatmulProblem strided = p;
    Packed packed_a, packed_b;
    a = packed_a.fill(a, p.a_strides, p.outer, p.inner, p.m, p.k);
    if (cpu::onednn_matmul(p, a, b, c, bias_data)) return true;
    b = packed_b.fill(b, p.b_strides, p.outer, p.inner, p.k, p.n);
    if (cpu::onednn_matmul(p, a, b, c, bias_data)) return true;
    std::copy_n(strided.a_strides, 4, p.a_strides);
    return cpu::onednn_matmul(p, reinterpret_cast<const T*>(args.a), b, c, bias_data);
}

template <class T>
void integer_product(const GemmArgs& args) {
    using U = std::make_unsigned_t<T>;
    using Sum = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    const auto* a = reinterpret_cast<const U*>(args.a);
    const auto* b = reinterpret_cast<const U*>(args.b);
    const auto* bias = reinterpret_cast<const U*>(args.bias);
    auto* c = reinterpret_cast<U*>(args.c);
    const std::int64_t n = args.n, rows = std::int64_t{args.batch} * args.m;
    const std::int64_t grain = std::max<std::int64_t>(1, cpu::kGrain / std::max<std::int64_t>(1, n * args.k));
    cpu::parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
        std::vector<Sum> sums(static_cast<std::size_t>(n));
        for (std::int64_t row = begin; row < end; row++) {
            const std::int64_t outer = row / args.m / args.batch_inner, inner = row / args.m % args.batch_inner;
            const U* ar = a + outer * args.a_outer + inner * args.a_inner + row % args.m * args.a_row;
            const U* bb = b + outer * args.b_outer + inner * args.b_inner;
            for (std::int64_t j = 0; j < n; j++) sums[static_cast<std::size_t>(j)] = bias ? Sum{bias[j]} : Sum{0};
            for (std::int64_t k = 0; k < args.k; k++) {
                const Sum x = ar[k * args.a_col];
                const U* br = bb + k * args.b_row;
                for (std::int64_t j = 0; j < n; j++) sums[static_cast<std::size_t>(j)] += x * Sum{br[j * args.b_col]};
            }
            for (std::int64_t j = 0; j < n; j++) c[row * n + j] = static_cast<U>(sums[static_cast<std::size_t>(j)]);
        }
    });
}

}  // namespace

void gemm_integer_cpu(const GemmArgs& args, DType dtype) {
    switch (dtype) {
        case DType::u8:
            return integer_product<std::uint8_t>(args);
        case DType::i8:
            return integer_product<std::int8_t>(args);
        case DType::i16:
            return integer_product<std::int16_t>(args);
        case DType::i32:
            return integer_product<std::int32_t>(args);
        default:
            return integer_product<std::int64_t>(args);
    }
}

void gemm_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const GemmArgs*>(raw);
    const bool exact = spec[0] != 0;
    if (is_integer(dtype)) return gemm_integer_cpu(args, dtype);
    if (exact && dtype != DType::f64) return gemm_exact_cpu(args, dtype);
    if (dtype == DType::f32 && args.k > 0 && with_onednn<float>(args, dtype)) return;
    if (dtype == DType::bf16 && args.k > 0 && with_onednn<std::uint16_t>(args, dtype)) return;
    gemm_blocked_cpu(args, dtype);
}

}  // namespace vkml
