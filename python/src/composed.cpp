#include "module.h"

namespace vkml::python {
namespace {

/// A method whose body is the function of that name in vkml/_composed.py.
auto composed(const char* name) {
    return [name](nb::handle self, const nb::args& args, const nb::kwargs& kwargs) -> nb::object {
        return nb::module_::import_("vkml._composed").attr(name)(self, *args, **kwargs);
    };
}

}  // namespace
}  // namespace vkml::python

VKML_PYTHON(composed) {
    using namespace vkml::python;
    tensor
        .def("unbind", composed("unbind"), nb::sig("def unbind(self, dim: int = 0) -> tuple[Tensor, ...]"),
             "The slices along an axis, as views without it.")
        .def("diagonal", composed("diagonal"),
             nb::sig("def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor"),
             "The elements [..., i, i + offset] of two axes, as the last axis.")
        .def("scatter", composed("scatter"),
             nb::sig("def scatter(self, dim: int, index: Tensor, src: Tensor | float) -> Tensor"),
             "A copy with src written where index says along dim.")
        .def("take_along_dim", composed("take_along_dim"),
             nb::sig("def take_along_dim(self, indices: Tensor, dim: int | None = None) -> Tensor"),
             "gather() of operands that broadcast beside dim.")
        .def(
            "isclose", composed("isclose"),
            nb::sig("def isclose(self, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) "
                    "-> Tensor"),
            "Where |self - other| <= atol + rtol * |other|.")
        .def("allclose", composed("allclose"),
             nb::sig("def allclose(self, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = "
                     "False) -> bool"),
             "Whether isclose() holds everywhere. Waits for the device.")
        .def("argwhere", composed("argwhere"), nb::sig("def argwhere(self) -> Tensor"),
             "The indices of the elements that are not 0. Waits for the device.")
        .def("bincount", composed("bincount"),
             nb::sig("def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor"),
             "How often each integer occurs, or the sum of its weights. Waits for the device.");
}
