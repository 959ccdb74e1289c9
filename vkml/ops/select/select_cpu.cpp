#include <algorithm>

#include "vkml/ops/select/select_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

/// One operand along the innermost axis; a number is a stride of 0 over itself.
template <class T>
struct Run {
    const T* data;
    std::int64_t step;
};

template <class T>
void pick_run(Run<std::uint8_t> cond, Run<T> a, Run<T> b, T* out, std::int64_t n) {
    if (cond.step == 1 && a.step == 1 && b.step == 1) {
        for (std::int64_t i = 0; i < n; i++) out[i] = cond.data[i] ? a.data[i] : b.data[i];
        return;
    }
    for (std::int64_t i = 0; i < n; i++) {
        const T *x = a.data + i * a.step, *y = b.data + i * b.step;
        out[i] = *(cond.data[i * cond.step] ? x : y);
    }
}

template <class T>
void select_elements(const SelectArgs& args, int rank, bool has_a, bool has_b) {
    const auto* cond = reinterpret_cast<const std::uint8_t*>(args.cond);
    const T a_number = static_cast<T>(args.a_bits[0] | static_cast<std::uint64_t>(args.a_bits[1]) << 32);
    const T b_number = static_cast<T>(args.b_bits[0] | static_cast<std::uint64_t>(args.b_bits[1]) << 32);
    const T* a = has_a ? reinterpret_cast<const T*>(args.a) : &a_number;
    const T* b = has_b ? reinterpret_cast<const T*>(args.b) : &b_number;
    T* out = reinterpret_cast<T*>(args.out);
    if (rank == 0) {
        cpu::parallel_for(args.count, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
            pick_run<T>({cond + begin, 1}, {has_a ? a + begin : a, has_a}, {has_b ? b + begin : b, has_b}, out + begin,
                        end - begin);
        });
        return;
    }
    const std::int64_t width = args.sizes[rank - 1];
    cpu::parallel_for(
        args.count / width, std::max<std::int64_t>(1, cpu::kGrain / width), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; row++) {
                std::int64_t left = row, c_at = 0, a_at = 0, b_at = 0;
                for (int axis = rank - 2; axis >= 0; axis--) {
                    const std::int64_t index = left % args.sizes[axis];
                    left /= args.sizes[axis];
                    c_at += index * args.cond_strides[axis];
                    a_at += index * args.a_strides[axis];
                    b_at += index * args.b_strides[axis];
                }
                pick_run<T>({cond + c_at, args.cond_strides[rank - 1]}, {a + a_at, args.a_strides[rank - 1]},
                            {b + b_at, args.b_strides[rank - 1]}, out + row * width, width);
            }
        });
}

}  // namespace

void select_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const SelectArgs*>(raw);
    const int rank = static_cast<int>(spec[1]);
    const bool a = spec[2] != 0, b = spec[3] != 0;
    switch (itemsize(dtype)) {
        case 1:
            return select_elements<std::uint8_t>(args, rank, a, b);
        case 2:
            return select_elements<std::uint16_t>(args, rank, a, b);
        case 4:
            return select_elements<std::uint32_t>(args, rank, a, b);
        default:
            return select_elements<std::uint64_t>(args, rank, a, b);
    }
}

}  // namespace vkml
