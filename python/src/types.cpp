#include <memory>

#include "module.h"
#include "vkml/runtime/registry.h"

namespace vkml::python {
namespace {

/// Equality against anything: what does not read as one of ours is simply not equal.
template <class Read, class T>
bool equals(T value, nb::handle other, Read read) {
    try {
        return value == read(other);
    } catch (const Error&) {
        return false;
    }
}

void bind_dtype(nb::module_& m) {
    nb::class_<PyDType>(
        m, "dtype",
        "The type of a tensor's elements. Wherever one is asked for, names and NumPy dtypes work too.\n\n"
        "Examples\n--------\n>>> vkml.dtype(\"float32\").itemsize\n4\n>>> vkml.float16 == \"float16\"\nTrue")
        .def(
            "__init__", [](PyDType* self, DType spec) { new (self) PyDType{spec}; }, nb::arg("spec").none())
        .def_prop_ro("name", [](PyDType d) { return std::string(name(d.value)); })
        .def_prop_ro(
            "itemsize", [](PyDType d) { return itemsize(d.value); }, "Bytes of one element.")
        .def_prop_ro("is_floating_point", [](PyDType d) { return is_floating(d.value); })
        .def("__str__", [](PyDType d) { return std::string(name(d.value)); })
        .def("__repr__",
             [](PyDType d) { return d.value == DType::boolean ? "vkml.bool_" : "vkml." + std::string(name(d.value)); })
        .def("__hash__", [](PyDType d) { return static_cast<int>(d.value); })
        .def(
            "__eq__", [](PyDType d, nb::handle other) { return equals(d.value, other, &to_dtype); },
            nb::arg("other").none())
        .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self))); });
    for (DType d :
         {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64})
        m.attr(std::string(name(d)).c_str()) = PyDType{d};
    m.attr("bool_") = PyDType{DType::boolean};
    m.def("set_default_dtype", &set_default_dtype, "dtype"_a,
          R"(The dtype Python floats become: float32 unless set. Floats only.

Examples
--------
>>> vkml.set_default_dtype("float64")
>>> vkml.tensor(1.5).dtype
vkml.float64
>>> vkml.set_default_dtype("float32")
)");
    m.def("get_default_dtype", &default_dtype, R"(The dtype Python floats become.

Examples
--------
>>> vkml.get_default_dtype()
vkml.float32
)");
}

/// `with device(...)` scopes of this thread, innermost last.
thread_local std::vector<std::unique_ptr<DeviceScope>> t_scopes;

void bind_device(nb::module_& m) {
    nb::class_<PyDevice>(
        m, "device",
        "\"cpu\", or \"vulkan:N\" with N the position among the Vulkan devices; \"vulkan\" is the best of them.\n\n"
        "As a context manager it is where tensors are made inside.\n\n"
        "Examples\n--------\n>>> vkml.device(\"vulkan:1\").index\n1\n>>> with vkml.device(\"cpu\"):\n...     "
        "vkml.zeros(2).device\n"
        "device(\"cpu\")")
        .def(
            "__init__", [](PyDevice* self, Device spec) { new (self) PyDevice{spec}; }, nb::arg("spec").none() = "cpu")
        .def_prop_ro("type", [](PyDevice d) { return std::string(d.value.is_cpu() ? "cpu" : "vulkan"); })
        .def_prop_ro("index", [](PyDevice d) { return static_cast<int>(d.value.index); })
        .def_prop_ro("is_cpu", [](PyDevice d) { return d.value.is_cpu(); })
        .def("__str__", [](PyDevice d) { return to_string(d.value); })
        .def("__repr__", [](PyDevice d) { return "device(\"" + to_string(d.value) + "\")"; })
        .def("__hash__", [](PyDevice d) { return (static_cast<int>(d.value.type) << 16) + d.value.index; })
        .def(
            "__eq__",
            [](PyDevice d, nb::handle other) {
                return !nb::isinstance<Tensor>(other) && equals(d.value, other, &to_device_spec);
            },
            nb::arg("other").none())
        .def("__enter__",
             [](nb::object self) {
                 const Device d = to_device_spec(self);
                 stream(d);  // raises here rather than at the first tensor
                 t_scopes.push_back(std::make_unique<DeviceScope>(d));
                 return self;
             })
        .def("__exit__",
             [](PyDevice, const nb::args&) {
                 if (!t_scopes.empty()) t_scopes.pop_back();
             })
        .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self))); });
    m.attr("cpu") = PyDevice{Device{}};
    m.def("set_default_device", &set_default_device, "device"_a,
          R"(Where tensors are made when nobody says; VKML_DEVICE sets the start value.

Examples
--------
>>> device = vkml.get_default_device()
>>> vkml.set_default_device("cpu")
>>> vkml.zeros(2).device
device("cpu")
>>> vkml.set_default_device(device)
)");
    m.def("get_default_device", &default_device, R"(Where tensors are made when nobody says.

Examples
--------
>>> with vkml.device("cpu"):
...     vkml.get_default_device()
device("cpu")
)");
}

}  // namespace

void bind_types(nb::module_& m) {
    bind_dtype(m);
    bind_device(m);
}

}  // namespace vkml::python
