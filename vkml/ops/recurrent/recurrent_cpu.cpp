#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/recurrent/recurrent_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vkml/ops/elementwise/elementwise_cpu.h"
#include "vkml/ops/recurrent/recurrent.h"
#include "vkml/ops/recurrent/recurrent_kernel.h"
#include "vkml/runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace recurrent_step {

constexpr std::int64_t kGrain = 4096;  // a unit costs several exponentials

/// Up to a vector of consecutive units of one sequence.
template <DType d>
struct Lanes {
    using Storage = typename elementwise::Element<d>::Storage;
    using Value = typename elementwise::Element<d>::Value;
    using V = Vec<Value>;
    static constexpr std::int64_t kMost = hn::MaxLanes(hn::ScalableTag<Value>());

    std::int64_t n;  // of them count

    HWY_INLINE V load(Address from, std::int64_t i) const {
        const Storage* p = reinterpret_cast<const Storage*>(from) + i;
        if constexpr (std::is_same_v<Storage, Value>)
            if (n == V::size()) return V::load(p);
        HWY_ALIGN Value held[kMost] = {};
        elementwise::widen<d>(p, held, n);
        return V::load(held);
    }
    HWY_INLINE V load_or_zero(Address from, std::int64_t i) const { return from ? load(from, i) : V(0); }
    HWY_INLINE void store(V v, Address to, std::int64_t i) const {
        Storage* p = reinterpret_cast<Storage*>(to) + i;
        if constexpr (std::is_same_v<Storage, Value>)
            if (n == V::size()) return v.store(p);
        HWY_ALIGN Value held[kMost];
        v.store(held);
        elementwise::narrow<d>(held, p, n);
    }
};

/// body(lanes, row, unit) over all units.
template <DType d, class Body>
void each(std::int64_t rows, std::int64_t width, const Body& body) {
    using V = typename Lanes<d>::V;
    cpu::parallel_for(rows * width, kGrain, [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
            const std::int64_t row = begin / width, unit = begin % width;
            const std::int64_t n = std::min({V::size(), width - unit, end - begin});
            body(Lanes<d>{n}, row, unit);
            begin += n;
        }
    });
}

template <DType d>
void forward(const RecurrentArgs& a, RecurrentCell kind) {
    using V = typename Lanes<d>::V;
    const std::int64_t w = a.width, count = kind == RecurrentCell::lstm ? 4 : kind == RecurrentCell::gru ? 3 : 1;
    each<d>(a.rows, w, [&](Lanes<d> at, std::int64_t row, std::int64_t unit) HWY_ATTR {
        const std::int64_t g = row * a.gates_row + unit, p = row * w * count + unit, state = row * a.state_row + unit;
        const auto sum = [&](std::int64_t i)
                             HWY_ATTR { return at.load(a.gates, g + i * w) + at.load(a.product, p + i * w); };
        V hidden;
        if (kind == RecurrentCell::tanh || kind == RecurrentCell::relu) {
            const V x = sum(0);
            hidden = kind == RecurrentCell::tanh ? math::tanh(x) : pick(x < V(0), V(0), x);
        } else {
            const V previous = at.load(a.previous, row * a.previous_row + unit);
            const V first = math::sigmoid(sum(0)), second = math::sigmoid(sum(1));
            if (kind == RecurrentCell::lstm) {
                const V cell = second * previous + first * math::tanh(sum(2));
                at.store(cell, a.cell, state);
                hidden = math::sigmoid(sum(3)) * math::tanh(cell);
            } else {
                const V fresh = math::tanh(at.load(a.gates, g + 2 * w) + first * at.load(a.product, p + 2 * w));
                hidden = fresh + second * (previous - fresh);
            }
        }
        at.store(hidden, a.hidden, state);
    });
}

template <DType d>
struct BackwardStep {
    using V = typename Lanes<d>::V;
    const RecurrentBackwardArgs& a;
    bool last;

    HWY_INLINE V sum(Lanes<d> at, std::int64_t g, std::int64_t i) const {
        return at.load(a.gates, g + i * a.width) + at.load(a.product, g + i * a.width);
    }
    HWY_INLINE V previous(Lanes<d> at, std::int64_t row, std::int64_t unit) const {
        return at.load(a.previous, row * a.previous_row + unit);
    }

    HWY_INLINE void lstm(Lanes<d> at, std::int64_t row, std::int64_t unit, V grad_hidden) const {
        const std::int64_t g = row * a.gates_row + unit, packed = row * a.width + unit, w = a.width;
        const V before = previous(at, row, unit), one(1);
        const V i = math::sigmoid(sum(at, g, 0)), f = math::sigmoid(sum(at, g, 1));
        const V c = math::tanh(sum(at, g, 2)), o = math::sigmoid(sum(at, g, 3));
        const V t = math::tanh(f * before + i * c);
        V grad_cell = at.load_or_zero(a.grad_cell, row * a.state_row + unit);
        if (!last) grad_cell = grad_cell + at.load(a.carry, packed);
        grad_cell = grad_cell + grad_hidden * o * (one - t * t);
        at.store(grad_cell * f, a.carry, packed);
        at.store(grad_cell * c * (i * (one - i)), a.grad_gates, g);
        at.store(grad_cell * before * (f * (one - f)), a.grad_gates, g + w);
        at.store(grad_cell * i * (one - c * c), a.grad_gates, g + 2 * w);
        at.store(grad_hidden * t * (o * (one - o)), a.grad_gates, g + 3 * w);
    }

    HWY_INLINE void gru(Lanes<d> at, std::int64_t row, std::int64_t unit, V grad_hidden) const {
        const std::int64_t g = row * a.gates_row + unit, packed = row * a.width + unit, w = a.width;
        const V before = previous(at, row, unit), one(1), y = at.load(a.product, g + 2 * w);
        const V r = math::sigmoid(sum(at, g, 0)), z = math::sigmoid(sum(at, g, 1));
        const V n = math::tanh(at.load(a.gates, g + 2 * w) + r * y);
        if (!last) grad_hidden = grad_hidden + at.load(a.carry, packed);
        at.store(grad_hidden * z, a.carry, packed);
        const V fresh = grad_hidden * (one - z) * (one - n * n);
        const V reset = fresh * y * (r * (one - r)), update = grad_hidden * (before - n) * (z * (one - z));
        at.store(reset, a.grad_gates, g);
        at.store(update, a.grad_gates, g + w);
        at.store(fresh, a.grad_gates, g + 2 * w);
        at.store(reset, a.grad_product, g);
        at.store(update, a.grad_product, g + w);
        at.store(fresh * r, a.grad_product, g + 2 * w);
    }

    void run(RecurrentCell kind) const {
        each<d>(a.rows, a.width, [&](Lanes<d> at, std::int64_t row, std::int64_t unit) HWY_ATTR {
            const std::int64_t g = row * a.gates_row + unit;
            V grad = at.load_or_zero(a.grad_hidden, row * a.state_row + unit);
            if (!last) grad = grad + at.load(a.later, row * a.width + unit);
            if (kind == RecurrentCell::lstm) return lstm(at, row, unit, grad);
            if (kind == RecurrentCell::gru) return gru(at, row, unit, grad);
            const V x = sum(at, g, 0), t = math::tanh(x);
            const V slope = kind == RecurrentCell::tanh ? V(1) - t * t : pick(x > V(0), V(1), V(0));
            at.store(grad * slope, a.grad_gates, g);
        });
    }
};

/// f<dtype>() for the dtype.
template <class F>
void with_float(DType dtype, const F& f) {
    switch (dtype) {
        case DType::f64:
            return f.template operator()<DType::f64>();
        case DType::f32:
            return f.template operator()<DType::f32>();
        case DType::f16:
            return f.template operator()<DType::f16>();
        default:
            return f.template operator()<DType::bf16>();
    }
}

}  // namespace recurrent_step

void recurrent_step_run(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const RecurrentArgs*>(raw);
    const auto kind = static_cast<RecurrentCell>(spec[1]);
    recurrent_step::with_float(dtype, [&]<DType d>() { recurrent_step::forward<d>(args, kind); });
}

void recurrent_step_backward_run(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const RecurrentBackwardArgs*>(raw);
    const auto kind = static_cast<RecurrentCell>(spec[1]);
    recurrent_step::with_float(dtype,
                               [&]<DType d>() { recurrent_step::BackwardStep<d>{args, spec[2] != 0}.run(kind); });
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
HWY_EXPORT(recurrent_step_run);
HWY_EXPORT(recurrent_step_backward_run);
void recurrent_step_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(recurrent_step_run)(args, dtype, spec, grid);
}
void recurrent_step_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid) {
    HWY_DYNAMIC_DISPATCH(recurrent_step_backward_run)(args, dtype, spec, grid);
}
}  // namespace vkml
#endif
