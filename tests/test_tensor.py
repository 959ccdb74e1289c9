"""Tensor: properties, questions, conversions, protocols, text, writing in place."""

import copy
import pickle

import numpy as np
import pytest

import vkml


def sample(device, shape=(2, 3), dtype="float32"):
    return vkml.tensor(np.arange(1, 1 + int(np.prod(shape))).reshape(shape), dtype=dtype, device=device)


def test_properties(device):
    x = vkml.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4), device=device)
    assert x.shape == (2, 3, 4) and x.ndim == 3 and x.dtype == vkml.float32 and x.device == device
    assert x.strides == (48, 16, 4) and x.stride() == (12, 4, 1) and x.stride(-1) == 1
    assert x.itemsize == x.element_size() == 4 and x.nbytes == 96 and x.numel() == 24 and x.dim() == 3
    assert x.defined() and not vkml.Tensor().defined() and x.is_floating_point()
    assert x.data_ptr() != 0 and vkml.zeros(0, device=device).data_ptr() == 0
    assert len(x) == 2


def test_size_and_is_contiguous_are_properties_that_can_be_called():
    x = vkml.zeros(2, 3)
    assert x.size == 6 and isinstance(x.size, int) and x.size + 1 == 7
    assert x.size(0) == 2 and x.size(-1) == 3 and x.size() == (2, 3)
    with pytest.raises(vkml.IndexError_, match=r"size: expected dim in \[-2, 1\], got 2"):
        x.size(2)
    assert x.is_contiguous and x.is_contiguous() is True
    assert not x.T.is_contiguous and x.T.is_contiguous() is False
    assert repr(x.T.is_contiguous) == "False"
    assert pickle.loads(pickle.dumps(x.size)) == 6


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_item_and_lists(device, dtype):
    x = vkml._core._from_buffer(*raw([1, 0, 1], dtype), dtype, device)
    assert x.tolist() == [1, 0, 1]
    one = x.narrow(0, 2, 1)
    kind = bool if dtype == "bool" else float if "float" in dtype else int
    assert one.item() == 1 and type(one.item()) is kind
    assert bool(one) is True and float(one) == 1.0 and int(one) == 1


def raw(values, dtype):
    """(bytes, shape) of values in a dtype, bfloat16 included."""
    if dtype == "bfloat16":
        return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16), (len(values),)
    return np.array(values, dtype), (len(values),)


def test_one_element_is_asked_for():
    x = vkml.zeros(2)
    for ask in (bool, float, int, lambda t: t.item()):
        with pytest.raises(vkml.Error, match=r"expected a tensor of one element, got shape \(2,\)"):
            ask(x)
    with pytest.raises(TypeError, match="index: expected one integer, got float32"):
        range(10)[vkml.tensor(1.0)]
    assert range(10)[vkml.tensor(3)] == 3
    assert f"{vkml.tensor(0.5):.3f}" == "0.500"


def test_large_integers_are_exact():
    assert vkml.tensor(2**53 + 1).item() == 2**53 + 1
    assert vkml.full((1,), -(2**63)).item() == -(2**63)
    assert vkml.full((1,), 2**53 + 1).tolist() == [2**53 + 1]


def test_iteration_gives_rows(device):
    x = sample(device)
    assert [row.tolist() for row in x] == x.tolist()
    with pytest.raises(TypeError, match="iteration: expected rank >= 1"):
        iter(vkml.tensor(1.0))
    with pytest.raises(TypeError, match="len: expected rank >= 1"):
        len(vkml.tensor(1.0))


def test_hash_is_identity():
    x, y = vkml.ones(2), vkml.ones(2)
    assert len({x, y, x}) == 2


def test_repr():
    assert repr(vkml.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(vkml.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(vkml.tensor([[1, 2], [3, 4]])) == "tensor([[1, 2],\n        [3, 4]])"
    assert repr(vkml.tensor([True, False])) == "tensor([ True, False])"
    assert repr(vkml.ones(1, dtype="float16")) == "tensor([1.], dtype=vkml.float16)"
    assert repr(vkml.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(vkml.ones(1, requires_grad=True).clone()) == "tensor([1.], grad_fn=<clone>)"
    assert repr(vkml.Tensor()) == "tensor(<undefined>)"
    assert repr(vkml.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert "..." in repr(vkml.zeros(100, 100)) and len(repr(vkml.zeros(100, 100))) < 1000
    assert "nan" in repr(vkml.tensor([float("nan"), float("inf")]))


def test_repr_on_a_device(vulkan):
    assert repr(vkml.ones(2, device=vulkan)) == "tensor([1., 1.], device='vulkan:0')"
    assert "..." in repr(vkml.zeros(3000, device=vulkan))


def test_moves(device):
    x = sample("cpu")
    y = x.to(device)
    assert y.device == device and y.tolist() == x.tolist()
    assert y.cpu().device == "cpu" and x.to("cpu") is x
    assert x.to(x, copy=True).data_ptr() != x.data_ptr()
    if device != "cpu":
        assert x.vulkan(0).device == device


def test_casts(device):
    x = vkml.tensor([1.75, -2.5, 300.0], device=device)
    words = {
        "float": "float32",
        "half": "float16",
        "bfloat16": "bfloat16",
        "double": "float64",
        "int": "int32",
        "long": "int64",
        "bool": "bool",
    }
    for method, dtype in words.items():
        if dtype == "float64" and device != "cpu" and not vkml.device_info(device)["f64"]:
            continue
        y = getattr(x, method)()
        assert y.dtype == dtype and y.device == device
    assert x.int().tolist() == [1, -2, 300] and x.astype(np.int8).tolist() == [1, -2, 127]
    assert x.to(vkml.float16).dtype == x.type_as(x.half()).dtype == vkml.float16
    assert x.to(vkml.zeros(1, dtype="int64", device=device)).dtype == vkml.int64
    with pytest.raises(vkml.DTypeError, match="got 'flot32'"):
        x.to("flot32")


def test_in_place_writes(device):
    x = vkml.zeros(2, 3, device=device)
    assert x.fill_(2) is x and x.tolist() == [[2] * 3] * 2
    assert x.copy_(vkml.tensor([1.0, 2.0, 3.0], device=device)) is x and x.tolist() == [[1, 2, 3]] * 2
    assert x.copy_(np.array([[7], [8]])).tolist() == [[7] * 3, [8] * 3]
    x.T.assign_(sample(device, (3, 2)))
    assert x.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert x.zero_().tolist() == [[0] * 3] * 2
    with pytest.raises(vkml.ShapeError, match=r"assign: expected shape \(2, 3\), got \(3,\)"):
        x.assign_(vkml.zeros(3, device=device))


def test_assign_checks_everything_before_it_writes():
    a, b = vkml.zeros(2), vkml.zeros(3)
    with pytest.raises(vkml.ShapeError):
        vkml.assign([a, b], [vkml.ones(2), vkml.ones(2)])
    assert a.tolist() == [0, 0]
    vkml.assign([a, b], [vkml.ones(2), vkml.ones(3)])
    assert a.tolist() == [1, 1] and b.tolist() == [1, 1, 1]


def test_copies(device):
    x = sample(device).requires_grad_()
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert shallow.data_ptr() == x.data_ptr() and deep.data_ptr() != x.data_ptr()
    assert deep.requires_grad and deep.tolist() == x.tolist() and deep.device == device
    twice = copy.deepcopy([x, x])
    assert twice[0] is twice[1]
    with pytest.raises(vkml.Error, match="deepcopy: expected a leaf"):
        copy.deepcopy(x.clone())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_pickle_goes_by_value(device, dtype):
    x = vkml._core._from_buffer(*raw([1, 0, 1], dtype), dtype, device)
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == x.dtype and y.device == x.device and y.tolist() == x.tolist()
    p = vkml.nn.Parameter(vkml.ones(2))
    q = pickle.loads(pickle.dumps(p))
    assert type(q) is vkml.nn.Parameter and q.requires_grad and q.tolist() == [1, 1]


def test_default_device_and_dtype():
    with vkml.device("cpu") as d:
        assert d == vkml.cpu == "cpu" and vkml.zeros(1).device == "cpu"
    try:
        vkml.set_default_dtype("float64")
        assert vkml.tensor(1.5).dtype == vkml.zeros(1).dtype == vkml.float64
    finally:
        vkml.set_default_dtype("float32")


def test_default_device_scopes(vulkan):
    with vkml.device(vulkan):
        assert vkml.zeros(1).device == vulkan
        with vkml.device("cpu"):
            assert vkml.tensor([1]).device == "cpu"
        assert vkml.tensor([1]).device == vulkan
    assert vkml.zeros(1).device == "cpu"


def test_devices_parse_without_hardware():
    d = vkml.device("vulkan:7")
    assert (
        d.type == "vulkan"
        and d.index == 7
        and not d.is_cpu
        and str(d) == "vulkan:7"
        and d == "vulkan:7"
        and hash(d) == hash(vkml.device(d))
    )
    assert vkml.device("cpu").is_cpu and d != "cpu" and d != 3
    for bad in ("gpu", "vulkan:", "vulkan:x", "cuda:0", 3, None):
        with pytest.raises(vkml.DeviceError, match="device: expected"):
            vkml.device(bad)


def test_dtypes():
    assert vkml.dtype(np.float32) == vkml.dtype("float32") == vkml.dtype(np.dtype("f4")) == vkml.float32 == np.float32
    assert vkml.dtype(int) == vkml.int64 and vkml.dtype(float) == vkml.float32 and vkml.dtype(bool) == vkml.bool_
    assert str(vkml.bool_) == "bool" and repr(vkml.bool_) == "vkml.bool_" and vkml.bfloat16.itemsize == 2
    assert vkml.float16.is_floating_point and not vkml.int8.is_floating_point and vkml.float32 != "no dtype"
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert vkml.dtype(ml_dtypes.bfloat16) == vkml.bfloat16
