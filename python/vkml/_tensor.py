"""The Tensor methods that are written in Python; `python/src/tensor.cpp` declares them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._print import formatted, text

__all__ = ["formatted", "text"]


class Size(int):
    """An element count that can also be called: `t.size`, `t.size()` (the shape), `t.size(dim)`."""

    _shape: tuple[int, ...]

    def __new__(cls, value: int, tensor: _core.Tensor):
        self = super().__new__(cls, value)
        self._shape = tensor.shape
        return self

    def __call__(self, dim: int | None = None):
        if dim is None:
            return self._shape
        rank = len(self._shape)
        if not -rank <= dim < rank:
            raise _core.IndexError_(f"size: expected dim in [{-rank}, {rank - 1}], got {dim}")
        return self._shape[dim]

    def __reduce__(self):
        return int, (int(self),)


class Flag(int):
    """A truth value that can also be called: `t.is_contiguous`, `t.is_contiguous()`."""

    def __new__(cls, value: bool, tensor: _core.Tensor | None = None):
        return super().__new__(cls, bool(value))

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))

    def __reduce__(self):
        return bool, (bool(self),)


# Values on the host ---------------------------------------------------------------------------------------------------


def float_from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def numpy(t: _core.Tensor) -> np.ndarray:
    values = np.asarray(_core._host_array(t))
    return float_from_bfloat16(values) if t.dtype == _core.bfloat16 else values


def as_array(t: _core.Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    values = numpy(t)
    wanted = values.dtype if dtype is None else np.dtype(dtype)
    fresh = t.dtype == _core.bfloat16 or t.device.type != "cpu"
    if copy is False and (fresh or wanted != values.dtype):
        raise ValueError("__array__: expected values that NumPy can share, got a tensor that needs a copy (copy=False)")
    return values.astype(wanted, copy=bool(copy) and not values.flags.writeable)


def tolist(t: _core.Tensor) -> Any:
    return numpy(t).tolist()


def operand(a: np.ndarray) -> _core.Tensor:
    """A NumPy array beside a tensor in an operator: as `tensor` makes it, on the CPU, so nothing moves unasked."""
    from ._creation import tensor

    return tensor(a, device="cpu")


def contains(t: _core.Tensor, value: Any) -> bool:
    return bool((t == value).any().item())


def iterate(t: _core.Tensor):
    if t.ndim == 0:
        raise _core.DTypeError("iteration: expected rank >= 1, got ()")
    return (_core.select(t, 0, i) for i in range(t.shape[0]))


# Copies ---------------------------------------------------------------------------------------------------------------


def _like(source: _core.Tensor, values: _core.Tensor) -> _core.Tensor:
    """`values` as a leaf of the class and gradient wish of `source`."""
    cls = type(source)
    if cls is _core.Tensor:
        return values.requires_grad_(source.requires_grad)
    made = cls.__new__(cls)
    _core.Tensor.__init__(made, values.requires_grad_(source.requires_grad))
    made.__dict__.update(getattr(source, "__dict__", {}))
    return made


def shallow_copy(t: _core.Tensor) -> _core.Tensor:
    return _like(t, t.detach()) if t.defined() and t.is_leaf else _core.Tensor(t)


def deep_copy(t: _core.Tensor, memo: dict) -> _core.Tensor:
    if id(t) in memo:
        return memo[id(t)]
    if not t.defined():
        return _core.Tensor()
    if not t.is_leaf:
        raise _core.Error("deepcopy: expected a leaf tensor, got the result of an operator; detach() it first")
    made = _like(t, t.detach().clone())
    if t.grad is not None:
        made.grad = t.grad.detach().clone()
    memo[id(t)] = made
    return made


def rebuild(cls: Any, data: np.ndarray, dtype: str, shape: tuple[int, ...], device: str, requires_grad: bool):
    values = _core._from_buffer(data, shape, dtype, device).requires_grad_(requires_grad)
    if cls is _core.Tensor:
        return values
    made = cls.__new__(cls)
    _core.Tensor.__init__(made, values)
    return made


def reduce(t: _core.Tensor, protocol: int) -> tuple:
    if not t.defined():
        return _core.Tensor, ()
    data = np.ascontiguousarray(_core._host_array(t))
    return rebuild, (type(t), data, str(t.dtype), t.shape, str(t.device), t.requires_grad and t.is_leaf)


# Devices and dtypes ---------------------------------------------------------------------------------------------------

_DEVICE_WORDS = ("cpu", "vulkan")


def _is_device(x: Any) -> bool:
    return isinstance(x, _core.device) or (isinstance(x, str) and x.startswith(_DEVICE_WORDS))


# What other frameworks call their devices.
_FOREIGN = ("cuda", "gpu", "mps", "xpu", "hip", "rocm", "metal", "opencl", "directml", "tpu", "xla", "npu")


def _is_dtype(x: Any) -> bool:
    try:
        _core.dtype(x)
    except _core.DTypeError:
        return False
    return True


def target(op: str, args: tuple, dtype: Any, device: Any) -> tuple[Any, Any]:
    """The device and the dtype among the arguments of a `to`."""
    for x in args:
        if isinstance(x, _core.Tensor):
            device, dtype = x.device, x.dtype
        elif _is_device(x):
            device = x
        elif x is None or _is_dtype(x):
            dtype = dtype if x is None else x
        elif isinstance(x, str) and x.lower().startswith(_FOREIGN):
            here = ", ".join(str(d.device) for d in _core.devices() if d.usable)
            raise _core.DeviceError(
                f'{op}: expected "cpu" or "vulkan", a GPU of any make (here: {here}), got "{x:.40}"'
            )
        else:
            raise _core.DTypeError(
                f'{op}: expected a device ("cpu", "vulkan", "vulkan:N") or a dtype (float32, float64, float16, '
                f"bfloat16, int8, int16, int32, int64, uint8, bool), got {x!r:.60}"
            )
    return device, dtype


def to(
    t: _core.Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False
):
    device, dtype = target("to", args, dtype, device)
    out = t
    if device is not None and _core.device(device) != out.device:
        out = _core._to_device(out, device)
    if dtype is not None:
        dtype = _core.dtype(dtype)
        if dtype != out.dtype:
            out = _core._cast(out, dtype)
    return out.clone() if copy and out is t else out


def astype(t: _core.Tensor, dtype: Any) -> _core.Tensor:
    return to(t, dtype=_core.dtype(dtype))


def type_as(t: _core.Tensor, other: _core.Tensor) -> _core.Tensor:
    if not isinstance(other, _core.Tensor):
        raise _core.DTypeError(f"type_as: other: expected a Tensor, got {type(other).__name__}")
    return to(t, dtype=other.dtype)


def cpu(t: _core.Tensor) -> _core.Tensor:
    return to(t, device="cpu")


def vulkan(t: _core.Tensor, index: int | None = None) -> _core.Tensor:
    if index is not None and not isinstance(index, int):
        raise _core.DTypeError(f"vulkan: index: expected an int or None, got {type(index).__name__}")
    return to(t, device="vulkan" if index is None else f"vulkan:{index}")


def to_float(t: _core.Tensor) -> _core.Tensor:
    return to(t, dtype=_core.float32)


def to_half(t: _core.Tensor) -> _core.Tensor:
    return to(t, dtype=_core.float16)


def to_bfloat16(t: _core.Tensor) -> _core.Tensor:
    return to(t, dtype=_core.bfloat16)


def to_double(t: _core.Tensor) -> _core.Tensor:
    return to(t, dtype=_core.float64)


def to_int(t: _core.Tensor) -> _core.Tensor:
    return to(t, dtype=_core.int32)


def to_long(t: _core.Tensor) -> _core.Tensor:
    return to(t, dtype=_core.int64)


def to_bool(t: _core.Tensor) -> _core.Tensor:
    return to(t, dtype=_core.bool_)


def copy_(t: _core.Tensor, source: Any) -> _core.Tensor:
    from ._creation import as_tensor

    if not isinstance(source, _core.Tensor):
        source = as_tensor(source, dtype=t.dtype, device=t.device)
    t._copy_(to(source, device=t.device, dtype=t.dtype))
    return t
