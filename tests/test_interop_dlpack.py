"""DLPack capsules that are dropped, used twice or made by hand; the buffer protocol; memory over many exchanges."""

import array
import ctypes
import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

import vkml


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


ALIVE = []  # producers; the memory of their capsules is theirs


class Producer:
    """Another library's array: hands out capsules whose every field is chosen, and counts what is given back."""

    def __init__(self, values, strides=None, flags=None, device=(1, 0), byte_offset=0, version=(1, 0), lanes=1):
        ALIVE.append(self)
        self.values, self.device, self.version = values, device, version
        self.flags = flags
        self.shape = (ctypes.c_int64 * max(values.ndim, 1))(*values.shape)
        self.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        code = {"i": 0, "u": 1, "f": 2, "b": 6, "c": 5}[values.dtype.kind]
        self.fields = (code, values.dtype.itemsize * 8, lanes)
        self.byte_offset = byte_offset
        self.deleted, self.kept = [], []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        made = Managed() if self.flags is None else ManagedVersioned()
        t = made.tensor
        t.data, (t.device_type, t.device_id) = self.values.ctypes.data - self.byte_offset, self.device
        t.ndim, (t.code, t.bits, t.lanes) = self.values.ndim, self.fields
        t.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if self.strides is not None:
            t.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        t.byte_offset = self.byte_offset
        if self.flags is not None:
            (made.major, made.minor), made.flags = self.version, self.flags
        made.deleter = DELETER(self.deleted.append)
        self.kept.append(made)
        name = b"dltensor" if self.flags is None else b"dltensor_versioned"
        return new_capsule(ctypes.addressof(made), name, None)


class Holder:
    """Hands out one capsule, again and again."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return self.capsule


@pytest.mark.parametrize("flags", [None, 0])
def test_strides_may_be_absent(flags):
    producer = Producer(np.arange(6, dtype=np.float32).reshape(2, 3), flags=flags)
    t = vkml.from_dlpack(producer)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    producer.values[0, 0] = 7
    assert t[0, 0].item() == 7
    view = t[1]
    del t
    gc.collect()
    assert producer.deleted == []
    del view
    gc.collect()
    assert len(producer.deleted) == 1


def test_offsets_and_strides_are_heeded():
    values = np.arange(12, dtype=np.int32)
    t = vkml.from_dlpack(Producer(values[2:8].reshape(2, 3), strides=(1, 2), byte_offset=8))
    assert t.tolist() == [[2, 4, 6], [3, 5, 7]]
    t.fill_(1)
    assert values.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 8, 9, 10, 11]


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "uint8", "float16"])
def test_rank_0_and_no_elements(dtype):
    scalar = Producer(np.array(1, dtype))
    assert vkml.from_dlpack(scalar).item() == 1 and vkml.from_dlpack(scalar).shape == ()
    empty = Producer(np.zeros((0, 3), dtype), strides=(3, 1))
    assert vkml.from_dlpack(empty).shape == (0, 3) and vkml.from_dlpack(empty).tolist() == []
    gc.collect()
    assert len(scalar.deleted) == 2 and len(empty.deleted) == 2
    for shape in ((), (0, 3), (2, 0)):
        t = vkml.zeros(shape, dtype=dtype)
        assert np.from_dlpack(t).shape == shape and vkml.from_dlpack(Holder(t.__dlpack__())).shape == shape


def test_read_only_memory_is_copied():
    producer = Producer(np.arange(3, dtype=np.float32), flags=1)
    try:
        t = vkml.from_dlpack(producer)
    except (BufferError, ValueError, RuntimeError):  # NumPy before 2.1 cannot carry the flag
        assert not hasattr(np, "long")
        return
    assert t.fill_(5).tolist() == [5, 5, 5] and producer.values.tolist() == [0, 1, 2]


def test_a_capsule_is_used_once():
    x = vkml.full((4,), 3.0)
    for version in (None, (1, 0)):
        holder = Holder(x.__dlpack__(max_version=version))
        first = vkml.from_dlpack(holder)
        with pytest.raises((ValueError, RuntimeError, BufferError, TypeError)):
            vkml.from_dlpack(holder)
        with pytest.raises((ValueError, RuntimeError, BufferError, TypeError)):
            np.from_dlpack(holder)
        assert first.tolist() == [3] * 4


def test_capsules_that_nobody_uses_are_freed():
    before = vkml.memory_stats()["live_allocations"]
    capsules = [vkml.ones(1000).__dlpack__(max_version=v) for v in (None, (1, 0), (1, 1), (9, 0))]
    assert vkml.memory_stats()["live_allocations"] == before + 4
    del capsules
    gc.collect()
    assert vkml.memory_stats()["live_allocations"] == before


def test_producers_that_go_first():
    values = np.arange(1000, dtype=np.float32)
    gone = weakref.ref(values)
    t = vkml.from_dlpack(values)
    del values
    gc.collect()
    assert gone() is not None and t.sum().item() == 499500  # the tensor keeps it
    back = np.from_dlpack(t)
    del t
    gc.collect()
    assert back.sum() == 499500
    del back
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("producer", "error", "text"),
    [
        (
            lambda: Producer(np.zeros(2, np.float32), device=(10, 0)),
            vkml.DeviceError,
            "on the CPU or CUDA's, got DLPack device type 10, ROCm",
        ),
        (lambda: Producer(np.zeros(2, np.float32), device=(7, 0)), vkml.DeviceError, "DLPack device type 7"),
        (lambda: Producer(np.zeros(2, np.complex64)), vkml.DTypeError, "expected a dtype vkML has"),
        (lambda: Producer(np.zeros(2, np.uint32)), vkml.DTypeError, "expected a dtype vkML has"),
        (lambda: Producer(np.zeros(2, np.float32), lanes=4), vkml.DTypeError, "expected"),
        (lambda: Producer(np.zeros((1,) * 9, np.float32)), (vkml.ShapeError, vkml.Error), "rank"),
    ],
)
def test_what_cannot_be_taken(producer, error, text):
    made = producer()
    for take in (vkml.from_dlpack, vkml.tensor):
        with pytest.raises(error, match=text):
            take(made)
    gc.collect()
    assert len(made.deleted) == len(made.kept)  # nothing leaks


def test_options_of_the_export(device):
    t = vkml.tensor([1.0, 2.0], device=device)
    on_cpu = device == "cpu"
    copied = np.from_dlpack(t, copy=True, device="cpu")
    t.fill_(5)
    assert copied.tolist() == [1, 2]
    assert t.__dlpack_device__()[0] in ((1,) if on_cpu else (2, 7))
    for version in (None, (0, 8), (1, 0), (2, 0)):
        capsule = t.__dlpack__(max_version=version, dl_device=(1, 0))
        assert ("versioned" in repr(capsule)) == (version is not None and version[0] >= 1)
    for bad in ({"stream": 1}, {"dl_device": (2, 99)}, {"dl_device": (7, 3)}):
        with pytest.raises(BufferError, match="__dlpack__"):
            t.__dlpack__(**bad)
    if on_cpu:
        assert vkml.from_dlpack(Holder(t.__dlpack__(copy=False))).data_ptr() == t.data_ptr()
    else:
        with pytest.raises(BufferError, match="copy=False is impossible"):
            t.__dlpack__(dl_device=(1, 0), copy=False)
        if t.__dlpack_device__()[0] == 7:
            with pytest.raises(BufferError, match="exports to the CPU or to CUDA on the same GPU only"):
                t.__dlpack__()


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("way", ["numpy", "dlpack", "capsule", "copy", "buffer", "torch"])
def test_memory_stays_flat(device, way):
    torch = pytest.importorskip("torch") if way == "torch" else None
    source = np.ones(1 << 16, np.float32)  # 256 KiB, 256 MiB in all
    t = vkml.tensor(source, device=device)
    exchange = {
        "numpy": lambda: np.asarray(vkml.tensor(source, device=device) + 0),
        "dlpack": lambda: np.from_dlpack(vkml.from_dlpack(np.ones_like(source)), device="cpu"),
        "capsule": lambda: t.__dlpack__(max_version=(1, 0), dl_device=(1, 0)),
        "copy": lambda: np.from_dlpack(t, copy=True, device="cpu"),
        "buffer": lambda: bytes(memoryview(t.cpu())[:10]),
        "torch": lambda: torch and vkml.tensor(torch.from_dlpack(t.cpu()).clone(), device=device),
    }[way]
    for _ in range(50):
        exchange()
    gc.collect()
    before, live = resident(), vkml.memory_stats(device)["live_allocations"]
    for _ in range(1000):
        exchange()
    gc.collect()
    assert vkml.memory_stats(device)["live_allocations"] == live
    assert resident() - before < 16 << 20


def test_buffer_protocol():
    t = vkml.tensor([[1, 2, 3], [4, 5, 6]], dtype="int16")
    view = memoryview(t)
    assert view.shape == (2, 3) and view.format == "h" and view.readonly and view.tolist() == t.tolist()
    assert memoryview(t.T).strides == (2, 6) and memoryview(vkml.tensor(True)).tolist() is True
    t.fill_(7)
    assert view[1, 2] == 7
    del t
    gc.collect()
    assert view.tolist() == [[7] * 3] * 2
    with pytest.raises(BufferError, match="buffer: expected a tensor on the CPU"):
        memoryview(vkml.ones(2, dtype="bfloat16"))
    for source in (array.array("f", [1, 2]), bytearray(b"\1\2"), memoryview(np.array([1.0, 2.0])), np.array([1, 2])):
        assert vkml.tensor(source).tolist() == [1, 2]
    assert vkml.tensor(bytearray(b"\1")).dtype == vkml.uint8


def test_buffer_of_a_device(vulkan):
    x = vkml.ones(2, device=vulkan)
    with pytest.raises(BufferError, match=r"buffer: .*vulkan"):
        memoryview(x)
    assert np.asarray(x).tolist() == [1, 1]


def test_ml_dtypes_both_ways(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = np.arange(0, 1 << 16, 3, dtype=np.uint16)
    a = bits.view(ml_dtypes.bfloat16)
    t = vkml.tensor(a.reshape(-1, 2)[::2].T, device=device)
    back = np.asarray(t, dtype=ml_dtypes.bfloat16)
    wanted = a.reshape(-1, 2)[::2].T
    number = ~np.isnan(wanted.astype(np.float32))
    assert t.dtype == vkml.bfloat16 and back.dtype == ml_dtypes.bfloat16
    assert np.array_equal(back.view(np.uint16)[number], wanted.view(np.uint16)[number])
    assert np.isnan(back.astype(np.float32)[~number]).all()


@pytest.mark.torch
def test_torch_both_ways(device):
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        for shape in ((), (0, 3), (2, 3)):
            x = torch.arange(6).to(dtype)[: int(np.prod(shape))].reshape(shape)
            t = vkml.from_dlpack(x)
            assert t.tolist() == x.tolist() and str(t.dtype) == str(x.dtype).removeprefix("torch.")
            moved = t.to(device)
            back = torch.from_dlpack(moved.cpu())
            assert back.dtype == x.dtype and torch.equal(back, x)
            del x, t, moved
            gc.collect()
            assert back.shape == shape


def no_shape(t):
    t.shape = None


def field(name, value):
    return lambda t: setattr(t, name, value)


def extents(*shape):
    return lambda t: [t.shape.__setitem__(i, n) for i, n in enumerate(shape)]


@pytest.mark.parametrize("flags", [None, 0])
@pytest.mark.parametrize(
    ("break_it", "error", "text"),
    [
        (no_shape, vkml.ShapeError, "expected a shape of 2 extents, got NULL"),
        (field("data", None), vkml.ShapeError, "expected an address of the elements, got NULL"),
        (field("ndim", -1), vkml.ShapeError, "expected rank 0 to 8, got -1"),
        (field("ndim", 9), vkml.ShapeError, "expected rank 0 to 8, got 9"),
        (extents(-2, 3), vkml.ShapeError, "expected extents >= 0, got -2"),
        (extents(1 << 62, 3), vkml.ShapeError, "within 2\\^59 elements, got more"),
        (field("device_type", 99), vkml.DeviceError, "expected memory on the CPU, got DLPack device type 99"),
    ],
)
def test_fields_that_contradict_each_other(break_it, error, text, flags):
    class Broken(Producer):
        def __dlpack__(self, **options):
            capsule = super().__dlpack__(**options)
            break_it(self.kept[-1].tensor)
            return capsule

    with pytest.raises(error, match="^from_dlpack: .*" + text):
        vkml.from_dlpack(Broken(np.ones((2, 3), np.float32), flags=flags))
