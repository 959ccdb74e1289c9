#include <nanobind/ndarray.h>

#include <map>
#include <memory>

#include "module.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/cuda.h"
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

constexpr int kCpu = 1, kCuda = 2, kCudaHost = 3, kVulkan = 7, kCudaManaged = 13;  // DLDeviceType

/// Memory at `data` that holds the elements of `t`, as an array that `owner` keeps alive.
template <class Array>
Array array_at(void* data, const Tensor& t, nb::dlpack::dtype code, const nb::capsule& owner, int type = kCpu,
               int id = 0) {
    std::size_t shape[kMaxRank];
    std::int64_t strides[kMaxRank];
    for (int i = 0; i < t.ndim(); i++) {
        shape[i] = static_cast<std::size_t>(t.shape()[i]);
        strides[i] = t.strides()[i];
    }
    return Array(data, static_cast<std::size_t>(t.ndim()), shape, owner, strides, code, type, id);
}

/// The tensor's memory on the CPU as an array that keeps it alive; a copy if it lies elsewhere.
template <class Array>
Array array_of(const Tensor& t, nb::dlpack::dtype code) {
    const Tensor host = on_host(t);
    const nb::capsule owner(new Tensor(host), [](void* p) noexcept { delete static_cast<Tensor*>(p); });
    static std::byte nothing[8];  // NumPy wants an address even for no elements
    void* data = host.numel() ? reinterpret_cast<void*>(host.address()) : nothing;
    return array_at<Array>(data, host, code, owner);
}

nb::object host_array(const Tensor& t) {
    const nb::dlpack::dtype code = t.dtype() == DType::bf16 ? kBits16 : code_of(t.dtype());
    return nb::cast(array_of<nb::ndarray<nb::numpy, nb::ro>>(t, code));
}

[[noreturn]] void refuse_export(const std::string& text) { throw nb::buffer_error(text.c_str()); }

/// Where a tensor lies as DLPack names it. A GPU that CUDA can reach is CUDA's: no other library takes Vulkan's memory.
std::pair<int, int> dl_device_of(const Tensor& t) {
    if (t.device().is_cpu()) return {kCpu, 0};
    static auto* const known = new std::map<int, int>;  // CUDA's numbers of Vulkan devices, -1 for none
    const auto [entry, unknown] = known->try_emplace(t.device().index, -1);
    if (unknown) try {
            entry->second = cuda::ordinal(t.device());
        } catch (const DeviceError&) {  // what is missing is told where CUDA is asked for by name
        }
    return entry->second < 0 ? std::pair{kVulkan, static_cast<int>(t.device().index)} : std::pair{kCuda, entry->second};
}

/// The memory that CUDA is shown, until CUDA has no more work with it.
struct Shown {
    Tensor tensor;
    int ordinal;
    ~Shown() { cuda::wait(ordinal); }
};

/// The tensor in memory that CUDA maps: its own, or a packed copy inside the GPU. Nothing is pending on it then.
Tensor in_shared_memory(const Tensor& t, bool forced, bool refused) {
    GilRelease release;
    Tensor shown = t;
    if (t.numel() > 0 && (forced || !cuda::is_shared(t.storage()))) {
        if (refused) refuse_export("__dlpack__: copy=False is impossible for memory that CUDA did not bring");
        const std::size_t bytes = static_cast<std::size_t>(t.numel()) * itemsize(t.dtype());
        shown = Tensor(cuda::allocate(t.device(), bytes), Layout(t.shape()), t.dtype(), t.device());
        copy_into(shown, t);
    }
    stream_of(t).synchronize();
    return shown;
}

nb::object to_cuda(const Tensor& t, int wanted, nb::handle max_version, nb::handle copy) {
    try {
        const int ordinal = cuda::ordinal(t.device());
        if (wanted != ordinal)
            refuse_export("__dlpack__: expected dl_device (2, " + std::to_string(ordinal) + "), which is " +
                          to_string(t.device()) + ", got (2, " + std::to_string(wanted) + ")");
        const bool asked = !copy.is_none(), forced = asked && nb::cast<bool>(copy);
        const Tensor shown = in_shared_memory(t, forced, asked && !forced);
        void* data = nullptr;
        if (shown.numel())
            data =
                reinterpret_cast<void*>(cuda::address(shown.storage()) + (shown.address() - shown.storage()->address));
        const nb::capsule owner(new Shown{shown, ordinal}, [](void* p) noexcept { delete static_cast<Shown*>(p); });
        nb::object array =
            nb::cast(array_at<nb::ndarray<nb::array_api>>(data, shown, code_of(t.dtype()), owner, kCuda, ordinal));
        return array.attr("__dlpack__")("max_version"_a = nb::borrow(max_version));
    } catch (const DeviceError& error) {
        refuse_export("__dlpack__: a tensor on " + to_string(t.device()) + " does not export to CUDA here (" +
                      error.what() + "); pass dl_device=(1, 0)");
    }
}

nb::object dlpack(const Tensor& t, nb::handle stream, nb::handle max_version, nb::handle dl_device, nb::handle copy) {
    if (t.requires_grad()) refuse_export("__dlpack__: expected a tensor that does not require grad; detach() it first");
    const auto [wanted, index] =
        dl_device.is_none() ? dl_device_of(t) : std::pair{nb::cast<int>(dl_device[0]), nb::cast<int>(dl_device[1])};
    // Nothing is pending when the capsule is handed out, so any stream of the consumer's will do.
    if (wanted == kCuda && !t.device().is_cpu()) return to_cuda(t, index, max_version, copy);
    if (!stream.is_none()) refuse_export("__dlpack__: expected stream=None, for the data is the CPU's");
    if (wanted != kCpu)
        refuse_export("__dlpack__: a tensor on " + to_string(t.device()) +
                      (t.device().is_cpu() ? " exports to the CPU only"
                                           : " exports to the CPU or to CUDA on the same GPU only; call cpu() or pass "
                                             "dl_device=(1, 0) or (2, n)"));
    const bool forced = !copy.is_none() && nb::cast<bool>(copy);
    if (!t.device().is_cpu() && !copy.is_none() && !forced)
        refuse_export("__dlpack__: copy=False is impossible from " + to_string(t.device()));
    const Tensor source = forced && t.device().is_cpu() ? clone(t) : t;
    nb::object array = nb::cast(array_of<nb::ndarray<nb::array_api>>(source, code_of(t.dtype())));
    return array.attr("__dlpack__")("max_version"_a = nb::borrow(max_version));
}

/// DLPack's structs, as its ABI fixes them.
struct DlTensor {
    void* data;
    std::int32_t device_type, device_id, ndim;
    nb::dlpack::dtype dtype;
    const std::int64_t *shape, *strides;
    std::uint64_t byte_offset;
};
struct DlVersioned {
    std::uint32_t major, minor;
    void* context;
    void (*deleter)(DlVersioned*);
    std::uint64_t flags;
    DlTensor tensor;
};

struct DlManaged {
    DlTensor tensor;
    void* context;
    void (*deleter)(DlManaged*);
};

/// Refuses fields that contradict each other: nanobind reads them unseen.
void check_fields(const DlTensor& t) {
    check(t.ndim >= 0 && t.ndim <= kMaxRank, "from_dlpack: expected rank 0 to ", kMaxRank, ", got ", t.ndim);
    check(t.shape || t.ndim == 0, "from_dlpack: expected a shape of ", t.ndim, " extents, got NULL");
    std::int64_t count = 1, bytes = 0, last = 0, reach = 0;
    bool empty = false, fits = true;
    for (int i = 0; i < t.ndim; i++) {
        const std::int64_t extent = t.shape[i];
        check(extent >= 0, "from_dlpack: expected extents >= 0, got ", extent);
        empty |= extent == 0;
        if (extent > 0) fits &= !__builtin_mul_overflow(count, extent, &count);
        if (extent > 1 && t.strides)
            fits &= !__builtin_mul_overflow(extent - 1, t.strides[i], &reach) &&
                    !__builtin_add_overflow(last, reach, &last);
    }
    fits &= !__builtin_mul_overflow(count, std::int64_t{16}, &bytes) &&
            !__builtin_mul_overflow(last, std::int64_t{16}, &bytes);
    check(fits, "from_dlpack: expected a shape and strides within 2^59 elements, got more");
    check(empty || t.data, "from_dlpack: expected an address of the elements, got NULL");
}

template <class Managed>
void check_managed(PyObject* capsule, const char* name, const char* used) {
    auto* made = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if constexpr (std::is_same_v<Managed, DlVersioned>)
        if (made->major != 1) return;
    try {
        check_fields(made->tensor);
    } catch (...) {  // a refused capsule is used up too: its producer gets the memory back
        PyCapsule_SetName(capsule, used);
        PyCapsule_SetDestructor(capsule, nullptr);
        if (made->deleter) made->deleter(made);
        throw;
    }
}

void check_capsule(nb::handle capsule) {
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor"))
        check_managed<DlManaged>(capsule.ptr(), "dltensor", "used_dltensor");
    else if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned"))
        check_managed<DlVersioned>(capsule.ptr(), "dltensor_versioned", "used_dltensor_versioned");
}

using Imported = nb::ndarray<>;

void drop_import(void* imported) {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire gil;
    delete static_cast<Imported*>(imported);
}

template <class Array>
DType dtype_of(const Array& array) {
    for (const auto& [ours, code] : kCodes)
        if (code == array.dtype()) return ours;
    fail<DTypeError>("from_dlpack: expected a dtype vkML has, got code ", static_cast<int>(array.dtype().code),
                     " with ", static_cast<int>(array.dtype().bits), " bits");
}

/// The array's layout in `layout`; gives the elements between the first and the last, or 0 for a negative stride.
template <class Array>
std::int64_t span_of(const Array& array, Layout& layout) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < array.ndim(); i++) {
        const std::int64_t extent = static_cast<std::int64_t>(array.shape(i)),
                           stride = extent > 1 ? array.stride(i) : 1;
        if (stride < 0) return 0;
        layout.shape.push_back(extent);
        layout.strides.push_back(stride);
        last += (extent - 1) * stride;
    }
    return last + 1;
}

/// A Vulkan tensor with a copy of CUDA's memory on the same GPU; packed if the memory has gaps.
Tensor take_from_cuda(const nb::ndarray<nb::ro>& array) {
    const DType dtype = dtype_of(array);
    check<DeviceError>(array.device_type() == kCuda || array.device_type() == kCudaManaged,
                       "from_dlpack: expected CUDA memory, got DLPack device type ", array.device_type());
    Layout layout;
    const std::int64_t span = span_of(array, layout);
    check<ShapeError>(span > 0 || array.size() == 0, "from_dlpack: expected strides >= 0, got a negative one");
    GilRelease release;
    const Device device = cuda::vulkan_device(array.device_id());
    if (array.size() == 0) return Tensor(Storage{}, Layout(layout.shape), dtype, device);
    const std::size_t bytes = static_cast<std::size_t>(span) * itemsize(dtype);
    const Tensor taken(cuda::take(device, reinterpret_cast<Address>(array.data()), bytes), layout, dtype, device);
    return span > taken.numel() ? clone(taken) : taken;
}

/// Shares the memory of a CPU array; undefined when its strides or alignment are nothing a kernel can read.
Tensor share(const Imported& array) {
    const DType dtype = dtype_of(array);
    check<DeviceError>(array.device_type() == kCpu || array.device_type() == kCudaHost,
                       "from_dlpack: expected memory on the CPU, got DLPack device type ", array.device_type());
    Layout layout;
    const std::int64_t span = span_of(array, layout);
    if (span == 0 && array.size() > 0) return {};
    if (numel(layout.shape) == 0) return Tensor(Storage{}, Layout(layout.shape), dtype, Device{});
    if (reinterpret_cast<std::uintptr_t>(array.data()) % itemsize(dtype) != 0) return {};
    const std::size_t bytes = static_cast<std::size_t>(span) * itemsize(dtype);
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
        check_capsule(source);
        Imported array;
        if (!nb::try_cast<Imported>(source, array) || !array.is_valid()) return nb::none();
        Tensor out = share(array);
        return out.defined() ? nb::cast(out) : nb::none();
    });
    m.def("_vulkan_device_of_cuda", &cuda::vulkan_device);
    m.def("_take_from_cuda", [](nb::handle source) {
        check_capsule(source);
        nb::ndarray<nb::ro> array;
        check<DTypeError>(nb::try_cast<nb::ndarray<nb::ro>>(source, array) && array.is_valid(),
                          "from_dlpack: expected an unused DLPack capsule, got something else");
        return take_from_cuda(array);
    });
    tensor
        .def("__dlpack__", &dlpack, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
             "dl_device"_a = nb::none(), "copy"_a = nb::none(), R"(A DLPack capsule of the values.

On the CPU it shares the memory. A tensor on a Vulkan device that is CUDA's device n exports to CUDA, as
`torch.from_dlpack(t)` asks for it: memory that came from CUDA is shared, other memory is copied once inside the GPU. To
the CPU it exports as a copy with `dl_device=(1, 0)`, from every device. All work on the values is done when the capsule is there; after that nothing orders the two libraries, so
synchronize one before the other reads what it wrote.

Raises
------
BufferError
    The tensor requires grad, or cannot be had where and how it is asked for; the text says what is missing.)")
        .def(
            "__dlpack_device__",
            [](const Tensor& t) {
                const auto [type, index] = dl_device_of(t);
                return nb::make_tuple(type, index);
            },
            "DLPack's name for where the values are: (1, 0) on the CPU, (2, n) on a Vulkan device that is CUDA's "
            "device n, (7, n) on another.")
        .def("numpy", in_python("numpy"), nb::sig("def numpy(self) -> numpy.ndarray"),
             "The values as a NumPy array; waits for the device. May share the memory of a CPU tensor and is then "
             "read-only; bfloat16 arrives as float32.")
        .def("__array__", in_python("as_array"),
             nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> numpy.ndarray"));
}

}  // namespace vkml::python
