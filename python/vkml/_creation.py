"""Tensors from Python data, NumPy arrays and other libraries' tensors, and tensors of one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor

_NATIVE = {"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"}


def _place(t: Tensor, dtype: Any, device: Any) -> Tensor:
    return t.to(dtype=dtype, device=device)


def _device(device: Any) -> Any:
    return _core.get_default_device() if device is None else _core.device(device)


def _from_array(array: np.ndarray, dtype: Any, device: Any, op: str) -> Tensor:
    """A copy of any NumPy array: strides, byte orders and ml_dtypes.bfloat16 included."""
    name = array.dtype.name
    if name == "bfloat16":
        made = _core._from_buffer(
            np.ascontiguousarray(array).view(np.uint16), array.shape, _core.bfloat16, _device(device)
        )
        return made if dtype is None else _place(made, dtype, None)
    if name not in _NATIVE:
        raise _core.DTypeError(f"{op}: expected numbers of a dtype vkML has, got {array.dtype}")
    array = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    wanted = array.dtype.name if dtype is None else str(_core.dtype(dtype))
    if wanted != name and wanted in _NATIVE and array.dtype.kind == "f" and np.dtype(wanted).kind == "f":
        with np.errstate(over="ignore"):  # NumPy rounds as a cast does, and there is less to carry then
            array, name = array.astype(wanted), wanted
    # What an order="C" array of shape (3, 1) has for strides is NumPy's whim; vkML wants packed.
    made = _core._from_buffer(np.ascontiguousarray(array), array.shape, name, _device(device))
    return made if wanted == name else _place(made, wanted, None)


def _hold_tensors(data: Any) -> bool:
    """True for nested lists with a tensor among their first leaves."""
    while isinstance(data, (list, tuple)) and data:
        if any(isinstance(x, Tensor) for x in data):
            return True
        data = data[0]
    return False


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return np.asarray(data.detach())
    return [_plain(x) for x in data] if isinstance(data, (list, tuple)) else data


def _array_of(data: Any) -> np.ndarray:
    if _hold_tensors(data):
        data = _plain(data)
    try:
        array = np.asarray(data)
    except (ValueError, OverflowError) as error:
        raise _core.ShapeError(f"tensor: expected nested lists of equal lengths, got ragged ones ({error})") from None
    if array.dtype.kind == "O":
        raise _core.DTypeError(f"tensor: expected numbers of at most 64 bits, got {type(data).__name__} of objects")
    if array.dtype.name in ("uint64", "uint32", "uint16") and not hasattr(data, "dtype"):
        raise _core.DTypeError("tensor: expected integers of at most 63 bits and a sign, got larger ones")
    if array.size == 0 and not hasattr(data, "dtype"):
        array = array.astype(np.float32)
    return array


def _is_torch(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "torch"


def _from_torch_cuda(data: Any, device: Any, op: str) -> Any:
    """A copy inside the GPU of a tensor on CUDA that shall come to Vulkan; None if it has to go through the host."""
    if not data.is_cuda or _device(device).type != "vulkan":
        return None
    try:
        return _import_capsule(data.detach().resolve_conj().resolve_neg(), op)
    except _core.DeviceError:
        return None


def _from_torch(data: Any, dtype: Any, device: Any, op: str) -> Tensor:
    taken = _from_torch_cuda(data, device, op)
    if taken is None:
        data = data.detach().cpu().contiguous().resolve_conj().resolve_neg()
    shared: Any = _core._share(data) if taken is None else taken
    if shared is None:
        return _from_array(data.numpy(), dtype, device, op)
    if dtype is None and shared.dtype == _core.float64:
        dtype = _core.float32
    made = _place(shared, dtype, _device(device))
    return made.clone() if made is shared and taken is None else made


def _cuda_ordinal(x: Any, op: str) -> int | None:
    """None for an array on the CPU, the device's number for one of CUDA's that Vulkan can take in; else DeviceError."""
    kind, index = map(int, x.__dlpack_device__()) if hasattr(x, "__dlpack_device__") else (1, 0)
    if kind in (1, 3):  # 3: the CPU's, pinned by CUDA
        return None
    if kind not in (2, 13):
        where = ", ROCm: copy it to the host first" if kind == 10 else ""
        raise _core.DeviceError(f"{op}: expected memory on the CPU or CUDA's, got DLPack device type {kind}{where}")
    try:
        _core._vulkan_device_of_cuda(index)
    except _core.DeviceError as error:
        raise _core.DeviceError(
            f"{op}: expected memory on the CPU or of a GPU that CUDA and Vulkan share, got CUDA device {index} "
            f"({error}); copy it to the host first"
        ) from None
    return index


def _capsule(x: Any, **stream: int) -> Any:
    # Asked for here: nanobind marks a capsule as used only if it was not the one to ask.
    try:
        return x.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:  # a producer from before versions
        return x.__dlpack__(**stream)


def _import_capsule(x: Any, op: str) -> Any:
    """A tensor of the values of an object with `__dlpack__`: in its memory on the CPU, a copy of CUDA's on Vulkan.

    None where the memory is the CPU's and no kernel can read it as it lies.
    """
    if _cuda_ordinal(x, op) is None:
        return _core._share(_capsule(x))
    return _core._take_from_cuda(_capsule(x, stream=1))  # 1: CUDA's legacy default stream, where the copy runs


def _convert(data: Any, dtype: Any, device: Any, op: str) -> Tensor:
    if isinstance(data, Tensor):
        made = _place(data.detach(), dtype, device)
        return made.clone() if made.data_ptr() == data.data_ptr() else made
    if _is_torch(data):
        return _from_torch(data, dtype, device, op)
    if not hasattr(data, "__array__") and hasattr(data, "__dlpack__"):
        shared = _import_capsule(data, op)
        data = np.from_dlpack(data) if shared is None else shared
        return _convert(data, _core.float32 if dtype is None and str(data.dtype) == "float64" else dtype, device, op)
    array = _array_of(data)
    if dtype is None and array.dtype.name == "float64":
        dtype = _core.get_default_dtype()
    return _from_array(array, dtype, device, op)


def tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of the data.

    Parameters
    ----------
    data : nested lists, number, NumPy array, vkml or PyTorch tensor, or anything with `__array__` or `__dlpack__`
    dtype : dtype, optional
        Python floats and float64 data become the default dtype (float32), integers int64, unless this says otherwise.
    device : device or str, optional
        The default device, if None; a vkml tensor stays where it is.
    requires_grad : bool
        Asks for the gradient of the new tensor.

    Raises
    ------
    ShapeError
        Nested lists of unequal lengths.
    DTypeError
        Data that are not numbers of a dtype vkML has.

    Examples
    --------
    >>> vkml.tensor([[1, 2], [3, 4]]).shape
    (2, 2)
    >>> vkml.tensor(0.5).dtype
    vkml.float32
    """
    made = _convert(data, dtype, device, "tensor")
    return made.requires_grad_() if requires_grad else made


def from_numpy(a: np.ndarray, dtype: Any = None, device: Any = None) -> Tensor:
    """A copy of a NumPy array of any layout and byte order; float64 becomes float32 unless `dtype` says otherwise.

    Examples
    --------
    >>> vkml.from_numpy(np.arange(3, dtype=np.int32)).dtype
    vkml.int32
    """
    if not isinstance(a, (np.ndarray, np.generic)):
        raise _core.DTypeError(f"from_numpy: expected a NumPy array, got {type(a).__name__}")
    return _convert(a, dtype, device, "from_numpy")


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The tensor itself if `data` is one of the right dtype on the right device, else a copy.

    Examples
    --------
    >>> x = vkml.ones(2)
    >>> vkml.as_tensor(x) is x
    True
    """
    if isinstance(data, Tensor):
        return _place(data, dtype, device)
    return _convert(data, dtype, device, "as_tensor")


def asarray(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """As `as_tensor`.

    Examples
    --------
    >>> vkml.asarray([1.0, 2.0])
    tensor([1., 2.])
    """
    return as_tensor(data, dtype, device)


def from_dlpack(x: Any) -> Tensor:
    """A tensor that shares the CPU memory of another library's array; read-only or oddly strided arrays are copied.

    An array in CUDA's memory becomes a tensor on the Vulkan device that is the same GPU. CUDA's own memory cannot be
    mapped by Vulkan, so it is copied once, inside the GPU, into memory that both can map (VK_KHR_external_memory_fd);
    the copy runs after the producer's current stream and is waited for.

    Raises
    ------
    DeviceError
        Memory of another kind of device, or of CUDA's where something is missing: libcuda, a Vulkan device with that
        GPU's UUID, or the extension. The text says which.
    DTypeError
        No `__dlpack__`, or a dtype vkML lacks.

    Examples
    --------
    >>> a = np.zeros(3, dtype=np.float32)
    >>> t = vkml.from_dlpack(a)
    >>> a[0] = 7
    >>> t[0].item()
    7.0
    """
    if isinstance(x, Tensor):
        return x.detach()
    if not hasattr(x, "__dlpack__"):
        raise _core.DTypeError(f"from_dlpack: expected an object with __dlpack__, got {type(x).__name__}")
    read_only = isinstance(x, np.ndarray) and not x.flags.writeable
    shared: Any = None if read_only else _import_capsule(x, "from_dlpack")
    if shared is not None:
        return shared
    array = x if isinstance(x, np.ndarray) else np.from_dlpack(x)
    return _from_array(array, None, "cpu", "from_dlpack")


# Tensors of one value -------------------------------------------------------------------------------------------------


def _shape(shape: tuple) -> Any:
    if len(shape) == 1 and (hasattr(shape[0], "__len__") or not hasattr(shape[0], "__index__")):
        return shape[0]
    return shape


def _filled(value: float, shape: tuple, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    dtype = _core.get_default_dtype() if dtype is None else dtype
    made = _core.full(_shape(shape), value, dtype=dtype, device=_device(device))
    return made.requires_grad_() if requires_grad else made


def zeros(*shape: int | Sequence[int], dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros; the shape as a sequence or as separate integers.

    Examples
    --------
    >>> vkml.zeros(2, 3).shape == vkml.zeros((2, 3)).shape
    True
    """
    return _filled(0, shape, dtype, device, requires_grad)


def ones(*shape: int | Sequence[int], dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones; the shape as a sequence or as separate integers.

    Examples
    --------
    >>> vkml.ones(2, dtype=vkml.int32)
    tensor([1, 1], dtype=vkml.int32)
    """
    return _filled(1, shape, dtype, device, requires_grad)


def empty(*shape: int | Sequence[int], dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor whose values are whatever the memory held.

    Examples
    --------
    >>> vkml.empty(2, 3).shape
    (2, 3)
    """
    dtype = _core.get_default_dtype() if dtype is None else dtype
    made = _core._empty(_shape(shape), dtype, _device(device))
    return made.requires_grad_() if requires_grad else made


def full(
    shape: int | Sequence[int], value: float, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Copies of one number; without a dtype the number's own: int64, bool or the default float.

    Examples
    --------
    >>> vkml.full((2,), 3)
    tensor([3, 3])
    """
    made = _core.full(shape, value, dtype=dtype, device=_device(device))
    return made.requires_grad_() if requires_grad else made


def _like(op: str, x: Tensor, dtype: Any, device: Any) -> tuple[Any, Any]:
    if not isinstance(x, Tensor):
        raise _core.DTypeError(f"{op}: expected a tensor, got {type(x).__name__}")
    return (x.dtype if dtype is None else dtype), (x.device if device is None else device)


def zeros_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros with the shape, dtype and device of another tensor.

    Examples
    --------
    >>> vkml.zeros_like(vkml.tensor([1, 2]))
    tensor([0, 0])
    """
    dtype, device = _like("zeros_like", x, dtype, device)
    return zeros(x.shape, dtype=dtype, device=device, requires_grad=requires_grad)


def ones_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones with the shape, dtype and device of another tensor.

    Examples
    --------
    >>> vkml.ones_like(vkml.tensor([1, 2]))
    tensor([1, 1])
    """
    dtype, device = _like("ones_like", x, dtype, device)
    return ones(x.shape, dtype=dtype, device=device, requires_grad=requires_grad)


def empty_like(x: Tensor, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """An uninitialised tensor with the shape, dtype and device of another.

    Examples
    --------
    >>> vkml.empty_like(vkml.tensor([1, 2])).shape
    (2,)
    """
    dtype, device = _like("empty_like", x, dtype, device)
    return empty(x.shape, dtype=dtype, device=device, requires_grad=requires_grad)


def full_like(x: Tensor, value: float, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Copies of one number with the shape, dtype and device of another tensor.

    Examples
    --------
    >>> vkml.full_like(vkml.tensor([1, 2]), 7)
    tensor([7, 7])
    """
    dtype, device = _like("full_like", x, dtype, device)
    return full(x.shape, value, dtype=dtype, device=device, requires_grad=requires_grad)
