#include "vkml/ops/cat/move.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "vkml/ops/cat/move.spv.h"
#include "vkml/ops/cat/move_args.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr int kRankLimit = 5;
constexpr std::int64_t kWide = 16;  // bytes

struct Unit16 {
    std::uint64_t half[2];
};

/// Walks the outer axes; the innermost one is a run.
template <class T>
void move_elements(MoveArgs args, int rank) {
    for (int axis = 0; axis < rank; axis++) {
        if (!(args.reversed >> axis & 1u)) continue;
        args.input += static_cast<Address>(args.from[axis] * (std::int64_t{args.sizes[axis]} - 1)) * sizeof(T);
        args.from[axis] = -args.from[axis];
    }
    const T* input = reinterpret_cast<const T*>(args.input);
    T* output = reinterpret_cast<T*>(args.output);
    const std::int64_t width = args.sizes[rank - 1], step = args.from[rank - 1], stride = args.to[rank - 1];
    cpu::parallel_for(args.count, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
            std::int64_t left = begin / width;
            const std::int64_t column = begin % width, n = std::min(width - column, end - begin);
            const T* from = input + column * step;
            T* to = output + column * stride;
            for (int axis = rank - 2; axis >= 0; axis--) {
                const std::int64_t index = left % args.sizes[axis];
                from += index * args.from[axis];
                to += index * args.to[axis];
                left /= args.sizes[axis];
            }
            if (step == 1 && stride == 1)
                std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
            else
                for (std::int64_t i = 0; i < n; i++) to[i * stride] = from[i * step];
            begin += n;
        }
    });
}

void move_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const MoveArgs*>(raw);
    const int rank = static_cast<int>(spec[1]);
    switch (itemsize(dtype)) {
        case 1:
            return move_elements<std::uint8_t>(args, rank);
        case 2:
            return move_elements<std::uint16_t>(args, rank);
        case 4:
            return move_elements<std::uint32_t>(args, rank);
        default:
            return move_elements<std::uint64_t>(args, rank);
    }
}

void move_wide_cpu(const void* raw, DType, const Spec& spec, Grid) {
    move_elements<Unit16>(*static_cast<const MoveArgs*>(raw), static_cast<int>(spec[1]));
}

constexpr Kernel move_kernel{"move", spv::move, move_cpu};
constexpr Kernel move_wide_kernel{"move_wide", spv::move_wide, move_wide_cpu};
static_assert(sizeof(MoveArgs) <= kMaxPushConstants);

/// Rewrites the loop in units of 16 bytes; false if a start, a stride or the run's length is not a multiple of it.
bool widen(Collapsed& loop, Address from, Address to, std::int64_t item) {
    const int last = loop.shape.size() - 1;
    bool fits = from % kWide == 0 && to % kWide == 0 && loop.shape[last] * item % kWide == 0;
    for (const Strides& strides : {loop.strides[0], loop.strides[1]}) {
        fits &= strides[last] == 1;
        for (int i = 0; i < last; i++) fits &= strides[i] * item % kWide == 0;
    }
    if (!fits) return false;
    loop.shape[last] = loop.shape[last] * item / kWide;
    for (Strides* strides : {&loop.strides[0], &loop.strides[1]})
        for (int i = 0; i < last; i++) (*strides)[i] = (*strides)[i] * item / kWide;
    return true;
}

}  // namespace

void move_into(const Tensor& target, const Tensor& source) {
    if (target.numel() == 0) return;
    const Strides sides[] = {source.strides(), target.strides()};
    Collapsed loop = collapse(target.shape(), sides);
    if (loop.shape.size() > kRankLimit || target.numel() > UINT32_MAX) {
        if (std::ranges::none_of(source.strides(), [](std::int64_t s) { return s < 0; }))
            return copy_into(target, source);
        for (std::int64_t i = 0; i < target.shape()[0]; i++)  // the copy kernel knows no reversed axes
            move_into(target.view(select(target.layout(), 0, i)), source.view(select(source.layout(), 0, i)));
        return;
    }
    const auto item = static_cast<std::int64_t>(itemsize(target.dtype()));
    const bool wide = widen(loop, source.address(), target.address(), item);
    MoveArgs args{.input = source.address(),
                  .output = target.address(),
                  .from = {},
                  .to = {},
                  .sizes = {},
                  .count = static_cast<std::uint32_t>(numel(loop.shape)),
                  .reversed = 0};
    for (int i = 0; i < loop.shape.size(); i++) {
        args.sizes[i] = static_cast<std::uint32_t>(loop.shape[i]);
        args.from[i] = std::abs(loop.strides[0][i]);
        if (loop.strides[0][i] < 0) {
            args.reversed |= 1u << i;
            args.input -= static_cast<Address>(args.from[i] * (loop.shape[i] - 1) * (wide ? kWide : item));
        }
        args.to[i] = loop.strides[1][i];
    }
    stream_of(target).launch(wide ? move_wide_kernel : move_kernel,
                             wide ? DType::i64 : storage_dtype(static_cast<std::size_t>(item)),
                             Spec{kThreads, static_cast<std::uint32_t>(loop.shape.size())},
                             linear_grid(ceil_div(args.count, kThreads)), args, {source}, {target});
}

}  // namespace vkml
