"""What chunk_kda, chunk_kda_backward and kda_decode refuse, in words."""

from __future__ import annotations

import re

import pytest

import vkml

SHAPES = {
    "query": (2, 4, 70, 16), "key": (2, 4, 70, 16), "value": (2, 4, 70, 8), "log_decay": (2, 4, 70, 16),
    "beta": (2, 4, 70), "initial_state": (2, 4, 16, 8),
}  # fmt: skip

CASES = [
    ({"query": (2, 64, 128)}, vkml.ShapeError, "query: expected rank 4 [B, H, T, K], got shape (2, 64, 128)"),
    ({"beta": (2, 4, 70, 1)}, vkml.ShapeError, "beta: expected rank 3 [B, HV, T], got shape (2, 4, 70, 1)"),
    ({"value": (2, 6, 70, 8)}, vkml.ShapeError, "value: expected a multiple of 4 heads, got 6"),
    ({"query": (2, 4, 70, 0)}, vkml.ShapeError, "query: expected K >= 1, got 0"),
    ({"value": (2, 4, 70, 0)}, vkml.ShapeError, "value: expected V >= 1, got 0"),
    ({"key": (2, 4, 71, 16)}, vkml.ShapeError, "key: expected shape (2, 4, 70, 16), got (2, 4, 71, 16)"),
    ({"log_decay": (2, 4, 70, 8)}, vkml.ShapeError, "log_decay: expected shape (2, 4, 70, 16), got (2, 4, 70, 8)"),
    ({"beta": (2, 4, 69)}, vkml.ShapeError, "beta: expected shape (2, 4, 70), got (2, 4, 69)"),
    (
        {"initial_state": (2, 4, 8, 16)},
        vkml.ShapeError,
        "initial_state: expected shape (2, 4, 16, 8), got (2, 4, 8, 16)",
    ),
    ({"beta": "float16"}, vkml.DTypeError, "beta: expected float32, got float16"),
    ({"key": "bfloat16"}, vkml.DTypeError, "key: expected float32 as query, got bfloat16"),
    ({"log_decay": "float64"}, vkml.DTypeError, "log_decay: expected float32, got float64"),
    ({"initial_state": "float16"}, vkml.DTypeError, "initial_state: expected float32, got float16"),
    (
        dict.fromkeys(("query", "key", "value"), "int32"),
        vkml.DTypeError,
        "query: expected float32, float16",
    ),
    ({"scale": float("nan")}, vkml.ShapeError, "scale: expected a finite number, got nan"),
    ({"scale": float("inf")}, vkml.ShapeError, "scale: expected a finite number, got inf"),
    ({"chunk_size": 0}, vkml.ShapeError, "chunk_size: expected a positive integer, got 0"),
    ({"precision": "quick"}, vkml.ShapeError, "precision: expected 'strict' or 'fast', got 'quick'"),
]


def arguments(device: str, **changes):
    out = {}
    for name, shape in SHAPES.items():
        change = changes.pop(name, None)
        shape = change if isinstance(change, tuple) else shape
        out[name] = vkml.ones(*shape, dtype=change if isinstance(change, str) else "float32", device=device)
    return out | changes


@pytest.mark.parametrize(("changes", "error", "text"), CASES, ids=[c[2][:40] for c in CASES])
def test_refused(changes, error, text, device):
    with pytest.raises(error, match="^" + re.escape(f"chunk_kda: {text}")):
        vkml.chunk_kda(**arguments(device, **changes))
    with pytest.raises(error, match="^" + re.escape(f"chunk_kda_backward: {text}")):
        vkml.chunk_kda_backward(**arguments(device, **changes), grad_output=vkml.ones(2, 4, 70, 8, device=device))


def test_the_dtypes_are_listed_in_full(device):
    last = "float16, bfloat16 or float64" if device == "cpu" else "float16 or bfloat16"
    with pytest.raises(vkml.DTypeError, match=f"query: expected float32, {last}, got int32$"):
        vkml.chunk_kda(**arguments(device, **dict.fromkeys(("query", "key", "value"), "int32")))


def test_undefined(device):
    with pytest.raises(
        vkml.ShapeError,
        match=re.escape("chunk_kda: value: expected a tensor of shape [B, HV, T, V], got an undefined tensor"),
    ):
        vkml.chunk_kda(**arguments(device) | {"value": vkml.Tensor()})


def test_devices(vulkan):
    with pytest.raises(vkml.DeviceError, match=re.escape("chunk_kda: key: expected vulkan:0 as query, got cpu")):
        vkml.chunk_kda(**arguments(vulkan) | {"key": vkml.ones(2, 4, 70, 16)})


def test_too_wide(vulkan):
    wide = dict.fromkeys(("query", "key", "log_decay"), (1, 1, 2, 300)) | {"value": (1, 1, 2, 4), "beta": (1, 1, 2)}
    with pytest.raises(
        vkml.NotImplementedError_, match=re.escape("chunk_kda: query: expected K <= 256 on vulkan:0, got 300")
    ):
        vkml.chunk_kda(**arguments(vulkan, **wide, initial_state=(1, 1, 300, 4)))
    out = vkml.chunk_kda(**arguments("cpu", **wide, initial_state=(1, 1, 300, 4)))
    assert out.output.shape == (1, 1, 2, 4)


def test_too_many_boundaries():
    # The tensors repeat one element: only their shape is large.
    T = 2**40

    def big(*shape):
        return vkml.ones(*[1] * len(shape)).expand(*shape)

    with pytest.raises(
        vkml.ShapeError,
        match=re.escape(
            f"chunk_kda: boundaries: expected at most {2**63 - 1} elements, got shape ({T}, 1, 1, 4096, 4096)"
        ),
    ):
        vkml.chunk_kda(
            big(1, 1, T, 4096),
            big(1, 1, T, 4096),
            big(1, 1, T, 4096),
            big(1, 1, T, 4096),
            big(1, 1, T),
            chunk_size=1,
            retain_boundaries=True,
        )


@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("grad_output", (2, 4, 70, 9), "float32"),
        ("grad_final_state", (2, 4, 8, 16), "float32"),
        ("boundaries", (3, 2, 4, 16, 8), "float32"),
        ("grad_output", (2, 4, 70, 8), "float16"),
    ],
)
def test_backward_arguments(name, shape, dtype, device):
    given = arguments(device) | {"grad_output": vkml.ones(2, 4, 70, 8, device=device)}
    given[name] = vkml.ones(*shape, dtype=dtype, device=device)
    with pytest.raises((vkml.ShapeError, vkml.DTypeError), match=f"chunk_kda_backward: {name}: expected"):
        vkml.chunk_kda_backward(**given)


def test_decode_refuses(device):
    q, v, b = (
        vkml.ones(1, 2, 1, 4, device=device),
        vkml.ones(1, 2, 1, 3, device=device),
        vkml.ones(1, 2, 1, device=device),
    )
    s = vkml.ones(1, 2, 4, 3, device=device)
    with pytest.raises(vkml.ShapeError, match="kda_decode: query: expected T = 1, got 2"):
        vkml.kda_decode(*(x.expand(1, 2, 2, x.shape[3]) for x in (q, q, v, q)), vkml.ones(1, 2, 2, device=device), s)
    with pytest.raises(
        vkml.ShapeError, match=re.escape("kda_decode: state: expected shape (1, 2, 4, 3), got (1, 2, 3, 4)")
    ):
        vkml.kda_decode(q, q, v, q, b, s.transpose(2, 3).contiguous())
    with pytest.raises(vkml.ShapeError, match="kda_decode: state: expected a contiguous tensor to update"):
        vkml.kda_decode(q, q, v, q, b, vkml.ones(1, 2, 3, 4, device=device).transpose(2, 3), update_state=True)
    with pytest.raises(vkml.Error, match="chunk_kda"):
        vkml.kda_decode(q.clone().requires_grad_(), q, v, q, b, s)
    with vkml.no_grad():
        vkml.kda_decode(q.clone().requires_grad_(), q, v, q, b, s)
