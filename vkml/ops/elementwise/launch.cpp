#include "vkml/ops/elementwise/launch_internal.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

// Strided kernels divide 32-bit indices; larger tensors go in pieces of their outermost axis.
constexpr std::int64_t kLargestStrided = std::int64_t{1} << 31;
constexpr int kAxes = 6;

bool aligned(const Tensor& t) { return t.address() % 16 == 0; }

struct Pieces {
    const Elementwise& work;
    Stream& on;
    ElementwiseArgs args;
    OperandForm form_a, form_b;
    bool wide;
};

std::uint32_t threads(const Stream& on) { return std::min(256u, on.limits().max_workgroup_invocations); }

/// Elements per thread: 16 bytes of the operand type, at least four.
std::uint64_t per_thread(DType dtype) { return std::max<std::uint64_t>(4, 16 / itemsize(dtype)); }

void launch_one(const Pieces& pieces, int rank) {
    const Elementwise& work = pieces.work;
    const std::uint32_t group = threads(pieces.on);
    const Spec spec{group,
                    work.op,
                    static_cast<std::uint32_t>(pieces.form_a),
                    static_cast<std::uint32_t>(pieces.form_b),
                    static_cast<std::uint32_t>(rank),
                    pieces.wide ? 1u : 0u};
    const Grid grid = linear_grid(ceil_div(pieces.args.count, group * per_thread(work.dtype)));
    pieces.on.launch(work.kernel, work.dtype, spec, grid, pieces.args, {*work.a, *work.b}, {*work.out});
}

void launch_strided(Pieces pieces, const Shape& shape, Strides a, Strides b) {
    const std::int64_t count = numel(shape);
    if (count > kLargestStrided) {
        const std::int64_t inner = count / shape[0];
        const std::int64_t rows = std::max<std::int64_t>(1, kLargestStrided / inner);
        const auto item = static_cast<std::int64_t>(itemsize(pieces.work.dtype));
        const auto out_item = static_cast<std::int64_t>(itemsize(pieces.work.out->dtype()));
        for (std::int64_t row = 0; row < shape[0]; row += rows) {
            Pieces part = pieces;
            part.args.a += static_cast<Address>(row * a[0] * item);
            part.args.b += static_cast<Address>(row * b[0] * item);
            part.args.out += static_cast<Address>(row * inner * out_item);
            part.wide = part.args.out % 16 == 0;
            if (part.args.a % 16 != 0 && part.form_a == OperandForm::packed) part.form_a = OperandForm::packed_narrow;
            if (part.args.b % 16 != 0 && part.form_b == OperandForm::packed) part.form_b = OperandForm::packed_narrow;
            Shape rest = shape;
            rest[0] = std::min(rows, shape[0] - row);
            if (inner > kLargestStrided) {
                rest.erase(0);
                Strides a_rest = a, b_rest = b;
                a_rest.erase(0);
                b_rest.erase(0);
                launch_strided(part, rest, a_rest, b_rest);
            } else {
                launch_strided(part, rest, a, b);
            }
        }
        return;
    }
    pieces.args.count = static_cast<std::uint64_t>(count);
    for (int i = 0; i < shape.size(); i++) {
        pieces.args.sizes[i] = static_cast<std::uint32_t>(shape[i]);
        pieces.args.a_strides[i] = static_cast<std::int32_t>(a[i]);
        pieces.args.b_strides[i] = static_cast<std::int32_t>(b[i]);
    }
    launch_one(pieces, shape.size());
}

bool fits(const Strides& strides) {
    for (std::int64_t s : strides)
        if (s != static_cast<std::int32_t>(s)) return false;
    return true;
}

OperandForm form_of(const Tensor& t, const Shape& shape) {
    if (!t.defined()) return OperandForm::number;
    if (!t.is_contiguous() || t.shape() != shape) return OperandForm::strided;
    return aligned(t) ? OperandForm::packed : OperandForm::packed_narrow;
}

Strides strides_of(const Tensor& t, const Shape& shape) {
    return t.defined() ? expand(t.layout(), shape).strides : Dims::filled(shape.size(), 0);
}

}  // namespace

void launch_elementwise(const Elementwise& work) {
    const Tensor &a = *work.a, &b = *work.b, &out = *work.out;
    if (out.numel() == 0) return;
    Pieces pieces{.work = work,
                  .on = stream_of(out),
                  .args = {},
                  .form_a = form_of(a, out.shape()),
                  .form_b = form_of(b, out.shape()),
                  .wide = aligned(out)};
    pieces.args.a = a.defined() ? a.address() : 0;
    pieces.args.b = b.defined() ? b.address() : 0;
    pieces.args.out = out.address();
    pieces.args.count = static_cast<std::uint64_t>(out.numel());
    pieces.args.p = work.p;
    pieces.args.q = work.q;
    pieces.args.site = work.site;
    if (pieces.form_a != OperandForm::strided && pieces.form_b != OperandForm::strided) return launch_one(pieces, 1);
    const Strides both[] = {strides_of(a, out.shape()), strides_of(b, out.shape())};
    const Collapsed loop = collapse(out.shape(), both);
    if (loop.shape.size() > kAxes || !fits(loop.strides[0]) || !fits(loop.strides[1])) {
        // Rare: more axes than the arguments hold, or strides beyond 32 bits.
        const auto packed = [&](const Tensor& t) {
            return t.defined() ? clone(t.view(expand(t.layout(), out.shape()))) : Tensor();
        };
        const Tensor a_packed = packed(a), b_packed = packed(b);
        return launch_elementwise(
            {work.kernel, work.op, work.dtype, &a_packed, &b_packed, work.out, work.p, work.q, work.site});
    }
    launch_strided(pieces, loop.shape, loop.strides[0], loop.strides[1]);
}

std::uint64_t value_bits(const Scalar& number, DType dtype) {
    switch (dtype) {
        case DType::f16:
        case DType::bf16:
            return number.bits(DType::f32);
        case DType::boolean:
            return number.bits(DType::boolean);
        default:
            return number.bits(dtype);
    }
}

DType check_takes(std::string_view op, Takes takes, DType dtype) {
    switch (takes) {
        case Takes::real:
            return is_floating(dtype) ? dtype : default_dtype();
        case Takes::floating:
            check<DTypeError>(is_floating(dtype), op, ": expected a floating-point tensor, got ", dtype);
            break;
        case Takes::number:
            check<DTypeError>(dtype != DType::boolean, op, ": expected a number type, got bool");
            break;
        case Takes::integer:
            check<DTypeError>(!is_floating(dtype), op, ": expected an integer or bool tensor, got ", dtype);
            break;
        case Takes::any:
            break;
    }
    return dtype;
}

bool can_write_directly(const Tensor& target, const Tensor* a, const Tensor* b) {
    if (!target.is_contiguous()) return false;
    for (const Tensor* t : {a, b})
        if (t && t->defined() && t->storage() == target.storage() &&
            !(t->address() == target.address() && t->is_contiguous() && t->shape() == target.shape()))
            return false;
    return true;
}

}  // namespace vkml
