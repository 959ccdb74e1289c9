"""softmax and log_softmax: one declaration each, edge rows, and every structure of softmax.rows in turn."""

from __future__ import annotations

import ml_dtypes  # noqa: F401  (registers bfloat16 with NumPy)
import numpy as np
import pytest
from helpers import assert_close, assert_same_bits, assert_within, tensor, to_numpy
from op_cases import ROWS, Tolerance, bench, op_cases

import vkml
from vkml import _core

LENGTHS = [2, 31, 33, 63, 65, 127, 1025, 4099]
SHAPES = [*ROWS, *((3, n) for n in LENGTHS), *((n, 3) for n in LENGTHS[:6]), (2, 65, 3), (5, 4, 3, 2, 3), (1, 2, 1, 33)]


def np_softmax(x: np.ndarray, dim: int = -1) -> np.ndarray:
    if x.size == 0:
        return x
    e = np.exp(x - x.max(dim if x.ndim else None, keepdims=True))
    return e / e.sum(dim if x.ndim else None, keepdims=True)


def np_log_softmax(x: np.ndarray, dim: int = -1) -> np.ndarray:
    if x.size == 0:
        return x
    axis = dim if x.ndim else None
    d = x - x.max(axis, keepdims=True)
    return d - np.log(np.exp(d).sum(axis, keepdims=True))


def errors_of(name: str) -> list:
    op = getattr(vkml, name)
    return [
        (
            lambda d: op(vkml.tensor([1, 2], device=d)),
            "DTypeError",
            f"^{name}: expected a floating-point tensor, got int64$",
        ),
        (lambda d: op(vkml.tensor([1.0], device=d), 1), "IndexError_", f"^{name}: expected dim in \\[-1, 0\\], got 1$"),
        (
            lambda d: op(vkml.tensor([1.0], device=d), -2),
            "IndexError_",
            f"^{name}: expected dim in \\[-1, 0\\], got -2$",
        ),
    ]


COMMON = {"shapes": SHAPES, "dim": [-1, 0, 1], "tolerance": Tolerance(row=1e-6), "second": True, "batched": True}
TestSoftmax = op_cases(
    "softmax",
    np_softmax,
    torch=lambda torch, x, dim=-1: torch.softmax(x, dim),
    errors=errors_of("softmax"),
    bench=[
        bench((32768, 1024)),
        bench((8192, 8192)),
        bench((1024, 65536)),
        bench((128, 262144)),
        bench((32768, 1024), dtype="bfloat16"),
        bench((8192, 8192), dtype="bfloat16"),
        *(bench(s, backward=True) for s in ((32768, 1024), (8192, 8192), (1024, 65536), (128, 262144))),
        bench((8192, 8192), dtype="bfloat16", backward=True),
    ],
    **COMMON,
)
TestLogSoftmax = op_cases(
    "log_softmax",
    np_log_softmax,
    torch=lambda torch, x, dim=-1: torch.log_softmax(x, dim),
    errors=errors_of("log_softmax"),
    bench=[
        bench((32768, 1024)),
        bench((8192, 8192)),
        bench((1024, 65536)),
        bench((128, 262144)),
        bench((8192, 8192), dtype="bfloat16"),
        *(bench(s, backward=True) for s in ((32768, 1024), (8192, 8192), (1024, 65536), (128, 262144))),
    ],
    **COMMON,
)

INF, NAN = float("inf"), float("nan")
EDGES = [
    ([1e4, 0, -1e4], [1, 0, 0], [0, -1e4, -2e4]),
    ([-INF, 0, 0], [0, 0.5, 0.5], [-INF, -0.6931472, -0.6931472]),
    ([-INF, -INF, -INF], [NAN] * 3, [NAN] * 3),
    ([1, NAN, 2], [NAN] * 3, [NAN] * 3),
    ([1, INF, 2], [NAN] * 3, [NAN] * 3),
    ([-3e38, -3e38, -3e38], [1 / 3] * 3, [-1.0986123] * 3),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [False, True])
def test_edge_rows_leave_others_alone(device: str, dtype: str, columns: bool) -> None:
    rows = np.array([[0.5, 1, 2]] + [r for e in EDGES for r in (e[0], [0.5, 1, 2])])
    x = tensor(rows.T if columns else rows, dtype, device)
    dim = 0 if columns else -1
    for op, which, good in ((vkml.softmax, 1, np_softmax(rows[:1])), (vkml.log_softmax, 2, np_log_softmax(rows[:1]))):
        y = to_numpy(op(x, dim))
        y = y.T if columns else y
        for i, edge in enumerate(EDGES):
            assert_close(y[1 + 2 * i], np.array(edge[which]), rtol=1e-6, what=f"{op.__name__} of {edge[0]}")
            assert_close(y[2 + 2 * i], good[0], rtol=1e-6, what="the row after")


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFFFFFFFF, 0x7FFFFF81])
def test_every_nan_makes_its_row_nan(device: str, bits: int) -> None:
    """Arithmetic on the bits of an exponential must not turn a payload into a number."""
    x = np.linspace(-3, 3, 33, dtype=np.float32)[None].repeat(3, 0)
    x.view(np.uint32)[1, 7] = bits
    for op in (vkml.softmax, vkml.log_softmax):
        y = op(tensor(x, device=device), -1).numpy()
        assert np.isnan(y[1]).all()
        assert np.isfinite(y[[0, 2]]).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_length_one_and_rank_zero(device: str, dtype: str) -> None:
    for shape in ((), (1,), (4, 1)):
        x = tensor(np.full(shape, 3.25), dtype, device)
        assert (to_numpy(vkml.softmax(x)) == 1).all() and (to_numpy(vkml.log_softmax(x)) == 0).all()


def test_known_gradients(device: str) -> None:
    x = tensor([-INF, 0, 0], "float32", device, True)
    vkml.log_softmax(x).backward(tensor([0, 1, 0], "float32", device))
    assert_close(x.grad, np.array([0, 0.5, -0.5]), atol=1e-7)
    x = tensor([-INF, 0, 0], "float32", device, True)
    vkml.softmax(x).backward(tensor([1, 2, 3], "float32", device))
    assert_close(x.grad, np.array([0, -0.25, 0.25]), atol=1e-7)


def test_doctest_values(device: str) -> None:
    x = tensor([[1, 2, 3]], "float32", device)
    assert_close(vkml.softmax(x, -1), np.array([[0.09003057, 0.24472848, 0.66524094]]), rtol=2.4e-7)
    assert_close(vkml.log_softmax(x, -1), np.array([[-2.407606, -1.4076059, -0.40760595]]), rtol=2.4e-7)


def forced(structure: str):
    class Forced:
        def __enter__(self) -> None:
            _core._force_row_structure(structure)

        def __exit__(self, *_: object) -> None:
            _core._force_row_structure("")

    return Forced()


LONG = [((2, 40000), -1), ((1, 1 << 20), -1), ((3, 8192), -1), ((3, 4099), -1), ((5000, 3), 0), ((2, 700, 33), 1)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("structure", ["resident", "wide", "split", "looped"])
@pytest.mark.parametrize(("shape", "dim"), LONG)
def test_each_structure(
    vulkan: str, rng: np.random.Generator, structure: str, shape: tuple, dim: int, dtype: str
) -> None:
    held = to_numpy(tensor(rng.normal(0, 4, shape), dtype))
    x, g = tensor(held, dtype, vulkan, True), tensor(rng.normal(0, 1, shape), dtype, vulkan)
    unit = {"float32": 0, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    with forced(structure):
        vkml.record_decisions()
        y, z = vkml.softmax(x, dim), vkml.log_softmax(x, dim)
        (d,) = vkml.grad([y], [x], [g])
        ran = [c for c in vkml.decisions() if str(getattr(c, "site", c)).find("softmax") >= 0]
        vkml.stop_recording_decisions()
        assert ran
        expected = np_softmax(held, dim)
        assert_within(to_numpy(y), expected, 1e-6 * expected.max() + unit * expected)
        expected = np_log_softmax(held, dim)
        assert_within(to_numpy(z), expected, 1e-6 * np.abs(expected).max() + unit * np.abs(expected))
        s, up = to_numpy(y), to_numpy(g)
        expected = s * (up - (s * up).sum(dim, keepdims=True))
        assert_within(to_numpy(d), expected, 1e-5 * np.abs(expected).max() + unit * np.abs(expected) + 2.0**-24)


@pytest.mark.parametrize(("shape", "dim"), LONG)
def test_a_long_row_has_the_same_bits_shared_or_not(
    vulkan: str, rng: np.random.Generator, shape: tuple, dim: int
) -> None:
    x = tensor(rng.normal(0, 4, shape), "float32", vulkan)
    results = []
    for structure in ("split", "looped"):
        with forced(structure):
            results.append(vkml.softmax(x, dim))
    assert_same_bits(*results, "split and looped")


def test_strided_axis_needs_no_copy(vulkan: str) -> None:
    x = tensor(np.arange(24.0).reshape(2, 3, 4), "float32", vulkan)
    before = vkml.dispatch_count(vulkan)
    for view in (x, x.permute(2, 0, 1), x[:, ::2], x[:, :, 1:3]):
        for dim in range(3):
            before = vkml.dispatch_count(vulkan)
            vkml.softmax(view, dim)
            assert vkml.dispatch_count(vulkan) == before + 1


def test_decision_names_what_ran(vulkan: str) -> None:
    vkml.record_decisions()
    vkml.softmax(tensor(np.ones((2, 50)), "float32", vulkan))
    vkml.softmax(tensor(np.arange(400000.0)[None], "float32", vulkan))
    found = [str(d) for d in vkml.decisions()]
    vkml.stop_recording_decisions()
    assert any("softmax.rows" in d and "resident" in d for d in found), found
    assert any("softmax.rows" in d and "split" in d and "does not fit" in d for d in found), found
