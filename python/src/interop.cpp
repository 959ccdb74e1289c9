#include <nanobind/ndarray.h>

#include <memory>

#include "module.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/registry.h"

namespace vkml::python {
namespace {

using Code = nb::dlpack::dtype_code;
constexpr std::pair<DType, nb::dlpack::dtype> kCodes[] = {
    {DType::boolean, {static_cast<std::uint8_t>(Code::Bool), 8, 1}},
    {DType::u8, {static_cast<std::uint8_t>(Code::UInt), 8, 1}},
    {DType::i8, {static_cast<std::uint8_t>(Code::Int), 8, 1}},
    {DType::i16, {static_cast<std::uint8_t>(Code::Int), 16, 1}},
    {DType::i32, {static_cast<std::uint8_t>(Code::Int), 32, 1}},
    {DType::i64, {static_cast<std::uint8_t>(Code::Int), 64, 1}},
    {DType::f16, {static_cast<std::uint8_t>(Code::Float), 16, 1}},
    {DType::bf16, {static_cast<std::uint8_t>(Code::Bfloat), 16, 1}},
    {DType::f32, {static_cast<std::uint8_t>(Code::Float), 32, 1}},
    {DType::f64, {static_cast<std::uint8_t>(Code::Float), 64, 1}}};
constexpr nb::dlpack::dtype kBits16{static_cast<std::uint8_t>(Code::UInt), 16, 1};

nb::dlpack::dtype code_of(DType d) {
    for (const auto& [dtype, code] : kCodes)
        if (dtype == d) return code;
    return {};
}

Tensor on_host(const Tensor& t) {
    GilRelease release;
    if (t.device().is_cpu()) stream_of(t).await_host_read();
    return to_device(t, Device{});
}

/// The tensor's memory on the CPU as an array that keeps it alive; a copy if it lies elsewhere.
template <class Array>
Array array_of(const Tensor& t, nb::dlpack::dtype code) {
    const Tensor host = on_host(t);
    auto* kept = new Tensor(host);
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
    std::size_t shape[kMaxRank];
    std::int64_t strides[kMaxRank];
    for (int i = 0; i < host.ndim(); i++) {
        shape[i] = static_cast<std::size_t>(host.shape()[i]);
        strides[i] = host.strides()[i];
    }
    static std::byte nothing[8];  // NumPy wants an address even for no elements
    void* data = host.numel() ? reinterpret_cast<void*>(host.address()) : nothing;
    return Array(data, static_cast<std::size_t>(host.ndim()), shape, owner, strides, code);
}

nb::object host_array(const Tensor& t) {
    const nb::dlpack::dtype code = t.dtype() == DType::bf16 ? kBits16 : code_of(t.dtype());
    return nb::cast(array_of<nb::ndarray<nb::numpy, nb::ro>>(t, code));
}

[[noreturn]] void refuse_export(const std::string& text) { throw nb::buffer_error(text.c_str()); }

nb::object dlpack(const Tensor& t, nb::handle stream, nb::handle max_version, nb::handle dl_device, nb::handle copy) {
    if (t.requires_grad()) refuse_export("__dlpack__: expected a tensor that does not require grad; detach() it first");
    if (!stream.is_none()) refuse_export("__dlpack__: expected stream=None, for the data is the CPU's");
    const bool to_cpu = !dl_device.is_none() && nb::cast<int>(dl_device[0]) == 1;
    if ((!dl_device.is_none() && !to_cpu) || (dl_device.is_none() && !t.device().is_cpu()))
        refuse_export("__dlpack__: a tensor on " + to_string(t.device()) +
                      " exports to the CPU only; call cpu() or pass dl_device=(1, 0)");
    const bool forced = !copy.is_none() && nb::cast<bool>(copy);
    if (!t.device().is_cpu() && !copy.is_none() && !forced)
        refuse_export("__dlpack__: copy=False is impossible from " + to_string(t.device()));
    const Tensor source = forced && t.device().is_cpu() ? clone(t) : t;
    nb::object array = nb::cast(array_of<nb::ndarray<nb::array_api>>(source, code_of(t.dtype())));
    return array.attr("__dlpack__")("max_version"_a = nb::borrow(max_version));
}

using Imported = nb::ndarray<>;

void drop_import(void* imported) {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire gil;
    delete static_cast<Imported*>(imported);
}

/// Shares the memory of a CPU array; undefined when its strides or alignment are nothing a kernel can read.
Tensor share(const Imported& array) {
    DType dtype = DType::none;
    for (const auto& [ours, code] : kCodes)
        if (code == array.dtype()) dtype = ours;
    check<DTypeError>(dtype != DType::none, "from_dlpack: expected a dtype vkML has, got code ",
                      static_cast<int>(array.dtype().code), " with ", static_cast<int>(array.dtype().bits), " bits");
    check<DeviceError>(array.device_type() == 1, "from_dlpack: expected memory on the CPU, got DLPack device type ",
                       array.device_type());
    Layout layout;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < array.ndim(); i++) {
        const std::int64_t extent = static_cast<std::int64_t>(array.shape(i)),
                           stride = extent > 1 ? array.stride(i) : 1;
        if (stride < 0) return {};
        layout.shape.push_back(extent);
        layout.strides.push_back(stride);
        last += (extent - 1) * stride;
    }
    if (numel(layout.shape) == 0) return Tensor(Storage{}, Layout(layout.shape), dtype, Device{});
    if (reinterpret_cast<std::uintptr_t>(array.data()) % itemsize(dtype) != 0) return {};
    const std::size_t bytes = static_cast<std::size_t>(last + 1) * itemsize(dtype);
    return Tensor(borrow_host(array.data(), bytes, new Imported(array), &drop_import), layout, dtype, Device{});
}

/// A tensor in the memory of a writable array of bytes, on the CPU; undefined where the alignment is not the dtype's.
Tensor borrow_buffer(const nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu>& array, const Shape& shape,
                     DType dtype) {
    check(array.nbytes() == static_cast<std::size_t>(numel(shape)) * itemsize(dtype), "tensor: expected ", numel(shape),
          " elements of ", dtype, ", got ", array.nbytes(), " bytes");
    if (array.nbytes() == 0) return Tensor(Storage{}, Layout(shape), dtype, Device{});
    if (reinterpret_cast<std::uintptr_t>(array.data()) % itemsize(dtype) != 0) return {};
    return Tensor(borrow_host(array.data(), array.nbytes(), new Imported(array), &drop_import), Layout(shape), dtype,
                  Device{});
}

/// The buffer protocol: read-only memory of a CPU tensor, through its NumPy array.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
    try {
        const Tensor& t = nb::cast<const Tensor&>(nb::handle(self));
        if (!t.device().is_cpu() || t.dtype() == DType::bf16)
            refuse_export("buffer: expected a tensor on the CPU of a dtype Python has, got " +
                          std::string(name(t.dtype())) + " on " + to_string(t.device()));
        return PyObject_GetBuffer(host_array(t).ptr(), view, flags);
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_BufferError, error.what());
        view->obj = nullptr;
        return -1;
    }
}

}  // namespace

const PyType_Slot* buffer_slots() {
    static const PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};
    return slots;
}

void bind_interop(nb::module_& m, TensorClass& tensor) {
    m.def("_host_array", &host_array, "A read-only NumPy array of the values; bfloat16 arrives as its bits in uint16.");
    m.def("_from_buffer",
          [](nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array, const Dims& shape, DType dtype, Device device) {
              check(array.nbytes() == static_cast<std::size_t>(numel(shape)) * itemsize(dtype), "tensor: expected ",
                    numel(shape), " elements of ", dtype, ", got ", array.nbytes(), " bytes");
              GilRelease release;
              return from_host(array.data(), shape, dtype, device);
          });
    m.def(
        "_borrow_buffer",
        [](nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu> array, const Dims& shape,
           DType dtype) -> nb::object {
            Tensor out = borrow_buffer(array, shape, dtype);
            return out.defined() ? nb::cast(out) : nb::none();
        },
        nb::sig("def _borrow_buffer(array: numpy.ndarray, shape: collections.abc.Sequence[int], dtype: dtype | str) "
                "-> Tensor | None"));
    m.def("_share", [](nb::handle source) -> nb::object {
        Imported array;
        if (!nb::try_cast<Imported>(source, array) || !array.is_valid()) return nb::none();
        Tensor out = share(array);
        return out.defined() ? nb::cast(out) : nb::none();
    });
    tensor
        .def("__dlpack__", &dlpack, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
             "dl_device"_a = nb::none(), "copy"_a = nb::none(), "A DLPack capsule; on the CPU it shares the memory.")
        .def("__dlpack_device__",
             [](const Tensor& t) {
                 return nb::make_tuple(t.device().is_cpu() ? 1 : 7, static_cast<int>(t.device().index));
             })
        .def("numpy", in_python("numpy"), nb::sig("def numpy(self) -> numpy.ndarray"),
             "The values as a NumPy array; waits for the device. May share the memory of a CPU tensor and is then "
             "read-only; bfloat16 arrives as float32.")
        .def("__array__", in_python("as_array"),
             nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> numpy.ndarray"));
}

}  // namespace vkml::python
