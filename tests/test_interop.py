"""NumPy, DLPack, ml_dtypes and PyTorch."""

import gc

import numpy as np
import pytest

import vkml


def test_numpy_shares_cpu_memory_read_only():
    t = vkml.tensor([1.0, 2.0])
    a = t.numpy()
    assert not a.flags.writeable
    t.fill_(5)
    assert a.tolist() == [5, 5]
    del t
    gc.collect()
    vkml.zeros(1000)
    assert a.tolist() == [5, 5]  # the array keeps the memory


def test_array_protocol(device):
    t = vkml.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    assert np.asarray(t).dtype == np.float32 and np.asarray(t, dtype=np.int64).tolist() == [[1, 2], [3, 4]]
    assert np.array(t, copy=True).flags.writeable
    np.testing.assert_array_equal(np.asarray(t.T), [[1, 3], [2, 4]])
    assert np.asarray(t.requires_grad_()).tolist() == [[1, 2], [3, 4]]
    assert np.asarray(vkml.zeros(0, 3, device=device)).shape == (0, 3)


def test_array_without_a_copy():
    t = vkml.ones(3)
    assert np.array(t, copy=False).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="copy=False"):
        np.array(t, dtype=np.int32, copy=False)


def test_bfloat16_arrives_as_float32(device):
    bits = np.array([0x3F80, 0xC000, 0x7F80], np.uint16)
    t = vkml._core._from_buffer(bits, (3,), "bfloat16", device)
    assert t.numpy().dtype == np.float32 and t.numpy().tolist() == [1, -2, float("inf")]


def test_ml_dtypes(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.array([1.5, -2.25, 3e38], ml_dtypes.bfloat16)
    t = vkml.tensor(a, device=device)
    assert t.dtype == vkml.bfloat16
    np.testing.assert_array_equal(t.numpy(), a.astype(np.float32))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_dlpack_to_numpy(dtype):
    t = vkml._core._from_buffer(np.array([[1, 0, 1], [0, 1, 1]], dtype), (2, 3), dtype, "cpu")
    a = np.from_dlpack(t.T)
    assert a.dtype == dtype and a.tolist() == [[1, 0], [0, 1], [1, 1]]
    t.fill_(1)
    assert a.min() == 1  # one memory


def test_dlpack_from_numpy():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    t = vkml.from_dlpack(a[:, ::2])
    assert t.tolist() == [[0, 2], [4, 6], [8, 10]]
    a[0, 0] = 5
    assert t.tolist()[0] == [5, 2]
    t.zero_()
    assert a[0].tolist() == [0, 1, 0, 3]
    assert vkml.from_dlpack(np.array(3.0)).item() == 3 and vkml.from_dlpack(np.zeros((0, 2))).shape == (0, 2)


def test_dlpack_copies_what_it_cannot_share():
    a = np.arange(3, dtype=np.float32)
    assert vkml.from_dlpack(a[::-1]).tolist() == [2, 1, 0]
    a.flags.writeable = False
    t = vkml.from_dlpack(a)
    assert t.fill_(1).tolist() == [1, 1, 1] and a.tolist() == [0, 1, 2]
    odd = np.frombuffer(bytearray(13), np.uint8)[1:].view(np.float32)
    assert vkml.from_dlpack(odd).tolist() == [0, 0, 0]


def test_dlpack_protocol():
    t = vkml.ones(2)
    assert t.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(t.__dlpack__())
    copied = np.from_dlpack(t, copy=True)
    t.zero_()
    assert copied.tolist() == [1, 1]
    with pytest.raises(BufferError, match="require grad"):
        vkml.ones(1, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="CPU"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(vkml.DTypeError, match="from_dlpack: expected an object with __dlpack__, got list"):
        vkml.from_dlpack([1])
    assert vkml.from_dlpack(t).data_ptr() == t.data_ptr()


def test_dlpack_from_a_device(vulkan):
    t = vkml.ones(2, device=vulkan)
    assert t.__dlpack_device__()[0] in (2, 7)
    if t.__dlpack_device__()[0] == 7:  # no CUDA on the same GPU
        with pytest.raises(BufferError, match="exports to the CPU or to CUDA on the same GPU only"):
            t.__dlpack__()
    assert np.from_dlpack(t, device="cpu").tolist() == [1, 1]


def test_dlpack_lifetimes():
    a = np.from_dlpack(vkml.full((4,), 3.0))
    gc.collect()
    assert a.tolist() == [3] * 4
    t = vkml.from_dlpack(np.full(4, 2.0, np.float32))
    gc.collect()
    assert t.tolist() == [2] * 4
    capsule = t.__dlpack__()
    del capsule  # never consumed
    x = vkml.ones(1000)
    before = vkml.memory_stats()["in_use_bytes"]
    for _ in range(1000):
        vkml.from_dlpack(np.from_dlpack(x))
        x.__dlpack__(max_version=(1, 0))
    gc.collect()
    assert vkml.memory_stats()["in_use_bytes"] == before


def test_dlpack_of_an_unknown_dtype():
    with pytest.raises(vkml.DTypeError, match="from_dlpack"):
        vkml.from_dlpack(np.zeros(2, np.complex64))


def test_array_protocol_of_others():
    class Other:
        def __array__(self, dtype=None, copy=None):
            return np.array([1, 2], np.int32)

    assert vkml.tensor(Other()).tolist() == [1, 2] and vkml.as_tensor(Other()).dtype == vkml.int32


@pytest.mark.torch
def test_torch(device):
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "bfloat16", "float16", "int64", "bool", "uint8"):
        values = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype))
        for source in (values, values.T, values[:, ::2]):
            t = vkml.tensor(source, device=device)
            assert t.dtype == dtype and t.tolist() == source.tolist()
    leaf = torch.ones(2, requires_grad=True)
    assert vkml.tensor(leaf).tolist() == [1, 1]
    shared = vkml.ones(3)
    back = torch.from_dlpack(shared)
    back[0] = 7
    assert shared.tolist() == [7, 1, 1]
    assert torch.from_dlpack(vkml.tensor(torch.ones(2, dtype=torch.bfloat16))).dtype == torch.bfloat16
    assert vkml.tensor(torch.zeros(2, dtype=torch.float64)).dtype == vkml.float32
