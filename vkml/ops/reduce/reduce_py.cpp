#include "bind.h"
#include "vkml/ops/reduce/reduce.h"

namespace {

using namespace vkml;
using namespace vkml::python;
using OptionalDims = std::optional<Dims>;
using OptionalDim = std::optional<std::int64_t>;

/// Registers a function and the Tensor method of the same name.
template <class F, class... Extra>
void both(nb::module_& m, TensorClass& tensor, const char* name, F function, const char* doc, const Extra&... extra) {
    m.def(name, function, "input"_a, extra..., doc, ReleaseGil());
    tensor.def(name, function, extra..., doc, ReleaseGil());
}

/// A reduction with torch's keywords.
void bind_reduction(nb::module_& m, TensorClass& tensor, const char* name,
                    Tensor (*function)(const Tensor&, const Dims&, bool), const char* doc) {
    both(
        m, tensor, name,
        [function](const Tensor& input, const OptionalDims& dim, bool keepdim) {
            return function(input, dim.value_or(Dims{}), keepdim);
        },
        doc, "dim"_a = nb::none(), "keepdim"_a = false);
}

void bind_moment(nb::module_& m, TensorClass& tensor, const char* name,
                 Tensor (*function)(const Tensor&, const Dims&, double, bool), const char* doc) {
    both(
        m, tensor, name,
        [function](const Tensor& input, const OptionalDims& dim, double correction, bool keepdim) {
            return function(input, dim.value_or(Dims{}), correction, keepdim);
        },
        doc, "dim"_a = nb::none(), "correction"_a = 1.0, "keepdim"_a = false);
}

using WithDim = Tensor (*)(const Tensor&, std::int64_t, bool);
void bind_position(nb::module_& m, TensorClass& tensor, const char* name, WithDim function,
                   Tensor (*flat)(const Tensor&), Tensor (*kept)(const Tensor&), const char* doc) {
    both(
        m, tensor, name,
        [=](const Tensor& input, const OptionalDim& dim, bool keepdim) {
            return dim ? function(input, *dim, keepdim) : keepdim ? kept(input) : flat(input);
        },
        doc, "dim"_a = nb::none(), "keepdim"_a = false);
}

using Pair = std::pair<Tensor, Tensor>;
void bind_extreme(nb::module_& m, TensorClass& tensor, const char* name, Tensor (*full)(const Tensor&),
                  Pair (*along)(const Tensor&, std::int64_t, bool), const char* doc) {
    both(m, tensor, name, full, doc);
    both(m, tensor, name, along, doc, "dim"_a, "keepdim"_a = false);
}

}  // namespace

VKML_PYTHON(reduce) {
    bind_reduction(m, tensor, "sum", &sum,
                   R"(Sum over the axes in dim; all of them without one. Integers and bool give int64.

Examples
--------
>>> vkml.sum(vkml.tensor([[1., 2.], [3., 4.]]), dim=0)
tensor([4., 6.])
>>> vkml.sum(vkml.tensor([True, True]))
tensor(2)
)");
    bind_reduction(m, tensor, "mean", &mean, R"(Mean over the axes in dim. Floats only.

Examples
--------
>>> vkml.mean(vkml.tensor([[1., 2.], [3., 6.]]), dim=0)
tensor([2., 4.])
)");
    bind_reduction(m, tensor, "prod", &prod, R"(Product over the axes in dim. Integers and bool give int64.

Examples
--------
>>> vkml.prod(vkml.tensor([[1, 2], [3, 4]]), dim=1)
tensor([ 2, 12])
)");
    bind_reduction(m, tensor, "amax", &amax,
                   R"(Largest element over the axes in dim; NaN wins, ties share the gradient.

Examples
--------
>>> vkml.amax(vkml.tensor([[1., 5.], [7., 3.]]), dim=1)
tensor([5., 7.])
)");
    bind_reduction(m, tensor, "amin", &amin,
                   R"(Smallest element over the axes in dim; NaN wins, ties share the gradient.

Examples
--------
>>> vkml.amin(vkml.tensor([[1., 5.], [7., 3.]]), dim=1)
tensor([1., 3.])
)");
    bind_reduction(m, tensor, "logsumexp", &logsumexp,
                   R"(log(sum(exp(x))) over the axes in dim, shifted by the maximum.

Examples
--------
>>> vkml.logsumexp(vkml.tensor([[0., 0.], [1000., 1000.]]), dim=1)
tensor([6.9315e-01, 1.0007e+03])
)");
    bind_reduction(m, tensor, "all", &all, R"(Whether all elements over the axes in dim are other than 0.

Examples
--------
>>> vkml.all(vkml.tensor([[1, 0], [2, 3]]), dim=1)
tensor([False,  True])
)");
    bind_reduction(m, tensor, "any", &any, R"(Whether any element over the axes in dim is other than 0.

Examples
--------
>>> vkml.any(vkml.tensor([[0, 0], [2, 3]]), dim=1)
tensor([False,  True])
)");
    both(
        m, tensor, "norm",
        [](const Tensor& input, double p, const OptionalDims& dim, bool keepdim) {
            return norm(input, p, dim.value_or(Dims{}), keepdim);
        },
        R"((sum |x|^p)^(1/p) over the axes in dim.

Examples
--------
>>> vkml.norm(vkml.tensor([3., 4.]))
tensor(5.)
>>> vkml.norm(vkml.tensor([3., 4.]), 1)
tensor(7.)
)",
        "p"_a = 2.0, "dim"_a = nb::none(), "keepdim"_a = false);
    bind_moment(m, tensor, "var", &vkml::var, R"(Variance over the axes in dim, divided by n - correction.

Examples
--------
>>> vkml.var(vkml.tensor([[1., 3.], [2., 8.]]), dim=1)
tensor([ 2., 18.])
)");
    bind_moment(m, tensor, "std", &vkml::std, R"(Standard deviation over the axes in dim, divided by n - correction.

Examples
--------
>>> vkml.std(vkml.tensor([[1., 3.], [2., 8.]]), dim=1)
tensor([1.4142, 4.2426])
)");
    bind_position(
        m, tensor, "argmax", &argmax, &argmax,
        [](const Tensor& t) {
            const Tensor i = argmax(t);
            return i.view(Layout(Dims::filled(t.ndim(), 1)));
        },
        R"(int64 position of the largest element along dim, or in the flattened input; the first of equals, the
first NaN.

Examples
--------
>>> vkml.argmax(vkml.tensor([[1., 5.], [7., 3.]]))
tensor(2)
>>> vkml.argmax(vkml.tensor([[1., 5.], [7., 3.]]), dim=1)
tensor([1, 0])
)");
    bind_position(
        m, tensor, "argmin", &argmin, &argmin,
        [](const Tensor& t) {
            const Tensor i = argmin(t);
            return i.view(Layout(Dims::filled(t.ndim(), 1)));
        },
        R"(int64 position of the smallest element along dim, or in the flattened input; the first of equals,
the first NaN.

Examples
--------
>>> vkml.argmin(vkml.tensor([[4., 5.], [7., 3.]]))
tensor(3)
>>> vkml.argmin(vkml.tensor([[4., 5.], [7., 3.]]), dim=1)
tensor([0, 1])
)");
    bind_extreme(m, tensor, "max", &vkml::max, &vkml::max,
                 R"(The largest element; with dim, (values, indices) along it.

Examples
--------
>>> vkml.max(vkml.tensor([[1., 5.], [7., 3.]]))
tensor(7.)
>>> vkml.max(vkml.tensor([[1., 5.], [7., 3.]]), dim=1)
(tensor([5., 7.]), tensor([1, 0]))
)");
    bind_extreme(m, tensor, "min", &vkml::min, &vkml::min,
                 R"(The smallest element; with dim, (values, indices) along it.

Examples
--------
>>> vkml.min(vkml.tensor([[4., 5.], [7., 3.]]))
tensor(3.)
>>> vkml.min(vkml.tensor([[4., 5.], [7., 3.]]), dim=1)
(tensor([4., 3.]), tensor([0, 1]))
)");
}
