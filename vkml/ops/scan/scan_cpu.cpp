#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "vkml/core/float16.h"
#include "vkml/ops/scan/scan_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

template <class S, class A>
struct Plain {
    using Storage = S;
    using Acc = A;
    static A load(S stored) { return static_cast<A>(stored); }
    static S store(A value) { return static_cast<S>(value); }
};
struct Truth : Plain<std::uint8_t, std::int64_t> {
    static std::int64_t load(std::uint8_t stored) { return stored != 0; }
};
struct Half : Plain<std::uint16_t, float> {
    static float load(std::uint16_t stored) { return float_from_f16(stored); }
    static std::uint16_t store(float value) { return f16_from_float(value); }
};
struct Brain : Plain<std::uint16_t, float> {
    static float load(std::uint16_t stored) { return float_from_bf16(stored); }
    static std::uint16_t store(float value) { return bf16_from_float(value); }
};

constexpr std::int64_t kSpan = 16384;  // of a row, one thread's share
constexpr std::int64_t kChain = 32;    // additions in a row before a sum joins the next level
constexpr std::int64_t kTile = 64;     // rows beside each other, walked together

template <class Acc>
inline Acc plus(Acc a, Acc b) {
    if constexpr (std::is_integral_v<Acc>) return static_cast<Acc>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else return a + b;
}

/// One scan: elements in, elements or sums out.
template <class E>
struct Scan {
    using Acc = typename E::Acc;
    using Storage = typename E::Storage;
    const ScanArgs& args;
    int rank;
    bool to_sums;

    struct Row {
        std::int64_t x = 0, y = 0;
    };
    Row row_at(std::int64_t row) const {
        Row at;
        for (int axis = rank - 1; axis >= 0; axis--) {
            const std::int64_t index = axis > 0 ? row % args.sizes[axis] : row;
            at.x += index * args.x_strides[axis];
            at.y += index * args.y_strides[axis];
            if (axis > 0) row /= args.sizes[axis];
        }
        return at;
    }
    /// Elements [begin, end) of `n` rows that lie one stride apart, after `sums`, which become the sums through `end`.
    /// Nothing is written when `total` is set.
    template <bool total>
    void run(Row at, std::int64_t n, std::int64_t begin, std::int64_t end, Acc* sums) const {
        if (n == 1) run_row<total>(at, begin, end, *sums);
        else run_rows<total>(at, n, begin, end, sums);
    }
    template <bool total>
    void run_row(Row at, std::int64_t begin, std::int64_t end, Acc& running) const {
        const auto* x = reinterpret_cast<const Storage*>(args.x) + at.x;
        const std::int64_t step = args.x_strides[3];
        Acc top = running, middle = 0;
        for (std::int64_t block = begin, steps = 0; block < end; block += kChain) {
            const Acc before = plus(top, middle);
            Acc sum = 0;
            for (std::int64_t i = block; i < std::min(end, block + kChain); i++) {
                sum = plus(sum, E::load(x[i * step]));
                if constexpr (!total) write(at.y + i * args.y_strides[3], 1, 0, &before, &sum);
            }
            middle = plus(middle, sum);
            if (++steps % kChain != 0) continue;
            top = plus(top, middle);
            middle = 0;
        }
        running = plus(top, middle);
    }
    template <bool total>
    void run_rows(Row at, std::int64_t n, std::int64_t begin, std::int64_t end, Acc* sums) const {
        const auto* x = reinterpret_cast<const Storage*>(args.x) + at.x;
        const std::int64_t x_across = args.x_strides[rank - 1], y_across = args.y_strides[rank - 1];
        Acc top[kTile], middle[kTile] = {}, before[kTile], sum[kTile];
        std::copy(sums, sums + n, top);
        for (std::int64_t block = begin, steps = 0; block < end; block += kChain) {
            for (std::int64_t c = 0; c < n; c++) before[c] = plus(top[c], middle[c]);
            std::fill(sum, sum + n, Acc(0));
            for (std::int64_t i = block; i < std::min(end, block + kChain); i++) {
                const Storage* from = x + i * args.x_strides[3];
                for (std::int64_t c = 0; c < n; c++) sum[c] = plus(sum[c], E::load(from[c * x_across]));
                if constexpr (!total) write(at.y + i * args.y_strides[3], n, y_across, before, sum);
            }
            for (std::int64_t c = 0; c < n; c++) middle[c] = plus(middle[c], sum[c]);
            if (++steps % kChain != 0) continue;
            for (std::int64_t c = 0; c < n; c++) {
                top[c] = plus(top[c], middle[c]);
                middle[c] = 0;
            }
        }
        for (std::int64_t c = 0; c < n; c++) sums[c] = plus(top[c], middle[c]);
    }
    void write(std::int64_t offset, std::int64_t n, std::int64_t across, const Acc* before, const Acc* sum) const {
        if (to_sums) {
            Acc* y = reinterpret_cast<Acc*>(args.y) + offset;
            for (std::int64_t c = 0; c < n; c++) y[c * across] = plus(before[c], sum[c]);
        } else {
            Storage* y = reinterpret_cast<Storage*>(args.y) + offset;
            for (std::int64_t c = 0; c < n; c++) y[c * across] = E::store(plus(before[c], sum[c]));
        }
    }

    void operator()() const {
        const auto rows = static_cast<std::int64_t>(args.kept);
        const std::int64_t length = args.length, parts = (length + kSpan - 1) / kSpan;
        // Rows that lie beside each other are walked together; tiles do not cross the innermost kept axis.
        const std::int64_t inner = rank > 1 ? args.sizes[rank - 1] : rows;
        const bool beside = std::abs(args.x_strides[rank - 1]) < std::abs(args.x_strides[3]) || length <= 64;
        const std::int64_t tile_rows = beside ? kTile : 1;
        const std::int64_t tiles = (inner + tile_rows - 1) / tile_rows, all = rows / std::max<std::int64_t>(inner, 1) * tiles;
        std::vector<Acc> carry(static_cast<std::size_t>(rows * parts), Acc(0));
        const auto each = [&](const auto& body) {
            cpu::parallel_for(all * parts, std::max<std::int64_t>(1, cpu::kGrain / (std::min(tile_rows, inner) * std::min(length, kSpan))),
                              [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t item = begin; item < end; item++) {
                                      const std::int64_t tile = item / parts, part = item % parts;
                                      const std::int64_t column = tile % tiles * tile_rows, row = tile / tiles * inner + column;
                                      body(row, std::min(tile_rows, inner - column), part);
                                  }
                              });
        };
        if (parts > 1) {
            each([&](std::int64_t row, std::int64_t n, std::int64_t part) {
                Acc sums[kTile] = {};
                run<true>(row_at(row), n, part * kSpan, std::min(length, (part + 1) * kSpan), sums);
                for (std::int64_t c = 0; c < n; c++) carry[static_cast<std::size_t>((row + c) * parts + part)] = sums[c];
            });
            for (std::int64_t row = 0; row < rows; row++) {
                Acc before = 0;
                for (std::int64_t part = 0; part < parts; part++) {
                    Acc& own = carry[static_cast<std::size_t>(row * parts + part)];
                    const Acc next = plus(before, own);
                    own = before;
                    before = next;
                }
            }
        }
        each([&](std::int64_t row, std::int64_t n, std::int64_t part) {
            Acc sums[kTile];
            for (std::int64_t c = 0; c < n; c++) sums[c] = carry[static_cast<std::size_t>((row + c) * parts + part)];
            run<false>(row_at(row), n, part * kSpan, std::min(length, (part + 1) * kSpan), sums);
        });
    }
};

}  // namespace

void scan_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const ScanArgs*>(raw);
    const auto run = [&](auto element) { Scan<decltype(element)>{args, static_cast<int>(spec[1]), spec[3] != 0}(); };
    switch (dtype) {
        case DType::boolean: return run(Truth{});
        case DType::u8: return run(Plain<std::uint8_t, std::int64_t>{});
        case DType::i8: return run(Plain<std::int8_t, std::int64_t>{});
        case DType::i16: return run(Plain<std::int16_t, std::int64_t>{});
        case DType::i32: return run(Plain<std::int32_t, std::int64_t>{});
        case DType::i64: return run(Plain<std::int64_t, std::int64_t>{});
        case DType::f16: return run(Half{});
        case DType::bf16: return run(Brain{});
        case DType::f64: return run(Plain<double, double>{});
        default: return run(Plain<float, float>{});
    }
}

}  // namespace vkml
