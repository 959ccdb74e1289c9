#include <algorithm>

#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/attention/attention_internal.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml::attention {
namespace {

/// Keys of one part of the split form; a multiple of its tile.
constexpr std::int64_t kPartKeys = 256;

std::uint32_t word(std::int64_t n) { return static_cast<std::uint32_t>(n); }
std::uint64_t groups(std::int64_t batches, std::int64_t rows, std::int64_t tile) {
    return static_cast<std::uint64_t>(batches) *
           ceil_div(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(tile));
}
Address address(const Tensor& t) { return t.defined() ? t.address() : 0; }

/// Whether the kernels on cooperative matrices are those for more than 64 columns.
bool has_many_columns(const Problem& p) { return p.E > 64 || p.Ev > 64; }

/// Rows of a tile: kernels are compiled for these (BM and WARPS in the .slang files).
std::int64_t tile_rows(const Problem& p, Path path) {
    if (path == Path::cooperative) return has_many_columns(p) ? 128 : 64;
    return path == Path::cooperative_shared || path == Path::wide ? 64 : 32;
}

const Kernel& kernel_of(const Problem& p, Path path) {
    const bool wide = has_many_columns(p);
    if (path == Path::cooperative) return coopmat_kernels[wide];
    if (path == Path::cooperative_shared) return shared_kernels[wide];
    if (path == Path::emulated) return emulated_kernels[wide];
    return path == Path::wide ? wide_kernel : narrow_kernel;
}

/// What all the argument structs share.
template <class Args>
Args common_args(const Call& call, const Problem& p) {
    Args a{};
    a.query = address(p.query.tensor), a.key = address(p.key.tensor), a.value = address(p.value.tensor);
    a.mask = address(p.mask.tensor);
    a.q_b = p.query.b, a.q_h = p.query.h, a.k_b = p.key.b, a.k_h = p.key.h, a.v_b = p.value.b, a.v_h = p.value.h;
    a.m_b = p.mask.b, a.m_h = p.mask.h, a.m_row = p.mask.row;
    a.L = word(p.L), a.S = word(p.S), a.H = word(p.H), a.batches = word(p.batches());
    a.scale = static_cast<float>(call.scale);
    return a;
}

/// Few rows: the keys are shared out, and the parts merged.
void run_split(const Call& call, const Problem& p, AttentionArgs args, const Tensor& output, const Tensor& lse) {
    Stream& s = stream_of(output);
    const std::int64_t parts = (p.S + kPartKeys - 1) / kPartKeys, rows = p.batches() * p.rows();
    const std::uint32_t at_once = p.rows() >= 4 && !p.is_f64 ? 4 : p.rows() >= 2 ? 2 : 1;
    const Storage storage = s.allocate(static_cast<std::size_t>(rows * parts * (p.Ev + 2)) * (p.is_f64 ? 8 : 4));
    args.parts = storage->address;
    s.launch_drawn(split_kernel, call.query.dtype(), spec_of(call, p, at_once),
                   linear_grid(groups(p.batches(), p.rows(), at_once) * static_cast<std::uint64_t>(parts)), args,
                   call.draw, {p.query.tensor, p.key.tensor, p.value.tensor, p.mask.tensor}, {storage});
    const AttentionMergeArgs merge{storage->address, output.address(), address(lse), static_cast<std::uint64_t>(rows),
                                   word(p.Ev),       word(parts)};
    s.launch(merge_kernel, call.query.dtype(), Spec{call.masked()}, linear_grid(static_cast<std::uint64_t>(rows)),
             merge, {storage}, {output, lse});
}

}  // namespace

Tensor run_forward(const Call& call, const Problem& p, Path path, const Tensor& lse) {
    const Tensor output = empty(call.output_shape(), call.query.dtype(), call.query.device());
    AttentionArgs args = common_args<AttentionArgs>(call, p);
    args.output = output.address(), args.lse = address(lse);
    if (path == Path::split) {
        run_split(call, p, args, output, lse);
        return output;
    }
    stream_of(output).launch_drawn(kernel_of(p, path), call.query.dtype(), spec_of(call, p),
                                   linear_grid(groups(p.batches(), p.rows(), tile_rows(p, path))), args, call.draw,
                                   {p.query.tensor, p.key.tensor, p.value.tensor, p.mask.tensor}, {output, lse});
    return output;
}

namespace {

/// lse and the sum of grad * output, in pairs.
Tensor row_stats(const Problem& p, const Tensor& output, const Tensor& lse, const Tensor& grad) {
    const std::int64_t rows = p.batches() * p.rows();
    const Tensor stats = empty({rows, 2}, lse.dtype(), lse.device());
    const AttentionDeltaArgs args{
        output.address(), grad.address(), lse.address(), stats.address(), static_cast<std::uint64_t>(rows), word(p.Ev)};
    stream_of(output).launch(delta_kernel, output.dtype(), Spec{}, linear_grid(groups(1, rows, 8)), args,
                             {output, grad, lse}, {stats});
    return stats;
}

struct BackwardKernels {
    const Kernel *query = nullptr, *key = nullptr;
    std::int64_t rows = 0;  // of a tile
};
BackwardKernels backward_kernels(const Call& call, const Problem& p) {
    const bool wide = has_many_columns(p);
    switch (choose_backward(call, p)) {
        case Path::cooperative:
            return {&coopmat_query_kernels[wide], &coopmat_key_kernels[wide], 64};
        case Path::cooperative_shared:
            return {&shared_query_kernels[wide], &shared_key_kernels[wide], 64};
        case Path::emulated:
            return {&emulated_query_kernels[wide], &emulated_key_kernels[wide], 32};
        case Path::wide:
            return {&query_wide_kernel, &key_wide_kernel, 64};
        default:
            return {&query_narrow_kernel, &key_narrow_kernel, 32};
    }
}

Shape key_shape(const Call& call, const Problem& p, std::int64_t width) {
    Shape shape = call.lead;
    if (!shape.empty()) shape[shape.size() - 1] = p.H;
    shape.push_back(p.S);
    shape.push_back(width);
    return shape;
}

}  // namespace

Gradients run_backward(const Call& call, const Tensor& output, const Tensor& lse, const Tensor& given,
                       const bool (&needs)[3]) {
    const NoGrad off;
    Problem p = place(call);
    const Tensor grad = contiguous(given);
    p.vectors = p.vectors && grad.address() % 16 == 0;
    const DType dtype = output.dtype();
    Stream& s = stream_of(output);
    Gradients out;
    if (needs[0]) {
        Shape shape = call.lead;
        shape.push_back(p.L);
        shape.push_back(p.E);
        out.query = empty(shape, dtype, output.device());
    }
    if (needs[1]) out.key = empty(key_shape(call, p, p.E), dtype, output.device());
    if (needs[2]) out.value = empty(key_shape(call, p, p.Ev), dtype, output.device());
    const Tensor stats = row_stats(p, output, lse, grad);
    AttentionBackwardArgs args = common_args<AttentionBackwardArgs>(call, p);
    args.grad = grad.address(), args.stats = stats.address();
    // A pipeline must not depend on an address.
    const Spec spec = spec_of(call, p, p.is_cpu ? address(out.query) : 0);
    const BackwardKernels kernels = p.is_cpu ? BackwardKernels{} : backward_kernels(call, p);
    const auto launch = [&](const Kernel& kernel, std::int64_t rows, const Tensor& first, const Tensor& second) {
        args.first = address(first), args.second = address(second);
        s.launch_drawn(kernel, dtype, spec, linear_grid(groups(p.batches(), rows, kernels.rows)), args, call.draw,
                       {p.query.tensor, p.key.tensor, p.value.tensor, p.mask.tensor, grad, stats}, {first, second});
    };
    if (p.is_cpu) {
        args.first = address(out.key), args.second = address(out.value);
        s.launch_drawn(backward_kernel, dtype, spec, {}, args, call.draw,
                       {p.query.tensor, p.key.tensor, p.value.tensor, p.mask.tensor, grad, stats},
                       {out.query, out.key, out.value});
    } else {
        if (needs[0]) launch(*kernels.query, p.rows(), out.query, {});
        if (needs[1] || needs[2]) launch(*kernels.key, p.S, out.key, out.value);
    }
    if (needs[0]) out.query = sum_to(out.query, call.query.shape());
    if (needs[1]) out.key = sum_to(out.key, call.key.shape());
    if (needs[2]) out.value = sum_to(out.value, call.value.shape());
    return out;
}

}  // namespace vkml::attention
