#include <algorithm>
#include <cstring>

#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

struct Wide {
    std::uint64_t low, high;
};

/// Walks the outer axes as an odometer and copies the innermost one as a run.
template <class T>
void copy_elements(const CopyArgs& args, int rank, bool scatter) {
    T* packed = reinterpret_cast<T*>(args.packed);
    T* strided = reinterpret_cast<T*>(args.strided);
    const std::int64_t width = args.sizes[rank - 1], step = args.strides[rank - 1];
    const auto run = [&](std::int64_t begin, std::int64_t end) {
        std::int64_t index[8] = {}, offset = 0;
        std::int64_t row = begin / width, column = begin % width;
        for (int axis = rank - 2; axis >= 0; axis--) {
            index[axis] = row % args.sizes[axis];
            row /= args.sizes[axis];
            offset += index[axis] * args.strides[axis];
        }
        while (begin < end) {
            const std::int64_t n = std::min(width - column, end - begin);
            T* p = packed + begin;
            T* s = strided + offset + column * step;
            if (step == 1)
                std::memcpy(scatter ? s : p, scatter ? p : s, static_cast<std::size_t>(n) * sizeof(T));
            else if (scatter)
                for (std::int64_t i = 0; i < n; i++) s[i * step] = p[i];
            else
                for (std::int64_t i = 0; i < n; i++) p[i] = s[i * step];
            begin += n;
            column = 0;
            for (int axis = rank - 2; axis >= 0; axis--) {
                offset += args.strides[axis];
                if (++index[axis] < args.sizes[axis]) break;
                offset -= args.strides[axis] * args.sizes[axis];
                index[axis] = 0;
            }
        }
    };
    cpu::parallel_for(args.count, cpu::kGrain, run);
}

}  // namespace

void copy_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const CopyArgs*>(raw);
    const int rank = static_cast<int>(spec[1]);
    const bool scatter = spec[2] != 0;
    if (dtype == DType::none) return copy_elements<Wide>(args, rank, scatter);
    switch (itemsize(dtype)) {
        case 1:
            return copy_elements<std::uint8_t>(args, rank, scatter);
        case 2:
            return copy_elements<std::uint16_t>(args, rank, scatter);
        case 4:
            return copy_elements<std::uint32_t>(args, rank, scatter);
        default:
            return copy_elements<std::uint64_t>(args, rank, scatter);
    }
}

void copy_packed_cpu(const void* raw, DType, const Spec&, Grid) {
    const auto& args = *static_cast<const CopyPackedArgs*>(raw);
    constexpr std::int64_t kVector = 16;
    const auto* source = reinterpret_cast<const std::byte*>(args.source);
    auto* target = reinterpret_cast<std::byte*>(args.target);
    cpu::parallel_for(static_cast<std::int64_t>(args.vectors), cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(target + begin * kVector, source + begin * kVector,
                    static_cast<std::size_t>((end - begin) * kVector));
    });
}

}  // namespace vkml
