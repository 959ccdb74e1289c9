// Included once per Highway target by the CPU forms of row kernels.
#if defined(VKML_RUNTIME_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_RUNTIME_CPU_ROWS_INL_H_
#undef VKML_RUNTIME_CPU_ROWS_INL_H_
#else
#define VKML_RUNTIME_CPU_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "hwy/highway.h"
#include "vkml/core/float16.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/rows.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements as they lie in memory. Value is what is computed with.
struct ElementF64 {
    using Stored = double;
    using Value = double;
    static double load(double s) { return s; }
    static double store(double v) { return v; }
};
struct ElementF32 {
    using Stored = float;
    using Value = float;
    static float load(float s) { return s; }
    static float store(float v) { return v; }
};
struct ElementF16 {
    using Stored = std::uint16_t;
    using Value = float;
    static float load(std::uint16_t s) { return float_from_f16(s); }
    static std::uint16_t store(float v) { return f16_from_float(v); }
};
struct ElementBF16 {
    using Stored = std::uint16_t;
    using Value = float;
    static float load(std::uint16_t s) { return float_from_bf16(s); }
    static std::uint16_t store(float v) { return bf16_from_float(v); }
};

template <class E>
inline constexpr bool kIsValue = std::is_same_v<typename E::Stored, typename E::Value>;

/// n elements, `step` apart, as values.
template <class E>
void load_run(const typename E::Stored* p, std::int64_t step, std::int64_t n, typename E::Value* out) {
    std::int64_t i = 0;
    if constexpr (std::is_same_v<E, ElementF16> || std::is_same_v<E, ElementBF16>) {
        const hn::ScalableTag<float> d;
        const hn::Rebind<std::uint16_t, decltype(d)> d16;
        const hn::RebindToUnsigned<decltype(d)> du;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        if (step == 1)
            for (; i + lanes <= n; i += lanes) {
                const auto bits = hn::LoadU(d16, p + i);
                if constexpr (std::is_same_v<E, ElementBF16>) {
                    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits))), d, out + i);
                } else {
                    const hn::Rebind<hwy::float16_t, decltype(d)> d_half;
                    hn::StoreU(hn::PromoteTo(d, hn::BitCast(d_half, bits)), d, out + i);
                }
            }
    }
    for (; i < n; i++) out[i] = E::load(p[i * step]);
}

/// The same back, rounded once.
template <class E>
void store_run(const typename E::Value* in, std::int64_t n, std::int64_t step, typename E::Stored* p) {
    std::int64_t i = 0;
    if constexpr (std::is_same_v<E, ElementBF16>) {
        const hn::ScalableTag<float> d;
        const hn::Rebind<std::uint16_t, decltype(d)> d16;
        const hn::RebindToUnsigned<decltype(d)> du;
        const hn::RebindToSigned<decltype(d)> di;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        if (step == 1)
            for (; i + lanes <= n; i += lanes) {
                const auto v = hn::LoadU(d, in + i);
                const auto u = hn::BitCast(du, v);
                const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1u));
                auto r = hn::ShiftRight<16>(hn::Add(hn::Add(u, hn::Set(du, 0x7fffu)), odd));
                r = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 0x7fc0u), r);
                hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, r)), d16, p + i);
            }
    }
#if HWY_TARGET <= HWY_AVX2
    if constexpr (std::is_same_v<E, ElementF16>) {
        const hn::ScalableTag<float> d;
        const hn::Rebind<hwy::float16_t, decltype(d)> d_half;
        const hn::Rebind<std::uint16_t, decltype(d)> d16;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        if (step == 1)
            for (; i + lanes <= n; i += lanes)
                hn::StoreU(hn::BitCast(d16, hn::DemoteTo(d_half, hn::LoadU(d, in + i))), d16, p + i);
    }
#endif
    for (; i < n; i++) p[i * step] = E::store(in[i]);
}

/// Vectors over n values, the last one padded with `fill`: body(vector, index).
template <class V, class Body>
HWY_INLINE void each_vector(const V* in, std::int64_t n, V fill, const Body& body) {
    const hn::ScalableTag<V> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) body(hn::LoadU(d, in + i), i);
    if (i < n) {
        HWY_ALIGN V tail[hn::MaxLanes(d)];
        std::fill(tail, tail + lanes, fill);
        std::copy(in + i, in + n, tail);
        body(hn::Load(d, tail), i);
    }
}

template <class V, class Vector>
HWY_INLINE void store_vector(const Vector& v, V* out, std::int64_t i, std::int64_t n) {
    const hn::ScalableTag<V> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (i + lanes <= n) {
        hn::StoreU(v, d, out + i);
        return;
    }
    HWY_ALIGN V tail[hn::MaxLanes(d)];
    hn::Store(v, d, tail);
    std::copy(tail, tail + (n - i), out + i);
}

/// Offset of a row in x, and of its first element in packed tensors.
inline std::int64_t strided_offset(const RowArgs& a, int rank, std::int64_t row) {
    std::int64_t offset = 0;
    for (int i = rank - 1; i > 0; i--) {
        offset += row % a.sizes[i - 1] * a.strides[i];
        row /= a.sizes[i - 1];
    }
    return offset + row * a.strides[0];
}
inline std::int64_t packed_offset(const RowArgs& a, std::int64_t row) {
    return row / a.inner * a.inner * a.cols + row % a.inner;
}

/// One row as values in a piece, whatever its strides.
template <class V>
struct RowView {
    const V* x;
    const V* second;  // null without one
    V* y;             // null, or room for the values where nothing is stored
    std::int64_t row, cols;
    bool alone;  // few rows: the threads are free to share this one
};

/// body(RowView) for every row, in parallel over rows if they are many.
template <class E, class Body>
void each_row(const RowArgs& a, int rank, const Body& body) {
    using Stored = typename E::Stored;
    using Value = typename E::Value;
    const auto* x = reinterpret_cast<const Stored*>(a.x);
    const auto* second = reinterpret_cast<const Stored*>(a.second);
    auto* y = reinterpret_cast<Stored*>(a.y);
    const auto rows = static_cast<std::int64_t>(a.rows), cols = static_cast<std::int64_t>(a.cols);
    const auto inner = static_cast<std::int64_t>(a.inner);
    const bool alone = rows < cpu::thread_count();
    const auto run = [&](std::int64_t begin, std::int64_t end) {
        std::vector<Value> x_values, second_values;
        for (std::int64_t row = begin; row < end; row++) {
            const Stored* from = x + strided_offset(a, rank, row);
            const std::int64_t packed = packed_offset(a, row);
            RowView<Value> view{nullptr, nullptr, nullptr, row, cols, alone};
            bool direct = false;
            if constexpr (kIsValue<E>) {
                direct = a.x_step == 1 && inner == 1;
                if (direct)
                    view = {from, second ? second + packed : nullptr, y ? y + packed : nullptr, row, cols, alone};
            }
            if (!direct) {
                x_values.resize(static_cast<std::size_t>(cols));
                load_run<E>(from, a.x_step, cols, x_values.data());
                if (second) {
                    second_values.resize(static_cast<std::size_t>(cols));
                    load_run<E>(second + packed, inner, cols, second_values.data());
                }
                view = {x_values.data(), second ? second_values.data() : nullptr, x_values.data(), row, cols, alone};
            }
            body(view);
            if (!direct && y) store_run<E>(view.y, cols, inner, y + packed);
        }
    };
    if (alone)
        run(0, rows);
    else
        cpu::parallel_for(rows, std::max<std::int64_t>(1, cpu::kGrain / 4 / cols), run);
}

/// Pieces of a row are reduced one by one and merged in order, so that the bits do not depend on how many threads there
/// are.
inline constexpr std::int64_t kPiece = 16384;

/// body(piece, begin, end) over the pieces of [0, n).
template <class Body>
void each_piece(std::int64_t n, bool parallel, const Body& body) {
    const std::int64_t pieces = (n + kPiece - 1) / kPiece;
    const auto run = [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t p = first; p < last; p++) body(p, p * kPiece, std::min(n, (p + 1) * kPiece));
    };
    if (parallel && pieces > 1)
        cpu::parallel_for(pieces, 1, run);
    else
        run(0, pieces);
}

/// Sum of piece(begin, end), each a double.
template <class Piece>
double sum_pieces(std::int64_t n, bool parallel, const Piece& piece) {
    if (n <= kPiece) return piece(0, n);
    std::vector<double> parts(static_cast<std::size_t>((n + kPiece - 1) / kPiece));
    each_piece(n, parallel, [&](std::int64_t p, std::int64_t begin, std::int64_t end) {
        parts[static_cast<std::size_t>(p)] = piece(begin, end);
    });
    double sum = 0;
    for (double part : parts) sum += part;
    return sum;
}

/// Sum of term(vector index, vector) over a piece of at most kPiece values: four chains of vectors, cut every 2048
/// values into a double.
template <class V, class Term>
double sum_terms(const V* in, std::int64_t n, V fill, const Term& term) {
    const hn::ScalableTag<V> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    double total = 0;
    for (std::int64_t begin = 0; begin < n; begin += 2048) {
        const std::int64_t end = std::min(n, begin + 2048);
        auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
        std::int64_t i = begin;
        for (; i + 4 * lanes <= end; i += 4 * lanes) {
            s0 = hn::Add(s0, term(hn::LoadU(d, in + i), i));
            s1 = hn::Add(s1, term(hn::LoadU(d, in + i + lanes), i + lanes));
            s2 = hn::Add(s2, term(hn::LoadU(d, in + i + 2 * lanes), i + 2 * lanes));
            s3 = hn::Add(s3, term(hn::LoadU(d, in + i + 3 * lanes), i + 3 * lanes));
        }
        each_vector(in + i, end - i, fill, [&](auto v, std::int64_t k) { s0 = hn::Add(s0, term(v, i + k)); });
        HWY_ALIGN V sums[hn::MaxLanes(d)];
        hn::Store(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), d, sums);
        for (std::int64_t k = 0; k < lanes; k++) total += static_cast<double>(sums[k]);
    }
    return total;
}

/// Neighbouring rows that are also neighbours in memory: a block of columns, handled as vectors across them.
template <class E>
struct ColumnBlock {
    const typename E::Stored* x;
    const typename E::Stored* second;
    typename E::Stored* y;
    std::int64_t x_step, y_step, cols, count;  // element e of column c: x[e * x_step + c]; count columns
    std::int64_t row;                          // of the first column
};
inline constexpr std::int64_t kColumns = 64;

inline bool has_columns(const RowArgs& a, int rank) { return a.inner > 1 && a.x_step != 1 && a.strides[rank - 1] == 1; }

template <class E, class Body>
void each_block(const RowArgs& a, int rank, const Body& body) {
    using Stored = typename E::Stored;
    const auto* x = reinterpret_cast<const Stored*>(a.x);
    const auto* second = reinterpret_cast<const Stored*>(a.second);
    auto* y = reinterpret_cast<Stored*>(a.y);
    const auto rows = static_cast<std::int64_t>(a.rows), inner = static_cast<std::int64_t>(a.inner);
    const std::int64_t length = rank > 1 ? a.sizes[rank - 2] : rows;
    const std::int64_t grain = std::max<std::int64_t>(16, cpu::kGrain / 4 / std::max<std::int64_t>(1, a.cols));
    cpu::parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end;) {
            const std::int64_t count = std::min({kColumns, end - row, inner - row % inner, length - row % length});
            const std::int64_t packed = packed_offset(a, row);
            body(ColumnBlock<E>{x + strided_offset(a, rank, row), second ? second + packed : nullptr,
                                y ? y + packed : nullptr, a.x_step, inner, static_cast<std::int64_t>(a.cols), count,
                                row});
            row += count;
        }
    });
}

/// row(RowView) or, where rows are neighbours in memory, block(ColumnBlock).
template <class E, class Row, class Block>
void each_row_or_block(const RowArgs& a, int rank, const Row& row, const Block& block) {
    if (has_columns(a, rank))
        each_block<E>(a, rank, block);
    else
        each_row<E>(a, rank, row);
}

/// A run of a block's row as values: in place where they are, else in `buffer`.
template <class E>
const typename E::Value* block_values(const typename E::Stored* p, std::int64_t n, typename E::Value* buffer) {
    if constexpr (kIsValue<E>)
        return p;
    else {
        load_run<E>(p, 1, n, buffer);
        return buffer;
    }
}

/// Calls run(E{}) with the element of a floating dtype.
template <class Run>
void with_element(DType dtype, const Run& run) {
    switch (dtype) {
        case DType::f64:
            return run(ElementF64{});
        case DType::f16:
            return run(ElementF16{});
        case DType::bf16:
            return run(ElementBF16{});
        default:
            return run(ElementF32{});
    }
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
