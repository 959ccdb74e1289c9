#include <nanobind/operators.h>

#include "module.h"

namespace vkml::python {

void bind_types(nb::module_& m) {
    nb::class_<PyDType>(m, "dtype", "The type of a tensor's elements. Accepts names and NumPy dtypes wherever one is asked for.")
        .def("__init__", [](PyDType* self, nb::object spec) { new (self) PyDType{to_dtype(spec)}; }, "spec"_a)
        .def_prop_ro("name", [](PyDType d) { return std::string(name(d.value)); })
        .def_prop_ro("itemsize", [](PyDType d) { return itemsize(d.value); }, "Bytes of one element.")
        .def_prop_ro("is_floating_point", [](PyDType d) { return is_floating(d.value); })
        .def("__str__", [](PyDType d) { return std::string(name(d.value)); })
        .def("__repr__", [](PyDType d) { return "vkml." + std::string(name(d.value) == "bool" ? "bool_" : name(d.value)); })
        .def("__hash__", [](PyDType d) { return static_cast<int>(d.value); })
        .def("__eq__", [](PyDType d, nb::object other) {
            try {
                return d.value == to_dtype(other);
            } catch (const DTypeError&) {
                return false;
            }
        }, nb::arg("other").none())
        .def("__reduce__", [](nb::object self) { return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self))); });
    for (DType d : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64})
        m.attr(std::string(name(d)).c_str()) = PyDType{d};
    m.attr("bool_") = PyDType{DType::boolean};

    nb::class_<Device>(m, "device", "\"cpu\", or \"vulkan:N\" with N the position among the Vulkan devices; \"vulkan\" is the best.")
        .def("__init__", [](Device* self, nb::object spec) { new (self) Device(to_device_spec(spec)); }, "spec"_a = "cpu")
        .def_prop_ro("type", [](Device d) { return std::string(d.is_cpu() ? "cpu" : "vulkan"); })
        .def_prop_ro("index", [](Device d) { return static_cast<int>(d.index); })
        .def_prop_ro("is_cpu", &Device::is_cpu)
        .def("__str__", [](Device d) { return to_string(d); })
        .def("__repr__", [](Device d) { return "device(\"" + to_string(d) + "\")"; })
        .def("__hash__", [](Device d) { return (static_cast<int>(d.type) << 16) + d.index; })
        .def("__eq__", [](Device d, nb::object other) {
            try {
                return d == to_device_spec(other);
            } catch (const DeviceError&) {
                return false;
            }
        }, nb::arg("other").none())
        .def("__reduce__", [](nb::object self) { return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self))); });
}

}  // namespace vkml::python
