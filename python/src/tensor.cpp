#include <nanobind/ndarray.h>

#include "module.h"
#include "vkml/ops/copy/copy.h"

namespace vkml::python {

void bind_tensor(nb::module_& m, TensorClass& tensor) {
    tensor.def_prop_ro("shape", [](const Tensor& t) { return t.shape(); })
        .def_prop_ro("ndim", &Tensor::ndim)
        .def_prop_ro("dtype", &Tensor::dtype)
        .def_prop_ro("device", &Tensor::device)
        .def("numel", &Tensor::numel);
    m.def("_from_bytes", [](nb::bytes data, const Dims& shape, DType dtype, Device device) {
        return from_host(data.c_str(), shape, dtype, device);
    });
    m.def("_to_bytes", [](const Tensor& t) {
        std::string out(t.nbytes(), '\0');
        to_host(t, out.data());
        return nb::bytes(out.data(), out.size());
    });
}

}  // namespace vkml::python
