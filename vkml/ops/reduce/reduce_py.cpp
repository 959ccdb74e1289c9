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
                   "Sum over the axes in dim; all of them without one. Integers and bool give int64.");
    bind_reduction(m, tensor, "mean", &mean, "Mean over the axes in dim. Floats only.");
    bind_reduction(m, tensor, "prod", &prod, "Product over the axes in dim. Integers and bool give int64.");
    bind_reduction(m, tensor, "amax", &amax,
                   "Largest element over the axes in dim; NaN wins, ties share the gradient.");
    bind_reduction(m, tensor, "amin", &amin,
                   "Smallest element over the axes in dim; NaN wins, ties share the gradient.");
    bind_reduction(m, tensor, "logsumexp", &logsumexp,
                   "log(sum(exp(x))) over the axes in dim, shifted by the maximum.");
    bind_reduction(m, tensor, "all", &all, "Whether all elements over the axes in dim are other than 0.");
    bind_reduction(m, tensor, "any", &any, "Whether any element over the axes in dim is other than 0.");
    both(
        m, tensor, "norm",
        [](const Tensor& input, double p, const OptionalDims& dim, bool keepdim) {
            return norm(input, p, dim.value_or(Dims{}), keepdim);
        },
        "(sum |x|^p)^(1/p) over the axes in dim.", "p"_a = 2.0, "dim"_a = nb::none(), "keepdim"_a = false);
    bind_moment(m, tensor, "var", &vkml::var, "Variance over the axes in dim, divided by n - correction.");
    bind_moment(m, tensor, "std", &vkml::std, "Standard deviation over the axes in dim, divided by n - correction.");
    bind_position(
        m, tensor, "argmax", &argmax, &argmax,
        [](const Tensor& t) {
            const Tensor i = argmax(t);
            return i.view(Layout(Dims::filled(t.ndim(), 1)));
        },
        "int64 position of the largest element along dim, or in the flattened input; the first of equals, the first "
        "NaN.");
    bind_position(
        m, tensor, "argmin", &argmin, &argmin,
        [](const Tensor& t) {
            const Tensor i = argmin(t);
            return i.view(Layout(Dims::filled(t.ndim(), 1)));
        },
        "int64 position of the smallest element along dim, or in the flattened input; the first of equals, the first "
        "NaN.");
    bind_extreme(m, tensor, "max", &vkml::max, &vkml::max,
                 "The largest element; with dim, (values, indices) along it.");
    bind_extreme(m, tensor, "min", &vkml::min, &vkml::min,
                 "The smallest element; with dim, (values, indices) along it.");
}
