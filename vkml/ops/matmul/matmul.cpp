#include "vkml/ops/matmul/matmul.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

void check_operands(const Tensor& a, const Tensor& b) {
    check(a.ndim() >= 1 && b.ndim() >= 1, "matmul: expected rank >= 1, got ", a.shape(), " and ", b.shape());
    check<DTypeError>(a.dtype() == b.dtype(), "matmul: expected one dtype, got ", a.dtype(), " and ", b.dtype());
    check<DTypeError>(a.dtype() != DType::boolean, "matmul: expected a number type, got ", a.dtype());
    common_device("matmul", {&a, &b});
    check(a.size(-1) == b.size(b.ndim() == 1 ? 0 : -2), "matmul: expected inner sizes to agree, got ", a.shape(),
          " and ", b.shape());
    for (int i = 3; i <= std::min(a.ndim(), b.ndim()); i++)
        check(a.size(-i) == b.size(-i) || a.size(-i) == 1 || b.size(-i) == 1,
              "matmul: expected batch axes that broadcast, got ", a.shape(), " and ", b.shape());
}

/// A vector as the matrix it stands for.
Tensor as_row(const Tensor& t) { return t.ndim() == 1 ? unsqueeze(t, 0) : t; }
Tensor as_column(const Tensor& t) { return t.ndim() == 1 ? unsqueeze(t, 1) : t; }
Tensor flipped(const Tensor& t) { return transpose(t, -2, -1); }

Grads gradients(const Backward& b) {
    const Tensor left = b.input(0), right = b.input(1);
    Tensor g = b.grad();
    if (right.ndim() == 1) g = unsqueeze(g, -1);
    if (left.ndim() == 1) g = unsqueeze(g, -2);
    const Tensor rows = as_row(left), columns = as_column(right);
    Grads grads(2);
    if (b.needs(0)) grads[0] = reshape(sum_to(matmul(g, flipped(columns)), rows.shape()), left.shape());
    if (!b.needs(1)) return grads;
    if (columns.ndim() == 2 && rows.ndim() > 2 && g.numel() > 0 &&
        rows.numel() > 0)  // one matrix for a whole batch: one long sum over all rows
        grads[1] = matmul(flipped(reshape(rows, {-1, rows.size(-1)})), reshape(g, {-1, g.size(-1)}));
    else
        grads[1] = sum_to(matmul(flipped(rows), g), columns.shape());
    grads[1] = reshape(grads[1], right.shape());
    return grads;
}

}  // namespace

Tensor matmul(const Tensor& input, const Tensor& other) {
    check_operands(input, other);
    Tensor out;
    {
        NoGrad off;
        out = gemm("matmul", as_row(input), as_column(other));
        if (other.ndim() == 1) out = squeeze(out, {-1});
        if (input.ndim() == 1) out = squeeze(out, {other.ndim() == 1 ? -1 : -2});
    }
    return record("matmul", out, {input, other}, keep_inputs(0, 1), gradients);
}

}  // namespace vkml
