#include <algorithm>
#include <bit>
#include <type_traits>

#include "vkml/core/float16.h"
#include "vkml/core/random.h"
#include "vkml/ops/dropout/dropout_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/cpu/philox.h"

namespace vkml {
namespace {

constexpr std::int64_t kDrawGrain = 16384, kStrip = 512;

/// Walks the outer axes as an odometer; the innermost one is a run.
template <class T, class Scaled>
void drop(const DropoutArgs& args, int rank, const Scaled& scaled) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
    const T* input = reinterpret_cast<const T*>(args.input);
    T* output = reinterpret_cast<T*>(args.output);
    const std::int64_t count = static_cast<std::int64_t>(args.count);
    const std::int64_t width = rank == 1 ? count : args.sizes[rank - 1], step = args.strides[rank - 1];
    const Draw draw{args.seed, args.offset};
    const auto threshold = static_cast<std::int32_t>(args.threshold);
    cpu::parallel_for(count, kDrawGrain, [&](std::int64_t begin, std::int64_t end) {
        std::uint32_t words[kStrip];
        while (begin < end) {
            std::int64_t left = begin / width, offset = 0;
            const std::int64_t column = begin % width, n = std::min({width - column, end - begin, kStrip});
            for (int axis = rank - 2; axis >= 0; axis--) {
                offset += left % args.sizes[axis] * args.strides[axis];
                left /= args.sizes[axis];
            }
            const T* from = input + offset + column * step;
            cpu::philox_words(draw, args.first + static_cast<std::uint64_t>(begin), n, words);
            // Chosen by a mask: a branch would be mispredicted half of the time.
            T* __restrict to = output + begin;
            const auto choose_run = [&](std::int64_t stride) {
                for (std::int64_t i = 0; i < n; i++) {
                    const T kept = scaled(from[i * stride]);
                    const bool keep = static_cast<std::int32_t>(words[i] >> 8) >= threshold;
                    to[i] = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(kept) & -static_cast<Bits>(keep)));
                }
            };
            if (step == 1)
                choose_run(1);
            else
                choose_run(step);
            begin += n;
        }
    });
}

}  // namespace

void dropout_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const DropoutArgs*>(raw);
    const int rank = static_cast<int>(spec[1]);
    const float scale = args.scale;
    switch (dtype) {
        case DType::f64:
            return drop<double>(args, rank, [=](double x) { return x * static_cast<double>(scale); });
        case DType::f32:
            return drop<float>(args, rank, [=](float x) { return x * scale; });
        case DType::f16:
            return drop<std::uint16_t>(args, rank,
                                       [=](std::uint16_t x) { return f16_from_float(float_from_f16(x) * scale); });
        default:
            return drop<std::uint16_t>(args, rank,
                                       [=](std::uint16_t x) { return bf16_from_float(float_from_bf16(x) * scale); });
    }
}

}  // namespace vkml
