#include "module.h"

namespace vkml::python {
namespace {

nb::object callable(const char* kind, nb::handle self, std::int64_t value) {
    return nb::module_::import_("vkml._tensor").attr(kind)(value, self);
}

nb::object strides_in_bytes(const Tensor& t) {
    Dims bytes = t.strides();
    for (std::int64_t& stride : bytes) stride *= static_cast<std::int64_t>(itemsize(t.dtype()));
    return nb::cast(bytes);
}

nb::object stride(const Tensor& t, std::optional<std::int64_t> dim) {
    if (dim) return nb::cast(t.strides()[wrap_dim("stride", *dim, t.ndim())]);
    return nb::cast(t.strides());
}

void bind_properties(TensorClass& tensor) {
    tensor.def_prop_ro(
              "shape", [](const Tensor& t) { return t.shape(); }, "Extents, outermost first.")
        .def_prop_ro("ndim", &Tensor::ndim, "Number of axes.")
        .def_prop_ro("dtype", &Tensor::dtype)
        .def_prop_ro("device", &Tensor::device)
        .def_prop_ro("strides", &strides_in_bytes,
                     "Bytes from one element to the next along each axis; stride() counts elements.")
        .def_prop_ro(
            "itemsize", [](const Tensor& t) { return itemsize(t.dtype()); }, "Bytes of one element.")
        .def_prop_ro("nbytes", &Tensor::nbytes, "Bytes of all elements.")
        .def_prop_ro(
            "size", [](nb::handle self) { return callable("Size", self, nb::cast<const Tensor&>(self).numel()); },
            nb::sig("def size(self) -> Size"), "Element count; `t.size(dim)` is an extent and `t.size()` the shape.")
        .def_prop_ro(
            "is_contiguous",
            [](nb::handle self) { return callable("Flag", self, nb::cast<const Tensor&>(self).is_contiguous()); },
            nb::sig("def is_contiguous(self) -> Flag"), "True when packed row-major; can also be called.");
}

void bind_questions(TensorClass& tensor) {
    tensor.def("numel", &Tensor::numel, "Number of elements.")
        .def("dim", &Tensor::ndim, "Number of axes.")
        .def("stride", &stride, "dim"_a = nb::none(), "Strides in elements: all, or the one of an axis.")
        .def("defined", &Tensor::defined, "False for a tensor that stands for none.")
        .def(
            "data_ptr", [](const Tensor& t) { return t.address(); },
            "Address of the first element on its device; 0 without elements.")
        .def(
            "element_size", [](const Tensor& t) { return itemsize(t.dtype()); }, "Bytes of one element.")
        .def("is_floating_point", [](const Tensor& t) { return is_floating(t.dtype()); })
        .def(
            "is_same", [](const Tensor& a, const Tensor& b) { return a.is(b); }, "other"_a,
            "True when both names mean one tensor.")
        .def("__hash__", [](nb::handle self) { return reinterpret_cast<std::intptr_t>(self.ptr()) >> 4; })
        .def("__len__", [](const Tensor& t) {
            check<DTypeError>(t.ndim() > 0, "len: expected rank >= 1, got ()");
            return t.shape()[0];
        });
}

}  // namespace

void bind_tensor(nb::module_&, TensorClass& tensor) {
    tensor.def(nb::init<>(), "An undefined tensor.")
        .def(
            "__init__", [](Tensor* self, const Tensor& other) { new (self) Tensor(other); }, "other"_a,
            "Another name of one tensor.");
    bind_properties(tensor);
    bind_questions(tensor);
    tensor
        .def("tolist", in_python("tolist"), nb::sig("def tolist(self) -> typing.Any"),
             "The values as nested lists; a number for rank 0.")
        .def("__repr__", in_python("text"), nb::sig("def __repr__(self) -> str"))
        .def("__format__", in_python("formatted"), nb::sig("def __format__(self, spec: str) -> str"))
        .def("__iter__", in_python("iterate"), nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"))
        .def("__copy__", in_python("shallow_copy"), nb::sig("def __copy__(self) -> Tensor"))
        .def("__deepcopy__", in_python("deep_copy"), nb::sig("def __deepcopy__(self, memo: dict) -> Tensor"))
        .def("__reduce_ex__", in_python("reduce"), nb::sig("def __reduce_ex__(self, protocol: int) -> tuple"));
    tensor
        .def("to", in_python("to"),
             nb::sig("def to(self, *args, dtype: dtype | str | None = None, device: device | str | None = None, copy: "
                     "bool = False) -> Tensor"),
             "The same values on another device or in another dtype: `to(\"vulkan\")`, `to(vkml.float16)`, "
             "`to(other)`. The tensor itself if nothing changes.")
        .def("astype", in_python("astype"), nb::sig("def astype(self, dtype: dtype | str | type) -> Tensor"),
             "The values in another dtype; rounding as a cast.")
        .def("type_as", in_python("type_as"), nb::sig("def type_as(self, other: Tensor) -> Tensor"),
             "In the dtype of another tensor.")
        .def("cpu", in_python("cpu"), nb::sig("def cpu(self) -> Tensor"), "On the CPU.")
        .def("vulkan", in_python("vulkan"), nb::sig("def vulkan(self, index: int | None = None) -> Tensor"),
             "On a Vulkan device; the best one without an index.");
    tensor.def("float", in_python("to_float"), nb::sig("def float(self) -> Tensor"), "As float32.")
        .def("half", in_python("to_half"), nb::sig("def half(self) -> Tensor"), "As float16.")
        .def("bfloat16", in_python("to_bfloat16"), nb::sig("def bfloat16(self) -> Tensor"), "As bfloat16.")
        .def("double", in_python("to_double"), nb::sig("def double(self) -> Tensor"), "As float64.")
        .def("int", in_python("to_int"), nb::sig("def int(self) -> Tensor"), "As int32.")
        .def("long", in_python("to_long"), nb::sig("def long(self) -> Tensor"), "As int64.")
        .def("bool", in_python("to_bool"), nb::sig("def bool(self) -> Tensor"), "As bool.");
}

}  // namespace vkml::python
