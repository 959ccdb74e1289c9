#include "vkml/ops/scan/scan.h"

#include <algorithm>
#include <span>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/rearrange/rearrange.h"
#include "vkml/ops/scan/scan_kernel.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr int kMaxKept = 3;
constexpr std::uint64_t kItems = 4;  // of scan.slang
// Invocations that fill a device which does not say how many cores it has.
constexpr std::uint64_t kDefaultUnits = 128, kInvocationsPerUnit = 1024;

struct Problem {
    Collapsed kept;  // strides of x, then of y
    std::int64_t x_step, y_step;
    std::uint64_t rows, length;
    bool beside;  // rows lie closer than the elements of one
    bool cpu;
};

const char* refuses_columns(const Problem& p, const Limits&) {
    if (!p.beside) return "the elements of a row lie beside each other";
    return p.rows < 32 ? "there are few rows" : nullptr;
}
constexpr Variant<Problem> kForms[] = {{"columns", refuses_columns}, {"rows", never<Problem>}};

Problem problem_of(const Tensor& x, const Tensor& y, int axis) {
    Shape shape = x.shape();
    Strides strides[] = {x.strides(), y.strides()};
    Problem p{.kept = {},
              .x_step = strides[0][axis],
              .y_step = strides[1][axis],
              .rows = 0,
              .length = static_cast<std::uint64_t>(shape[axis]),
              .beside = false,
              .cpu = x.device().is_cpu()};
    shape.erase(axis);
    for (Strides& s : strides) s.erase(axis);
    p.kept = collapse(shape, strides);
    p.rows = static_cast<std::uint64_t>(numel(p.kept.shape));
    p.beside = p.rows > 1 && p.kept.strides[0].back() < p.x_step;
    return p;
}

struct Cut {
    bool columns;
    std::uint32_t threads;
    std::uint32_t parts = 1, span;
};

Cut cut_of(std::string_view op, const Problem& p, const Limits& limits) {
    Cut cut{.columns = choose("scan.form", op, kForms, p, limits) == 0,
            .threads = limits.max_workgroup_invocations >= 256 ? 256u : 128u,
            .span = static_cast<std::uint32_t>(p.length)};
    if (p.cpu) return cut;
    const std::uint64_t wanted = kInvocationsPerUnit * (limits.compute_units ? limits.compute_units : kDefaultUnits);
    const std::uint64_t present = cut.columns ? p.rows : p.rows * cut.threads;
    const std::uint64_t least =
        cut.columns ? 256 : std::uint64_t{cut.threads} * kItems * 4;  // elements worth a part of their own
    const std::uint64_t parts = std::min(ceil_div(wanted, present), p.length / least);
    if (parts <= 1) return cut;
    cut.span = static_cast<std::uint32_t>(ceil_div(ceil_div(p.length, parts), least) * least);
    cut.parts = static_cast<std::uint32_t>(ceil_div(p.length, cut.span));
    return cut;
}

Grid grid_of(const Cut& cut, std::uint64_t rows) {
    return linear_grid(cut.columns ? ceil_div(rows * cut.parts, cut.threads) : rows * cut.parts);
}

void launch(const Problem& p, const Cut& cut, const Tensor& x, const Tensor& y) {
    Stream& on = stream_of(x);
    const bool widens = !is_floating(x.dtype());
    const auto rank = static_cast<std::uint32_t>(p.kept.shape.size());
    ScanArgs args{.x = x.address(),
                  .y = y.address(),
                  .carry = 0,
                  .kept = p.rows,
                  .x_strides = {},
                  .y_strides = {},
                  .sizes = {},
                  .length = static_cast<std::uint32_t>(p.length),
                  .span = cut.span,
                  .parts = cut.parts};
    for (std::uint32_t i = 0; i < rank; i++) {
        args.x_strides[i] = p.kept.strides[0][static_cast<int>(i)];
        args.y_strides[i] = p.kept.strides[1][static_cast<int>(i)];
        args.sizes[i] = static_cast<std::uint32_t>(p.kept.shape[static_cast<int>(i)]);
    }
    args.x_strides[3] = p.x_step;
    args.y_strides[3] = p.y_step;
    const Kernel& kernel = cut.columns ? scan_columns : scan_rows;
    if (cut.parts == 1) {
        on.launch(kernel, x.dtype(), Spec{cut.threads, rank, 0, widens, 0}, grid_of(cut, p.rows), args, {x}, {y});
        return;
    }
    const std::size_t bytes = p.rows * cut.parts *
                              itemsize(widens                    ? DType::i64
                                       : x.dtype() == DType::f64 ? DType::f64
                                                                 : DType::f32);
    const Storage totals = on.allocate(bytes), carry = on.allocate(bytes);
    ScanArgs first = args;
    first.y = totals->address;
    on.launch(kernel, x.dtype(), Spec{cut.threads, rank, 0, 1, 1}, grid_of(cut, p.rows), first, {x}, {totals});

    const auto row = static_cast<std::int64_t>(cut.parts);
    const ScanArgs second{.x = totals->address,
                          .y = carry->address,
                          .carry = 0,
                          .kept = p.rows,
                          .x_strides = {row, 0, 0, 1},
                          .y_strides = {row, 0, 0, 1},
                          .sizes = {},
                          .length = cut.parts,
                          .span = cut.parts,
                          .parts = 1};
    on.launch(scan_rows, x.dtype(), Spec{cut.threads, 1, 1, 1, 0}, linear_grid(p.rows), second, {totals}, {carry});

    args.carry = carry->address;
    on.launch(kernel, x.dtype(), Spec{cut.threads, rank, 0, widens, 0}, grid_of(cut, p.rows), args, {x, carry}, {y});
}

Tensor scan(std::string_view op, const Tensor& input, int axis) {
    const Tensor out = empty(input.shape(), is_floating(input.dtype()) ? input.dtype() : DType::i64, input.device());
    if (input.numel() == 0) return out;
    const Tensor flat = input.ndim() == 0 ? input.view(Layout({1}, {1}, input.offset())) : input;
    const Tensor target = out.ndim() == 0 ? out.view(Layout({1}, {1}, out.offset())) : out;
    Tensor x = flat;
    Problem p = problem_of(x, target, axis);
    if (p.kept.shape.size() > kMaxKept) {
        x = contiguous(flat.view(flat.layout()));
        p = problem_of(x, target, axis);
    }
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    check<NotImplementedError>(p.length < kMost && (p.kept.shape.size() == 1 || p.rows < kMost), op,
                               ": expected fewer than 2^31 elements along dim and 2^31 rows, got ", input.shape());
    launch(p, cut_of(op, p, stream_of(x).limits()), x, target);
    return record(op, out, {input}, keep_nothing, [op, axis](const Backward& b) -> Grads {
        if (b.grad().ndim() == 0) return {b.grad()};
        // From the other end by reversing: a driver was seen to read negative strides wrongly.
        return {flip(scan(op, flip(b.grad(), {axis}), axis), {axis})};
    });
}

}  // namespace

Tensor cumsum(const Tensor& input, std::int64_t dim) {
    return scan("cumsum", input, wrap_dim("cumsum", dim, input.ndim()));
}

}  // namespace vkml
