#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/gather.spv.h"
#include "vkml/ops/index/gather_args.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/index/index_kernels.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr int kRankLimit = 5;

template <class T, class Index>
void gather_elements(const GatherArgs& args, int rank) {
    const T* input = reinterpret_cast<const T*>(args.input);
    T* output = reinterpret_cast<T*>(args.output);
    const Index* index = reinterpret_cast<const Index*>(args.index);
    cpu::parallel_for(args.count, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) {
            auto at = static_cast<std::int64_t>(index[i]);
            if (at < 0 || at >= args.extent) {
                report_fault(args.fault, FaultCode::index_out_of_range, args.site, at, args.extent);
                at = 0;
            }
            std::int64_t offset = at * args.dim_stride;
            std::uint32_t left = static_cast<std::uint32_t>(i);
            for (int axis = rank - 1; axis > 0; axis--) {
                offset += static_cast<std::int64_t>(left % args.sizes[axis]) * args.strides[axis];
                left /= args.sizes[axis];
            }
            output[i] = input[offset + static_cast<std::int64_t>(left) * args.strides[0]];
        }
    });
}

template <class Index>
void gather_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const GatherArgs*>(raw);
    const int rank = static_cast<int>(spec[1]);
    switch (itemsize(dtype)) {
        case 1:
            return gather_elements<std::uint8_t, Index>(args, rank);
        case 2:
            return gather_elements<std::uint16_t, Index>(args, rank);
        case 4:
            return gather_elements<std::uint32_t, Index>(args, rank);
        default:
            return gather_elements<std::uint64_t, Index>(args, rank);
    }
}

constexpr Kernel kernel_i64{"gather", spv::gather_i64, gather_cpu<std::int64_t>};
constexpr Kernel kernel_i32{"gather", spv::gather_i32, gather_cpu<std::int32_t>};
static_assert(sizeof(GatherArgs) <= kMaxPushConstants);

Collapsed loop_over(const Tensor& input, int dim, const Shape& shape) {
    Strides strides = input.strides();
    if (input.ndim()) strides[dim] = 0;
    return collapse(shape, std::span(&strides, 1));
}

void launch(const Tensor& input, int dim, const Tensor& given, const Tensor& out) {
    check(out.numel() <= UINT32_MAX, "gather: expected fewer than 2^32 elements, got ", out.numel());
    const Tensor index = contiguous(given);
    Tensor from = input;
    Collapsed loop = loop_over(from, dim, out.shape());
    if (loop.shape.size() > kRankLimit) {
        // Cut down to what the index reaches and packed, at most three axes are left.
        Layout part = from.layout();
        for (int i = 0; i < part.rank(); i++)
            if (i != dim) part.shape[i] = out.shape()[i];
        from = contiguous(from.view(part));
        loop = loop_over(from, dim, out.shape());
    }
    Stream& on = stream_of(out);
    GatherArgs args{.input = from.address(),
                    .output = out.address(),
                    .index = index.address(),
                    .fault = on.fault_address(),
                    .strides = {},
                    .dim_stride = from.ndim() ? from.strides()[dim] : 0,
                    .extent = from.ndim() ? from.shape()[dim] : 1,
                    .sizes = {},
                    .count = static_cast<std::uint32_t>(out.numel()),
                    .site = fault_site("gather")};
    for (int i = 0; i < loop.shape.size(); i++) {
        args.strides[i] = loop.strides[0][i];
        args.sizes[i] = static_cast<std::uint32_t>(loop.shape[i]);
    }
    on.launch(index.dtype() == DType::i64 ? kernel_i64 : kernel_i32, storage_dtype(itemsize(out.dtype())),
              Spec{kThreads, static_cast<std::uint32_t>(loop.shape.size())},
              linear_grid(ceil_div(args.count, kThreads)), args, {from, index}, {out});
}

}  // namespace

Tensor gather(const Tensor& input, std::int64_t dim, const Tensor& index) {
    check_index_dtype("gather", index);
    common_device("gather", {&input, &index});
    const int axis = wrap_dim("gather", dim, input.ndim());
    check(index.ndim() == input.ndim() || (input.ndim() == 0 && index.ndim() == 1), "gather: index: expected rank ",
          input.ndim(), ", got ", index.shape());
    for (int i = 0; i < input.ndim(); i++)
        check(i == axis || index.shape()[i] <= input.shape()[i], "gather: index: expected at most ", input.shape(),
              " outside dim ", axis, ", got ", index.shape());
    Tensor out = empty(index.shape(), input.dtype(), input.device());
    if (out.numel() > 0) {
        check<IndexError>(input.numel() > 0, "gather: expected an index into a non-empty axis, got shape ",
                          input.shape());
        launch(input, axis, index, out);
    }
    return record("gather", out, {input, index}, keep_inputs(1),
                  [axis, shape = input.shape()](const Backward& b) -> Grads {
                      const Tensor& g = b.grad();
                      return {scatter_add(zeros(shape, g.dtype(), g.device()), axis, b.input(1), g), Tensor{}};
                  });
}

}  // namespace vkml
