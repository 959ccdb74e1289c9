#include "vkml/ops/copy/strided.h"

#include <algorithm>

#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr std::size_t kWide = 16;  // bytes of the widest access
// Offsets inside one dispatch are 32-bit, and so, on a driver that was met, are their bytes; larger tensors go in
// pieces of their outermost axis.
constexpr std::int64_t kLargestDispatch = std::int64_t{1} << 29;

struct Sides {
    Address packed, strided;
    Tensor packed_block, strided_block;
};

/// The widest item, up to 16 bytes, in which both sides can be moved; the loop then counts such items.
std::size_t widen(const Sides& sides, Collapsed& loop, std::size_t item) {
    Shape& shape = loop.shape;
    Strides& strides = loop.strides[0];
    const int last = shape.size() - 1;
    const auto fits = [&](std::size_t wide) {
        const auto by = static_cast<std::int64_t>(wide / item);
        if (strides[last] != 1 || shape[last] % by != 0) return false;
        if (sides.packed % wide != 0 || sides.strided % wide != 0) return false;
        for (int i = 0; i < last; i++)
            if (strides[i] % by != 0) return false;
        return true;
    };
    std::size_t wide = kWide;
    while (wide > item && !fits(wide)) wide /= 2;
    const auto by = static_cast<std::int64_t>(wide / item);
    shape[last] /= by;
    for (int i = 0; i < last; i++) strides[i] /= by;
    return wide;
}

struct Problem {
    const Shape& shape;
    const Strides& strides;
    std::size_t item;
    int unit;  // the axis of stride 1 behind which others lie, or -1
};

const char* refuses_wide(const Problem& p, const Limits&) {
    return p.item == kWide ? nullptr : "rows or addresses are no multiples of 16 bytes";
}

const char* refuses_transposed(const Problem& p, const Limits&) {
    constexpr std::int64_t kLeast = 8;  // below it a tile is mostly empty
    if (p.unit < 0) return "no outer axis has stride 1";
    if (p.shape[p.unit] < kLeast || p.shape[p.shape.size() - 1] < kLeast) return "an axis of the tile is too short";
    return nullptr;
}

enum Path : std::size_t { kWidePath, kTransposedPath };
constexpr Variant<Problem> paths[] = {
    {"wide", refuses_wide}, {"transposed", refuses_transposed}, {"elements", never<Problem>}};

int unit_axis(const Shape& shape, const Strides& strides) {
    for (int i = 0; i + 1 < shape.size(); i++)
        if (strides[i] == 1 && strides[shape.size() - 1] != 1) return i;
    return -1;
}

/// Elements of 16 bits whose neighbours along both fast axes make aligned pairs.
bool in_pairs(const Problem& p, const Sides& sides) {
    const int last = p.shape.size() - 1;
    if (p.item != 2 || sides.strided % 4 != 0 || sides.packed % 4 != 0) return false;
    for (int i = 0; i <= last; i++)
        if (i != p.unit && p.strides[i] % 2 != 0) return false;
    return p.shape[last] % 2 == 0 && p.shape[p.unit] % 2 == 0;
}

void launch_piece(Stream& on, const Sides& sides, const Shape& shape, const Strides& strides, std::size_t item,
                  bool scatter) {
    CopyArgs args{.packed = sides.packed, .strided = sides.strided, .strides = {}, .sizes = {}, .count = 0};
    const int rank = shape.size();
    for (int i = 0; i < rank; i++) {
        args.strides[i] = strides[i];
        args.sizes[i] = static_cast<std::uint32_t>(shape[i]);
    }
    args.count = static_cast<std::uint32_t>(numel(shape));
    const Problem problem{shape, strides, item, unit_axis(shape, strides)};
    const std::size_t path = choose("copy.path", "copy", paths, problem, on.limits());
    Spec spec{kThreads, static_cast<std::uint32_t>(rank), scatter ? 1u : 0u};
    std::uint64_t groups = ceil_div(args.count, kThreads);
    const Kernel* kernel = path == kWidePath ? &copy_wide_kernel : &copy_kernel;
    if (path == kTransposedPath) {
        kernel = !scatter && in_pairs(problem, sides) ? &copy_transposed_pairs_kernel : &copy_transposed_kernel;
        spec = {kThreads, static_cast<std::uint32_t>(rank), scatter ? 1u : 0u,
                static_cast<std::uint32_t>(problem.unit)};
        const std::uint32_t tile = item <= 2 ? 64 : 32, width = args.sizes[rank - 1], height = args.sizes[problem.unit];
        groups = std::uint64_t{ceil_div(width, tile)} * ceil_div(height, tile) * (args.count / width / height);
    }
    const DType storage = path == kWidePath ? DType::none : storage_dtype(item);
    if (scatter)
        on.launch(*kernel, storage, spec, linear_grid(groups), args, {sides.packed_block}, {sides.strided_block});
    else
        on.launch(*kernel, storage, spec, linear_grid(groups), args, {sides.strided_block}, {sides.packed_block});
}

void launch_pieces(Stream& on, const Sides& sides, const Shape& shape, const Strides& strides, std::size_t item,
                   bool scatter) {
    if (numel(shape) > kLargestDispatch) {
        const std::int64_t inner = numel(shape) / shape[0];
        const std::int64_t rows = std::max<std::int64_t>(1, kLargestDispatch / inner);
        for (std::int64_t row = 0; row < shape[0]; row += rows) {
            Shape piece = shape;
            Sides part = sides;
            part.packed += static_cast<Address>(row * inner) * item;
            part.strided += static_cast<Address>(row * strides[0]) * item;
            if (inner > kLargestDispatch) {  // one row alone is too large: go inside it
                piece.erase(0);
                Strides rest = strides;
                rest.erase(0);
                launch_pieces(on, part, piece, rest, item, scatter);
                continue;
            }
            piece[0] = std::min(rows, shape[0] - row);
            launch_pieces(on, part, piece, strides, item, scatter);
        }
        return;
    }
    launch_piece(on, sides, shape, strides, item, scatter);
}

void copy_packed(Stream& on, const Tensor& from, const Tensor& to) {
    constexpr std::size_t kVector = 16, kVectorsPerGroup = kThreads * 4;
    const std::size_t bytes = from.nbytes(), item = itemsize(from.dtype());
    const bool aligned = from.address() % kVector == 0 && to.address() % kVector == 0;
    const std::size_t whole = aligned ? bytes / kVector * kVector : 0;
    if (whole > 0) {
        const CopyPackedArgs args{from.address(), to.address(), whole / kVector};
        on.launch(copy_packed_kernel, DType::none, Spec{kThreads},
                  linear_grid(ceil_div(args.vectors, kVectorsPerGroup)), args, {from}, {to});
    }
    on.copy(to.storage(), static_cast<std::size_t>(to.offset()) * item + whole, from.storage(),
            static_cast<std::size_t>(from.offset()) * item + whole, bytes - whole);
}

}  // namespace

void copy_strided(const Tensor& packed, const Tensor& strided, bool scatter) {
    if (packed.numel() == 0) return;
    Stream& on = stream_of(packed);
    if (strided.is_contiguous()) return copy_packed(on, scatter ? packed : strided, scatter ? strided : packed);
    const Strides one[] = {strided.strides()};
    Collapsed loop = collapse(strided.shape(), one);
    const Sides sides{packed.address(), strided.address(), packed, strided};
    const std::size_t item = widen(sides, loop, itemsize(packed.dtype()));
    launch_pieces(on, sides, loop.shape, loop.strides[0], item, scatter);
}

}  // namespace vkml
