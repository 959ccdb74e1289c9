#include "bind.h"
#include "vkml/ops/reduce/reduce.h"

namespace {

using namespace vkml;
using namespace vkml::python;

/// Registers a reduction as module function and as Tensor method, with torch's keywords.
void bind_reduction(nb::module_& m, TensorClass& tensor, const char* name, Tensor (*function)(const Tensor&, const Dims&, bool),
                    const char* doc) {
    const auto call = [function](const Tensor& input, const std::optional<Dims>& dim, bool keepdim) {
        nb::gil_scoped_release release;
        return function(input, dim.value_or(Dims{}), keepdim);
    };
    m.def(name, call, "input"_a, "dim"_a = nb::none(), "keepdim"_a = false, doc);
    tensor.def(name, call, "dim"_a = nb::none(), "keepdim"_a = false, doc);
}

}  // namespace

VKML_PYTHON(reduce) {
    bind_reduction(m, tensor, "sum", &sum, "Sum over the axes in dim; all of them without one. Integers and bool give int64.");
}
