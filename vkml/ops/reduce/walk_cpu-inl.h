// Included once per instruction set: the two ways the CPU walks a reduction, generic over the fold. A Fold has
//   Acc, State;  Element<Acc> element;  State identity();  State merge(State, State);  void finish(i, State* s, n)  n
//   <= kTile results from i on; State block(const Acc* v, n, position)                      n consecutive reduced
//   elements, position of the first void rows(State* s, const Acc* const v[4], count, n, position)  adds to n results
//   one element of each of `count` <= 4 rows
// Blocks, chunks and the trees over them are fixed by the shape, so results do not depend on the number of threads.
#if defined(VKML_OPS_REDUCE_WALK_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_OPS_REDUCE_WALK_CPU_INL_H_
#undef VKML_OPS_REDUCE_WALK_CPU_INL_H_
#else
#define VKML_OPS_REDUCE_WALK_CPU_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "vkml/ops/reduce/elements_cpu-inl.h"
#include "vkml/ops/reduce/structure.h"
#include "vkml/runtime/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {

/// The kept or the reduced axes of a problem.
struct Axes {
    const std::int64_t* strides;
    const std::uint32_t* sizes;
    int rank;

    static Axes kept(const ReduceArgs& a, const Spec& spec) { return {a.strides, a.sizes, static_cast<int>(spec[4])}; }
    static Axes reduced(const ReduceArgs& a, const Spec& spec) {
        return {a.strides + spec[4], a.sizes + spec[4], static_cast<int>(spec[5])};
    }
    std::int64_t offset(std::int64_t i) const {
        std::int64_t offset = 0;
        for (int axis = rank - 1; axis > 0; axis--) {
            offset += i % sizes[axis] * strides[axis];
            i /= sizes[axis];
        }
        return rank ? offset + i * strides[0] : 0;
    }
    std::int64_t step() const { return rank ? strides[rank - 1] : 0; }
    /// Elements from `i` on that lie `step()` apart.
    std::int64_t run(std::int64_t i, std::int64_t count) const {
        return rank > 1 ? std::min<std::int64_t>(count, sizes[rank - 1] - i % sizes[rank - 1]) : count;
    }
};

/// Elements [begin, begin + count) along the axes: in place if they lie there as they are accumulated, else widened
/// into `buffer`.
template <class Acc>
const Acc* fetch(const Element<Acc>& element, const std::byte* base, const Axes& axes, std::int64_t begin,
                 std::int64_t count, Acc* buffer) {
    std::int64_t n = axes.run(begin, count);
    const std::byte* from = base + axes.offset(begin) * element.size;
    if (element.in_place && n == count && axes.step() == 1) return reinterpret_cast<const Acc*>(from);
    element.load(from, axes.step(), n, buffer);
    for (std::int64_t done = n; done < count; done += n) {
        n = axes.run(begin + done, count - done);
        element.load(base + axes.offset(begin + done) * element.size, axes.step(), n, buffer + done);
    }
    return buffer;
}

/// Folds what make(0), make(1), ... give in a pairwise tree, keeping one state per level.
template <class State, class Make, class Merge>
State fold_pairwise(std::int64_t count, const Make& make, const Merge& merge) {
    State levels[64];
    int top = 0;
    for (std::int64_t i = 0; i < count; i++) {
        State s = make(i);
        for (std::int64_t k = i; k & 1; k >>= 1) s = merge(levels[--top], s);
        levels[top++] = s;
    }
    State s = levels[--top];
    while (top > 0) s = merge(levels[--top], s);
    return s;
}

inline constexpr std::int64_t kBlock = 4096;        // elements folded in registers
inline constexpr std::int64_t kRowChunk = 1 << 16;  // of a row, one thread's share
inline constexpr std::int64_t kBatch = 64;          // rows finished together

/// Results whose reduced elements lie beside each other.
template <class Fold>
void walk_rows(const ReduceArgs& args, const Spec& spec, const Fold& fold) {
    using State = typename Fold::State;
    const auto* x = reinterpret_cast<const std::byte*>(args.x);
    const Axes kept = Axes::kept(args, spec), reduced = Axes::reduced(args, spec);
    const auto length = static_cast<std::int64_t>(args.reduced), rows = static_cast<std::int64_t>(args.kept);
    const std::int64_t chunks = std::max<std::int64_t>(1, (length + kRowChunk - 1) / kRowChunk);
    const auto merge = [&](const State& a, const State& b) { return fold.merge(a, b); };
    std::vector<State> partial(chunks > 1 ? static_cast<std::size_t>(rows * chunks) : 0);
    const auto range = [&](std::int64_t begin, std::int64_t end) {
        alignas(64) typename Fold::Acc buffer[kBlock];
        State whole[kBatch];  // results that are finished together
        std::int64_t held = 0;
        for (std::int64_t item = begin; item < end; item++) {
            const std::int64_t row = item / chunks, first = item % chunks * kRowChunk;
            const std::int64_t count = std::min(kRowChunk, length - first);
            const std::byte* base = x + kept.offset(row) * fold.element.size;
            const auto block = [&](std::int64_t b) {
                const std::int64_t at = first + b * kBlock, n = std::min(kBlock, first + count - at);
                return fold.block(fetch(fold.element, base, reduced, at, n, buffer), n, at);
            };
            const std::int64_t blocks = (count + kBlock - 1) / kBlock;
            const State s = blocks <= 0   ? fold.identity()
                            : blocks == 1 ? block(0)
                                          : fold_pairwise<State>(blocks, block, merge);
            if (chunks > 1) {
                partial[static_cast<std::size_t>(item)] = s;
                continue;
            }
            whole[held++] = s;
            if (held < kBatch && item + 1 < end) continue;
            fold.finish(row + 1 - held, whole, held);
            held = 0;
        }
    };
    cpu::parallel_for(rows * chunks,
                      std::max<std::int64_t>(1, cpu::kGrain / std::clamp<std::int64_t>(length, 1, kRowChunk)), range);
    if (chunks == 1) return;
    for (std::int64_t row = 0; row < rows; row++) {
        State s = fold_pairwise<State>(
            chunks, [&](std::int64_t c) { return partial[static_cast<std::size_t>(row * chunks + c)]; }, merge);
        fold.finish(row, &s, 1);
    }
}

inline constexpr std::int64_t kTile = 512;         // results side by side
inline constexpr std::int64_t kDepth = 32;         // rows chained before they join the tree
inline constexpr std::int64_t kColumnChunk = 512;  // rows, one thread's share

/// Folds rows [first, first + count) of a tile of `n` results, the first of them at `base`, in a pairwise tree over
/// blocks of kDepth. `levels` holds the pending blocks; the answer is levels[0].
template <class Fold>
void fold_tile(const Fold& fold, const std::byte* base, const Axes& along, std::int64_t across, const Axes& reduced,
               std::int64_t n, std::int64_t first, std::int64_t count,
               std::array<std::array<typename Fold::State, kTile>, 6>& levels) {
    using Acc = typename Fold::Acc;
    using State = typename Fold::State;
    const Element<Acc>& element = fold.element;
    alignas(64) Acc buffers[4][kTile];
    const bool beside = along.step() == 1 && along.run(across, n) == n;
    const std::byte* tile = base + along.offset(across) * element.size;
    const auto row_of = [&](std::int64_t row, Acc* buffer) -> const Acc* {
        const std::int64_t offset = reduced.offset(row) * element.size;
        if (!beside) return fetch(element, base + offset, along, across, n, buffer);
        if (element.in_place) return reinterpret_cast<const Acc*>(tile + offset);
        element.load(tile + offset, 1, n, buffer);
        return buffer;
    };
    int top = 0;
    const auto join = [&] {  // levels[top - 1] takes in levels[top]
        top--;
        for (std::int64_t c = 0; c < n; c++) levels[top][c] = fold.merge(levels[top][c], levels[top + 1][c]);
    };
    const std::int64_t blocks = (count + kDepth - 1) / kDepth;
    for (std::int64_t b = 0; b < blocks; b++) {
        State* s = levels[top].data();
        std::fill(s, s + n, fold.identity());
        const std::int64_t end = std::min(first + count, first + (b + 1) * kDepth);
        for (std::int64_t row = first + b * kDepth; row < end; row += 4) {
            const int rows = static_cast<int>(std::min<std::int64_t>(4, end - row));
            const Acc* v[4] = {};
            for (int j = 0; j < rows; j++) v[j] = row_of(row + j, buffers[j]);
            fold.rows(s, v, rows, n, row);
        }
        for (std::int64_t k = b; k & 1; k >>= 1) join();
        top++;
    }
    top--;
    while (top > 0) join();
}

/// Results that lie beside each other, their reduced elements far apart.
template <class Fold>
void walk_columns(const ReduceArgs& args, const Spec& spec, const Fold& fold) {
    using State = typename Fold::State;
    const auto* x = reinterpret_cast<const std::byte*>(args.x);
    const Axes kept = Axes::kept(args, spec), reduced = Axes::reduced(args, spec);
    const auto length = static_cast<std::int64_t>(args.reduced), results = static_cast<std::int64_t>(args.kept);
    const std::int64_t chunks = std::max<std::int64_t>(1, (length + kColumnChunk - 1) / kColumnChunk);
    const std::int64_t tiles = (results + kTile - 1) / kTile;
    std::vector<State> partial(chunks > 1 ? static_cast<std::size_t>(results * chunks) : 0);
    const auto range = [&](std::int64_t begin, std::int64_t end) {
        const auto levels = std::make_unique<std::array<std::array<State, kTile>, 6>>();
        for (std::int64_t item = begin; item < end; item++) {
            const std::int64_t column = item / chunks * kTile, first = item % chunks * kColumnChunk;
            const std::int64_t n = std::min(kTile, results - column), count = std::min(kColumnChunk, length - first);
            if (count <= 0)
                (*levels)[0].fill(fold.identity());
            else
                fold_tile(fold, x, kept, column, reduced, n, first, count, *levels);
            if (chunks == 1) fold.finish(column, (*levels)[0].data(), n);
            for (std::int64_t c = 0; chunks > 1 && c < n; c++)
                partial[static_cast<std::size_t>((column + c) * chunks + item % chunks)] = (*levels)[0][c];
        }
    };
    const std::int64_t work = std::min(results, kTile) * std::clamp<std::int64_t>(length, 1, kColumnChunk);
    cpu::parallel_for(tiles * chunks, std::max<std::int64_t>(1, cpu::kGrain / work), range);
    if (chunks == 1) return;
    const auto finish = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) {
            State s = fold_pairwise<State>(
                chunks, [&](std::int64_t c) { return partial[static_cast<std::size_t>(i * chunks + c)]; },
                [&](const State& a, const State& b) { return fold.merge(a, b); });
            fold.finish(i, &s, 1);
        }
    };
    cpu::parallel_for(results, std::max<std::int64_t>(1, cpu::kGrain / chunks), finish);
}

template <class Fold>
void walk(const ReduceArgs& args, const Spec& spec, bool columns, const Fold& fold) {
    if (columns)
        walk_columns(args, spec, fold);
    else
        walk_rows(args, spec, fold);
}

/// A number in the accumulator's type from its bits.
template <class Acc>
Acc divisor_of(const ReduceArgs& args) {
    if constexpr (std::is_same_v<Acc, double>)
        return std::bit_cast<double>(args.divisor[0] | std::uint64_t{args.divisor[1]} << 32);
    else if constexpr (std::is_same_v<Acc, float>)
        return std::bit_cast<float>(args.divisor[0]);
    else
        return 1;
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
