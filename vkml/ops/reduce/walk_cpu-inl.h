// Included once per instruction set: the two ways the CPU walks a reduction, generic over the fold. A Fold has
//   Element, State;  State identity();  State merge(State, State);  void finish(i, State);
//   State block(const Acc* v, n, position)                      n consecutive reduced elements, position of the first
//   void rows(State* s, const Acc* const v[4], count, n, position)  adds to n results one element of each of `count` <= 4 rows
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

/// Elements [begin, begin + count) along the axes: in place if they lie there as they are accumulated, else widened into `buffer`.
template <class E>
const typename E::Acc* fetch(const typename E::Storage* base, const Axes& axes, std::int64_t begin, std::int64_t count,
                             typename E::Acc* buffer) {
    using Acc = typename E::Acc;
    std::int64_t done = 0;
    while (done < count) {
        const std::int64_t n = axes.run(begin + done, count - done);
        const auto* from = base + axes.offset(begin + done);
        if constexpr (std::is_same_v<typename E::Storage, Acc>)
            if (n == count && axes.step() == 1) return from;
        widen<E>(from, axes.step(), n, buffer + done);
        done += n;
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

/// Results whose reduced elements lie beside each other.
template <class Fold>
void walk_rows(const ReduceArgs& args, const Spec& spec, const Fold& fold) {
    using E = typename Fold::Element;
    using State = typename Fold::State;
    const auto* x = reinterpret_cast<const typename E::Storage*>(args.x);
    const Axes kept = Axes::kept(args, spec), reduced = Axes::reduced(args, spec);
    const auto length = static_cast<std::int64_t>(args.reduced), rows = static_cast<std::int64_t>(args.kept);
    const std::int64_t chunks = std::max<std::int64_t>(1, (length + kRowChunk - 1) / kRowChunk);
    const auto merge = [&](const State& a, const State& b) { return fold.merge(a, b); };
    std::vector<State> partial(chunks > 1 ? static_cast<std::size_t>(rows * chunks) : 0);
    const auto range = [&](std::int64_t begin, std::int64_t end) {
        alignas(64) typename E::Acc buffer[kBlock];
        for (std::int64_t item = begin; item < end; item++) {
            const std::int64_t row = item / chunks, first = item % chunks * kRowChunk;
            const std::int64_t count = std::min(kRowChunk, length - first);
            const auto* base = x + kept.offset(row);
            const auto block = [&](std::int64_t b) {
                const std::int64_t at = first + b * kBlock, n = std::min(kBlock, first + count - at);
                return fold.block(fetch<E>(base, reduced, at, n, buffer), n, at);
            };
            const std::int64_t blocks = (count + kBlock - 1) / kBlock;
            const State s = blocks <= 0   ? fold.identity()
                            : blocks == 1 ? block(0)
                                          : fold_pairwise<State>(blocks, block, merge);
            if (chunks == 1) fold.finish(row, s);
            else partial[static_cast<std::size_t>(item)] = s;
        }
    };
    cpu::parallel_for(rows * chunks, std::max<std::int64_t>(1, cpu::kGrain / std::clamp<std::int64_t>(length, 1, kRowChunk)), range);
    if (chunks == 1) return;
    for (std::int64_t row = 0; row < rows; row++)
        fold.finish(row, fold_pairwise<State>(
                             chunks, [&](std::int64_t c) { return partial[static_cast<std::size_t>(row * chunks + c)]; }, merge));
}

inline constexpr std::int64_t kTile = 512;         // results side by side
inline constexpr std::int64_t kDepth = 32;         // rows chained before they join the tree
inline constexpr std::int64_t kColumnChunk = 512;  // rows, one thread's share

/// Folds rows [first, first + count) of a tile of `n` results, the first of them at `base`, in a pairwise tree over blocks of
/// kDepth. `levels` holds the pending blocks; the answer is levels[0].
template <class Fold>
void fold_tile(const Fold& fold, const typename Fold::Element::Storage* base, const Axes& along, std::int64_t across,
               const Axes& reduced, std::int64_t n, std::int64_t first, std::int64_t count,
               std::array<std::array<typename Fold::State, kTile>, 6>& levels) {
    using E = typename Fold::Element;
    using State = typename Fold::State;
    alignas(64) typename E::Acc buffers[4][kTile];
    const bool beside = along.step() == 1 && along.run(across, n) == n;
    const auto* tile = base + along.offset(across);
    const auto row_of = [&](std::int64_t row, typename E::Acc* buffer) -> const typename E::Acc* {
        const std::int64_t offset = reduced.offset(row);
        if (!beside) return fetch<E>(base + offset, along, across, n, buffer);
        if constexpr (std::is_same_v<typename E::Storage, typename E::Acc>) return tile + offset;
        else {
            widen<E>(tile + offset, 1, n, buffer);
            return buffer;
        }
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
            const typename E::Acc* v[4] = {};
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
    using Storage = typename Fold::Element::Storage;
    const auto* x = reinterpret_cast<const Storage*>(args.x);
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
            if (count <= 0) (*levels)[0].fill(fold.identity());
            else fold_tile(fold, x, kept, column, reduced, n, first, count, *levels);
            for (std::int64_t c = 0; c < n; c++) {
                if (chunks == 1) fold.finish(column + c, (*levels)[0][c]);
                else partial[static_cast<std::size_t>((column + c) * chunks + item % chunks)] = (*levels)[0][c];
            }
        }
    };
    const std::int64_t work = std::min(results, kTile) * std::clamp<std::int64_t>(length, 1, kColumnChunk);
    cpu::parallel_for(tiles * chunks, std::max<std::int64_t>(1, cpu::kGrain / work), range);
    if (chunks == 1) return;
    const auto finish = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++)
            fold.finish(i, fold_pairwise<State>(
                               chunks, [&](std::int64_t c) { return partial[static_cast<std::size_t>(i * chunks + c)]; },
                               [&](const State& a, const State& b) { return fold.merge(a, b); }));
    };
    cpu::parallel_for(results, std::max<std::int64_t>(1, cpu::kGrain / chunks), finish);
}

/// A number in the accumulator's type from its bits.
template <class Acc>
Acc divisor_of(const ReduceArgs& args) {
    if constexpr (std::is_same_v<Acc, double>) return std::bit_cast<double>(args.divisor[0] | std::uint64_t{args.divisor[1]} << 32);
    else if constexpr (std::is_same_v<Acc, float>) return std::bit_cast<float>(args.divisor[0]);
    else return 1;
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
