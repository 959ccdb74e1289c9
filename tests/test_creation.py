"""tensor() from every kind of data, and tensors of one value."""

import numpy as np
import pytest

import vkml


def test_dtype_rules():
    assert (
        vkml.tensor(1.5).dtype == vkml.float32
        and vkml.tensor(1).dtype == vkml.int64
        and vkml.tensor(True).dtype == vkml.bool_
    )
    assert vkml.tensor([1, 2.5]).dtype == vkml.float32 and vkml.tensor([[True], [False]]).shape == (2, 1)
    assert (
        vkml.tensor(np.zeros(2)).dtype == vkml.float32
        and vkml.tensor(np.zeros(2), dtype="float64").dtype == vkml.float64
    )
    assert vkml.tensor(np.float64(2)).dtype == vkml.float32 and vkml.tensor(np.int16(2)).dtype == vkml.int16
    assert (
        vkml.tensor([]).dtype == vkml.float32
        and vkml.tensor([]).shape == (0,)
        and vkml.tensor([[], []]).shape == (2, 0)
    )


def test_tensor_copies(device):
    a = np.arange(3, dtype=np.float32)
    t = vkml.tensor(a, device=device)
    a[:] = 9
    assert t.tolist() == [0, 1, 2]
    u = vkml.tensor(t)
    t.zero_()
    assert u.tolist() == [0, 1, 2] and u.device == device and not u.requires_grad


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: np.asfortranarray(a),
        lambda a: a.astype(">f4"),
        lambda a: a[1:, 1:],
    ],
    ids=["transposed", "reversed", "stepped", "fortran", "big-endian", "offset"],
)
def test_any_numpy_layout(view, device, rng):
    a = view(rng.standard_normal((4, 6)).astype(np.float32))
    for make in (vkml.tensor, vkml.from_numpy, vkml.as_tensor):
        t = make(a, device=device)
        np.testing.assert_array_equal(t.numpy(), a)
        assert t.is_contiguous


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32"])
def test_numpy_round_trip(dtype, device, rng):
    a = rng.integers(0, 2 if dtype == "bool" else 100, (3, 5)).astype(dtype)
    t = vkml.tensor(a, device=device)
    assert t.dtype == dtype and t.numpy().dtype == a.dtype
    np.testing.assert_array_equal(t.numpy(), a)


def test_lists_of_tensors():
    assert vkml.tensor([vkml.tensor([1.0, 2.0]), vkml.tensor([3.0, 4.0])]).tolist() == [[1, 2], [3, 4]]
    assert vkml.tensor([[vkml.tensor(1), 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


def test_what_is_no_tensor():
    with pytest.raises(vkml.ShapeError, match="tensor: expected nested lists of equal lengths, got ragged"):
        vkml.tensor([[1, 2], [3]])
    for bad in (
        ["a"],
        "text",
        np.array([1j]),
        np.array([{}]),
        np.zeros(2, np.uint32),
        [2**70],
        [2**63],
        None,
        object(),
    ):
        with pytest.raises(vkml.DTypeError, match="tensor: expected"):
            vkml.tensor(bad)
    with pytest.raises(vkml.DTypeError, match="from_numpy: expected a NumPy array, got list"):
        vkml.from_numpy([1])
    with pytest.raises(vkml.DTypeError, match="from_numpy"):
        vkml.from_numpy(np.zeros(2, np.complex64))


def test_requires_grad():
    assert vkml.tensor([1.0], requires_grad=True).requires_grad and vkml.zeros(1, requires_grad=True).is_leaf
    with pytest.raises(vkml.DTypeError, match="requires_grad: expected a floating-point tensor, got int64"):
        vkml.tensor([1], requires_grad=True)


def test_shapes_as_sequence_or_integers(device):
    for make, value in ((vkml.zeros, 0), (vkml.ones, 1)):
        for shape in ((2, 3), ((2, 3),), ([2, 3],), (np.array([2, 3]),)):
            t = make(*shape, device=device)
            assert t.shape == (2, 3) and t.tolist() == [[value] * 3] * 2
        assert make((), device=device).shape == make(device=device).shape == () and make(0).shape == (0,)
    assert vkml.empty(2, 3, dtype="int8", device=device).shape == (2, 3)


def test_full(device):
    assert vkml.full((2,), 2, device=device).dtype == vkml.int64
    assert vkml.full(2, 2.5, device=device).tolist() == [2.5, 2.5]
    assert vkml.full((), True, device=device).item() is True
    assert vkml.full((1,), 3, dtype="float16", device=device).dtype == vkml.float16


def test_like(device):
    x = vkml.ones(2, 3, dtype="int32", device=device)
    for made, value in ((vkml.zeros_like(x), 0), (vkml.ones_like(x), 1), (vkml.full_like(x, 7), 7)):
        assert made.dtype == vkml.int32 and made.device == device and made.tolist() == [[value] * 3] * 2
    assert vkml.empty_like(x, dtype="float32").dtype == vkml.float32
    with pytest.raises(vkml.DTypeError, match="zeros_like: expected a tensor, got list"):
        vkml.zeros_like([1])


def test_as_tensor_keeps_what_fits():
    x = vkml.ones(2)
    assert vkml.as_tensor(x) is x and vkml.asarray(x) is x
    assert vkml.as_tensor([1.0]).tolist() == [1]


def test_casts_round_once(device):
    # 2.9e-8 is below half of float16's smallest subnormal; 65519 still rounds down.
    t = vkml.tensor([65519.0, 65520.0, 2049.0, 2.9e-8], dtype="float16", device=device)
    assert t.tolist() == [65504.0, float("inf"), 2048.0, 0.0]
    assert vkml.tensor([1.00390625, 1.01171875], dtype="bfloat16", device=device).tolist() == [1.0, 1.015625]
    assert vkml.tensor([1e10, float("nan"), -1e10], dtype="int32", device=device).tolist() == [2**31 - 1, 0, -(2**31)]
