#include "vkml/ops/multi_tensor/multi_tensor.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/multi_tensor/multi_tensor_kernel.h"
#include "vkml/ops/multi_tensor/table.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

DType value_of(const Tensor& t) { return t.dtype() == DType::f64 ? DType::f64 : DType::f32; }

void check_list(const char* op, const std::vector<Tensor>& tensors) {
    check(!tensors.empty(), op, ": expected at least one tensor, got none");
    const Tensor& first = tensors[0];
    check<DTypeError>(is_floating(first.dtype()), op, ": expected floating-point tensors, got ", first.dtype());
    for (const Tensor& t : tensors) {
        check<DTypeError>(t.dtype() == first.dtype(), op, ": expected tensors of one dtype, got ", first.dtype(),
                          " and ", t.dtype());
        common_device(op, {&first, &t});
        check(t.is_contiguous(), op, ": expected packed tensors, got strides ", t.strides());
    }
}

void check_number(const char* op, const char* name, const Tensor& number, const Tensor& like) {
    check(number.numel() == 1, op, ": ", name, ": expected one element, got shape ", number.shape());
    check<DTypeError>(number.dtype() == value_of(like), op, ": ", name, ": expected ", value_of(like), ", got ",
                      number.dtype());
    common_device(op, {&like, &number});
}

TensorTable table_of(const std::vector<Tensor>& tensors, const std::vector<Tensor>& others = {}) {
    TensorTable table;
    for (std::size_t i = 0; i < tensors.size(); i++)
        if (tensors[i].numel() > 0)
            table.add({tensors[i].address(), others.empty() ? 0 : others[i].address()}, tensors[i].numel());
    return table;
}

/// Launches one pass; `reads` and `writes` are what the table reaches and what the arguments name.
void launch(const Kernel& kernel, TensorTable& table, MultiTensorArgs args, DType dtype, std::vector<Tensor> reads,
            const std::vector<Tensor>& writes, Device device) {
    args.entries = table.entries();
    args.groups = table.groups();
    if (args.entries == 0) return;
    const Tensor& words = table.upload(device);
    args.table = words.address();
    reads.push_back(words);
    stream(device).launch_many(kernel, dtype, Spec{kThreads}, linear_grid(args.groups), args, reads, writes);
}

}  // namespace

Tensor multi_norm(const std::vector<Tensor>& tensors) {
    check_list("multi_norm", tensors);
    const DType value = value_of(tensors[0]);
    const Device device = tensors[0].device();
    TensorTable table = table_of(tensors);
    if (table.entries() == 0) return zeros({}, value, device);
    const Tensor sums = empty({static_cast<std::int64_t>(table.groups())}, value, device);
    MultiTensorArgs args{};
    args.sums = sums.address();
    launch(multi_squares_kernel, table, args, tensors[0].dtype(), tensors, {sums}, device);
    Tensor norm = empty({}, value, device);
    stream(device).launch(multi_norm_kernel, value, Spec{kThreads}, {},
                          MultiNormArgs{sums.address(), norm.address(), table.groups()}, {sums}, {norm});
    return norm;
}

void multi_scale_(const std::vector<Tensor>& tensors, const Tensor& factor, const Tensor& found) {
    check_list("multi_scale_", tensors);
    check_number("multi_scale_", "factor", factor, tensors[0]);
    if (found.defined()) {
        check<DTypeError>(found.dtype() == DType::i32, "multi_scale_: found: expected int32, got ", found.dtype());
        check(found.numel() == 1, "multi_scale_: found: expected one element, got shape ", found.shape());
        common_device("multi_scale_", {&tensors[0], &found});
    }
    TensorTable table = table_of(tensors);
    MultiTensorArgs args{};
    args.factor = factor.address();
    args.found = found.defined() ? found.address() : 0;
    std::vector<Tensor> writes = tensors;
    if (found.defined()) writes.push_back(found);
    launch(multi_scale_kernel, table, args, tensors[0].dtype(), {factor}, writes, tensors[0].device());
    for (const Tensor& t : writes) wrote_in_place(t);
}

void multi_lerp_(const std::vector<Tensor>& targets, const std::vector<Tensor>& sources, const Tensor& weight) {
    check_list("multi_lerp_", targets);
    check_number("multi_lerp_", "weight", weight, targets[0]);
    check(targets.size() == sources.size(), "multi_lerp_: expected ", targets.size(), " sources, got ", sources.size());
    check_list("multi_lerp_", sources);
    check<DTypeError>(sources[0].dtype() == targets[0].dtype(), "multi_lerp_: expected sources of ", targets[0].dtype(),
                      ", got ", sources[0].dtype());
    common_device("multi_lerp_", {&targets[0], &sources[0]});
    for (std::size_t i = 0; i < targets.size(); i++)
        check(targets[i].shape() == sources[i].shape(), "multi_lerp_: expected a source of shape ", targets[i].shape(),
              ", got ", sources[i].shape());
    TensorTable table = table_of(targets, sources);
    MultiTensorArgs args{};
    args.factor = weight.address();
    std::vector<Tensor> reads = sources;
    reads.push_back(weight);
    launch(multi_lerp_kernel, table, args, targets[0].dtype(), reads, targets, targets[0].device());
    for (const Tensor& t : targets) wrote_in_place(t);
}

}  // namespace vkml
