#include <algorithm>

#include "vkml/ops/index/index_kernels.h"
#include "vkml/ops/index/scatter_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/cpu/stored.h"
#include "vkml/runtime/fault.h"

namespace vkml {
namespace {

template <class Index>
void keys_of(const KeysArgs& args, int rank) {
    const Index* index = reinterpret_cast<const Index*>(args.index);
    auto* keys = reinterpret_cast<std::uint32_t*>(args.keys);
    auto* positions = reinterpret_cast<std::uint32_t*>(args.positions);
    cpu::parallel_for(args.count, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) {
            const auto at = static_cast<std::int64_t>(index[i]);
            positions[i] = static_cast<std::uint32_t>(i);
            keys[i] = args.sentinel;
            if (at == args.skip && at >= kNoRow) continue;
            if (at < 0 || at >= args.extent) {
                report_fault(args.fault, FaultCode::index_out_of_range, args.site, at, args.extent);
                continue;
            }
            std::uint32_t key = static_cast<std::uint32_t>(at) * args.dim_stride, left = static_cast<std::uint32_t>(i);
            for (int axis = rank - 1; axis > 0; axis--) {
                key += left % args.sizes[axis] * args.strides[axis];
                left /= args.sizes[axis];
            }
            keys[i] = key + left * args.strides[0];
        }
    });
}

struct BoolElement {
    using Value = std::uint32_t;
    std::uint8_t bits;
    static std::uint32_t load(BoolElement x) { return x.bits != 0; }
    static BoolElement store(std::uint32_t x) { return {static_cast<std::uint8_t>(x != 0)}; }
};

/// Integers come as unsigned ones, so that they wrap.
template <class E>
void add_segments(const SegmentArgs& args) {
    using Value = typename E::Value;
    constexpr std::int64_t kStrip = 512;
    const auto* source = reinterpret_cast<const E*>(args.source);
    auto* output = reinterpret_cast<E*>(args.output);
    const auto* starts = reinterpret_cast<const std::uint32_t*>(args.starts);
    const auto* order = reinterpret_cast<const std::uint32_t*>(args.order);
    const std::int64_t inner = args.inner, lines = static_cast<std::int64_t>(args.count) / inner,
                       step = args.inner_stride;
    cpu::parallel_for(lines, std::max<std::int64_t>(1, cpu::kGrain / inner), [&](std::int64_t begin, std::int64_t end) {
        Value sums[kStrip];
        for (std::int64_t line = begin; line < end; line++) {
            const std::uint32_t row = static_cast<std::uint32_t>(line % args.rows), first = starts[row],
                                last = starts[row + 1];
            if (first == last) continue;
            const auto* base = source + line / args.rows * args.outer_stride;
            for (std::int64_t strip = 0; strip < inner; strip += kStrip) {
                const std::int64_t n = std::min(kStrip, inner - strip);
                auto* out = output + line * inner + strip;
                for (std::int64_t i = 0; i < n; i++) sums[i] = E::load(out[i]);
                for (std::uint32_t k = first; k < last; k++) {
                    const auto* from = base + order[k] * args.row_stride + strip * step;
                    if (step == 1)
                        for (std::int64_t i = 0; i < n; i++) sums[i] = static_cast<Value>(sums[i] + E::load(from[i]));
                    else
                        for (std::int64_t i = 0; i < n; i++)
                            sums[i] = static_cast<Value>(sums[i] + E::load(from[i * step]));
                }
                for (std::int64_t i = 0; i < n; i++) out[i] = E::store(sums[i]);
            }
        }
    });
}

template <class T>
void add_in_order(const SegmentArgs& args) {
    const T* source = reinterpret_cast<const T*>(args.source);
    T* output = reinterpret_cast<T*>(args.output);
    const auto* keys = reinterpret_cast<const std::uint32_t*>(args.starts);
    for (std::uint64_t j = 0; j < args.count; j++)
        if (keys[j] < args.rows) output[keys[j]] = static_cast<T>(output[keys[j]] + source[j]);
}

}  // namespace

void scatter_in_order_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const SegmentArgs*>(raw);
    switch (dtype) {
        case DType::f64:
            return add_in_order<double>(args);
        case DType::f32:
            return add_in_order<float>(args);
        case DType::i64:
            return add_in_order<std::uint64_t>(args);
        default:
            return add_in_order<std::uint32_t>(args);
    }
}

void index_keys_i64_cpu(const void* raw, DType, const Spec& spec, Grid) {
    keys_of<std::int64_t>(*static_cast<const KeysArgs*>(raw), static_cast<int>(spec[1]));
}

void index_keys_i32_cpu(const void* raw, DType, const Spec& spec, Grid) {
    keys_of<std::int32_t>(*static_cast<const KeysArgs*>(raw), static_cast<int>(spec[1]));
}

void segment_starts_cpu(const void* raw, DType, const Spec&, Grid) {
    const auto& args = *static_cast<const KeysArgs*>(raw);
    const auto* keys = reinterpret_cast<const std::uint32_t*>(args.keys);
    auto* starts = reinterpret_cast<std::uint32_t*>(args.positions);
    std::uint32_t k = 0;
    for (std::uint32_t d = 0; d <= args.sentinel; d++) {
        while (k < args.count && keys[k] < d) k++;
        starts[d] = k;
    }
}

void segment_add_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const SegmentArgs*>(raw);
    switch (dtype) {
        case DType::f64:
            return add_segments<cpu::Plain<double>>(args);
        case DType::f32:
            return add_segments<cpu::Plain<float>>(args);
        case DType::f16:
            return add_segments<cpu::Half>(args);
        case DType::bf16:
            return add_segments<cpu::Bfloat>(args);
        case DType::boolean:
            return add_segments<BoolElement>(args);
        case DType::i64:
            return add_segments<cpu::Plain<std::uint64_t>>(args);
        case DType::i32:
            return add_segments<cpu::Plain<std::uint32_t>>(args);
        case DType::i16:
            return add_segments<cpu::Plain<std::uint16_t>>(args);
        default:
            return add_segments<cpu::Plain<std::uint8_t>>(args);
    }
}

}  // namespace vkml
