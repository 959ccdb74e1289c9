"""matmul: every rank, layout, dtype, pipeline and precision, within the error bound of a sum."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator

import numpy as np
import pytest
from helpers import (
    FLOATS,
    INTEGERS,
    LAYOUTS,
    NUMPY,
    assert_same_bits,
    assert_within,
    laid_out,
    rounded,
    tensor,
    to_numpy,
)
from op_cases import Tolerance, bench, op_cases

import vkml
from vkml import _core

PIPELINES = ["gemv", "gemv_columns", "gemm_naive", "gemm_tiled", "gemm_db", "gemm_reg", "gemm_split_k"]
SIZES = [(1, 1, 1), (7, 8, 9), (16, 15, 17), (31, 32, 33), (33, 31, 65), (64, 63, 1), (1, 129, 64), (130, 257, 63)]
TORCH_TYPES = {"float32", "float64"}
FLOOR = os.environ.get("VKML_MIN_SPEC") == "1"


def bound(eps: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    k = a.shape[-1]
    return (k / 32 + np.log2(max(k, 1)) + 32) * eps * (np.abs(a) @ np.abs(b)) + 1e-300


def exact_bound(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    k = a.shape[-1]
    return (33 + max(0.0, np.log2(max(k, 1) / 32))) * 2.0**-24 * (np.abs(a) @ np.abs(b)) + 1e-300


def allowed(dtype: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The f32 bound, and one rounding of the result's own."""
    error = bound(2.0**-52 if dtype == "float64" else 2.0**-23, a, b)
    own = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype, 0.0)
    return error + own * (np.abs(a @ b) + error) + (2.0**-25 if dtype == "float16" else 0.0)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


@pytest.fixture
def precision() -> Iterator[None]:
    before = vkml.get_float32_matmul_precision()
    yield
    vkml.set_float32_matmul_precision(before)


@pytest.fixture(params=PIPELINES)
def pipeline(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every product goes through this pipeline, as far as it takes it."""
    _core._force_gemm(request.param)
    yield request.param
    _core._force_gemm("")


def chosen(call) -> str:
    vkml.record_decisions(16)
    call()
    vkml.stop_recording_decisions()
    return [d for d in vkml.decisions() if d["site"] == "matmul.kernel"][-1]["chose"]


SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((3,), (2, 3, 4)),
    ((2, 4, 3), (3,)),
    ((2, 3), (3, 4)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((2, 3), (3, 0)),
    ((0,), (0,)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((5, 3, 4), (4, 2)),
    ((3, 4), (2, 4, 5)),
    ((2, 0, 3, 4), (4, 2)),
    ((1, 2, 3, 1, 2, 3, 4), (2, 1, 2, 1, 4, 2)),
    ((33, 65), (65, 31)),
]

TestMatmul = op_cases(
    "matmul",
    np.matmul,
    torch="matmul",
    shapes=SHAPES,
    dtypes=FLOATS,
    tolerance=Tolerance(
        bound=lambda eps, a, b: bound(eps, a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]).reshape(
            np.matmul(a, b).shape
        )
    ),
    second=True,
    errors=[
        (
            lambda d: vkml.matmul(vkml.zeros((2, 3), device=d), vkml.zeros((2, 3), device=d)),
            "ShapeError",
            r"matmul: expected inner sizes to agree, got \(2, 3\) and \(2, 3\)",
        ),
        (
            lambda d: vkml.matmul(vkml.zeros((), device=d), vkml.zeros((3,), device=d)),
            "ShapeError",
            r"matmul: expected rank >= 1, got \(\) and \(3,\)",
        ),
        (
            lambda d: vkml.matmul(vkml.zeros((2, 2, 3), device=d), vkml.zeros((3, 3, 2), device=d)),
            "ShapeError",
            r"matmul: expected batch axes that broadcast, got \(2, 2, 3\) and \(3, 3, 2\)",
        ),
        (
            lambda d: vkml.matmul(vkml.zeros((2, 3), device=d), vkml.zeros((3, 2), dtype="float16", device=d)),
            "DTypeError",
            "matmul: expected one dtype, got float32 and float16",
        ),
        (
            lambda d: vkml.matmul(
                vkml.zeros((2, 3), dtype="bool", device=d), vkml.zeros((3, 2), dtype="bool", device=d)
            ),
            "DTypeError",
            "matmul: expected a number type, got bool",
        ),
    ],
    bench=[
        *(bench((n, n), (n, n), flops=2.0 * n**3) for n in (256, 1024, 2048, 4096, 8192)),
        *(bench((n, n), (n, n), dtype="bfloat16", flops=2.0 * n**3) for n in (1024, 2048, 4096, 8192)),
        bench((4096, 4096), (4096, 4096), dtype="float16", flops=2.0 * 4096**3),
        *(bench((n, n), (n, 1)) for n in (4096, 16384)),
        bench((16384, 16384), (16384, 1), dtype="bfloat16"),
        bench((512, 65536), (65536, 512), flops=2.0 * 512 * 512 * 65536),
    ],
)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_pipelines(vulkan: str, pipeline: str, dtype: str, size: tuple[int, int, int]) -> None:
    m, k, n = size
    for flip_a in (False, True):
        for flip_b in (False, True):
            a, b = rounded(draw(2, m, k), dtype), rounded(draw(2, k, n, seed=1), dtype)
            x = tensor(a.swapaxes(1, 2), dtype, vulkan).transpose(1, 2) if flip_a else tensor(a, dtype, vulkan)
            y = tensor(b.swapaxes(1, 2), dtype, vulkan).transpose(1, 2) if flip_b else tensor(b, dtype, vulkan)
            assert_within(to_numpy(x @ y), a @ b, allowed(dtype, a, b), f"{pipeline} {size} {flip_a} {flip_b}")


@pytest.mark.parametrize("name", ["gemm_large", "gemm_medium", "gemm_small", "gemm_split_k_medium"])
@pytest.mark.parametrize("size", [(128, 16, 256), (130, 1040, 260), (67, 515, 131)], ids=str)
def test_large_tiles(vulkan: str, name: str, size: tuple[int, int, int]) -> None:
    """Edges, operands packed along either axis or copied first, sums longer than one chain, and a bias."""
    if FLOOR and name != "gemm_small":
        pytest.skip("this tile needs more shared memory than the floor of the limits")
    if name == "gemm_split_k_medium" and size[1] < 512:
        pytest.skip("one chain has no parts")
    m, k, n = size
    a, b = rounded(draw(m, k), "float32"), rounded(draw(k, n, seed=1), "float32")
    bias = rounded(draw(n, seed=2), "float32")
    _core._force_gemm(name)
    try:
        for flip_a in (False, True):
            for flip_b in (False, True):
                x = tensor(a.T, device=vulkan).transpose(0, 1) if flip_a else tensor(a, device=vulkan)
                y = tensor(b.T, device=vulkan).transpose(0, 1) if flip_b else tensor(b, device=vulkan)
                assert chosen(lambda x=x, y=y: x @ y) == name
                assert_within(to_numpy(x @ y), a @ b, allowed("float32", a, b), f"{flip_a} {flip_b}")
                got = vkml.linear(x, y.transpose(0, 1), tensor(bias, device=vulkan))
                assert_within(to_numpy(got), a @ b + bias, allowed("float32", a, b) + 2.0**-23 * np.abs(a @ b + bias))
                assert_same_bits(x @ y, x @ y, "second run")
    finally:
        _core._force_gemm("")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [(128, 32, 128), (130, 160, 200)], ids=str)
def test_cooperative_matrices(vulkan: str, dtype: str, size: tuple[int, int, int]) -> None:
    """On devices that list them; elsewhere the log must say that this is why the kernel did not run."""
    m, k, n = size
    a, b = rounded(draw(m, k), dtype), rounded(draw(k, n, seed=1), dtype)
    bias = rounded(draw(n, seed=2), dtype)
    vkml.record_decisions(4)
    try:
        _core._force_gemm("gemm_coopmat")
        for flip_b in (False, True):
            y = tensor(b.T, dtype, vulkan).transpose(0, 1) if flip_b else tensor(b, dtype, vulkan)
            x = tensor(a, dtype, vulkan)
            assert_within(to_numpy(x @ y), a @ b, allowed(dtype, a, b))
            got = vkml.linear(x, y.transpose(0, 1), tensor(bias, dtype, vulkan))
            own = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
            assert_within(to_numpy(got), a @ b + bias, allowed(dtype, a, b) + own * np.abs(a @ b + bias))
        entry = vkml.decisions()[-1]
    finally:
        vkml.stop_recording_decisions()
        _core._force_gemm("")
    listed = vkml.device_info(vulkan)["cooperative_matrices"] != "none"
    assert entry["chose"] == "gemm_coopmat" if listed else "lists no 16x16x16 cooperative" in entry["because"]


def test_large_tiles_in_a_batch(vulkan: str) -> None:
    a, b = rounded(draw(3, 70, 32), "float32"), rounded(draw(3, 32, 132, seed=1), "float32")
    _core._force_gemm("gemm_medium")
    try:
        got = tensor(a, device=vulkan) @ tensor(b, device=vulkan)
    finally:
        _core._force_gemm("")
    assert_within(to_numpy(got), a @ b, allowed("float32", a, b))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pipelines_read_any_strides(vulkan: str, pipeline: str, layout: str) -> None:
    x, a = laid_out(layout, draw(3, 20, 70), "float32", vulkan)
    y, b = laid_out(layout, draw(3, 70, 40, seed=1), "float32", vulkan)
    assert_within(to_numpy(x @ y), a @ b, allowed("float32", a, b))


def test_a_forced_pipeline_is_the_one_that_runs(vulkan: str, pipeline: str) -> None:
    if FLOOR and pipeline not in ("gemv", "gemv_columns", "gemm_naive"):
        pytest.skip("the pipeline needs more than the floor of the limits")
    x = tensor(draw(1 if pipeline == "gemv_columns" else 70, 300), "float32", vulkan)
    y = tensor(draw(300, 70), "float32", vulkan)
    assert chosen(lambda: x @ y) == pipeline


@pytest.mark.parametrize("k", [1, 31, 32, 33, 64, 95, 1000, 4100])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_exact_is_one_order_everywhere(vulkan: str, precision: None, dtype: str, k: int) -> None:
    vkml.set_float32_matmul_precision("exact")
    a, b = rounded(draw(2, 17, k), dtype), rounded(draw(k, 33, seed=2), dtype)
    on_cpu = tensor(a, dtype) @ tensor(b, dtype)
    if dtype == "float32":
        assert_within(to_numpy(on_cpu), a @ b, exact_bound(a, b))
    assert_same_bits(
        on_cpu, vkml.stack([tensor(m, dtype) @ tensor(b, dtype) for m in a]) if hasattr(vkml, "stack") else on_cpu
    )
    try:
        for name in PIPELINES:
            _core._force_gemm(name)
            got = tensor(a, dtype, vulkan) @ tensor(b, dtype, vulkan)
            assert_same_bits(got.to("cpu"), on_cpu, name)
    finally:
        _core._force_gemm("")


def reference_exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The order of `exact`, written out: f32 products and sums in blocks of 32, then adjacent pairs."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    sums = []
    for start in range(0, a.shape[1], 32):
        block = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for k in range(start, min(start + 32, a.shape[1])):
            block = block + a[:, k : k + 1] * b[k : k + 1]
        sums.append(block)
    while len(sums) > 1:
        paired = [sums[i] + sums[i + 1] for i in range(0, len(sums) - 1, 2)]
        sums = paired + ([sums[-1]] if len(sums) % 2 else [])
    return sums[0]


@pytest.mark.parametrize("k", [5, 64, 96, 161, 224, 1000])
def test_exact_order_written_out(device: str, precision: None, k: int) -> None:
    vkml.set_float32_matmul_precision("exact")
    a, b = rounded(draw(9, k), "float32"), rounded(draw(k, 70, seed=1), "float32")
    got = (tensor(a, device=device) @ tensor(b, device=device)).numpy()
    assert np.array_equal(got.view(np.uint32), reference_exact(a, b).view(np.uint32))


def test_exact_known_bits(device: str, precision: None) -> None:
    vkml.set_float32_matmul_precision("exact")
    got = vkml.rand((3, 1000), 7, 0, device=device) @ vkml.rand((1000, 2), 7, 1, device=device)
    assert [f"{v:08x}" for v in got.numpy().view(np.uint32).ravel()] == [
        "4368a842",
        "436cd0a2",
        "436d9a08",
        "43720489",
        "43756349",
        "4374d746",
    ]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", [(1, 1, 1), (5, 100, 7), (17, 33, 16)], ids=str)
def test_integers_wrap(device: str, dtype: str, size: tuple[int, int, int]) -> None:
    m, k, n = size
    info, rng = np.iinfo(NUMPY[dtype]), np.random.default_rng(3)
    a = rng.integers(info.min, info.max, (m, k), NUMPY[dtype])
    b = rng.integers(info.min, info.max, (k, n), NUMPY[dtype])
    with np.errstate(over="ignore"):
        expected = functools.reduce(np.add, (a[:, i : i + 1] * b[i : i + 1] for i in range(k)))
    got = vkml.tensor(a, device=device) @ vkml.tensor(b, device=device)
    assert np.array_equal(got.numpy(), expected)


def test_int8_example(device: str) -> None:
    a = vkml.tensor(np.full((1, 3), 100, np.int8), device=device)
    assert (a @ vkml.tensor(np.ones((3, 1), np.int8), device=device)).tolist() == [[44]]


def test_nan_reaches_only_what_uses_it(device: str) -> None:
    a, b = draw(40, 50), draw(50, 60, seed=1)
    a[7, 3], b[20, 33], a[11, 0] = np.nan, np.nan, np.inf
    got = to_numpy(tensor(a, device=device) @ tensor(b, device=device))
    bad = np.zeros((40, 60), bool)
    bad[7], bad[:, 33], bad[11] = True, True, True
    assert np.array_equal(~np.isfinite(got), bad)


@pytest.mark.large
@pytest.mark.parametrize("constant", [False, True])
def test_long_k(device: str, constant: bool) -> None:
    k = 2**20 + 1
    a = np.full((2, k), np.float32(0.1), np.float64) if constant else rounded(draw(2, k), "float32")
    b = np.full((k, 3), np.float32(0.3), np.float64) if constant else rounded(draw(k, 3, seed=1), "float32")
    got = tensor(a, device=device) @ tensor(b, device=device)
    assert_within(to_numpy(got), a @ b, bound(2.0**-23, a, b))
    got = tensor(a[0], device=device) @ tensor(b[:, 0].copy(), device=device)
    assert_within(to_numpy(got), a[0] @ b[:, 0], bound(2.0**-23, a[:1], b[:, :1])[0, 0])


@pytest.mark.parametrize("k", [250, 256, 257, 600, 1024, 1500, 2048, 3000, 4096, 8192, 20000])
def test_equal_terms_stay_inside_the_bound(device: str, k: int) -> None:
    """The worst case of a long chain: every addition of a binade rounds the same way."""
    # The worst of a few constants for one chain; where it would break the bound, the product must not be one.
    draws = 1 + np.random.default_rng(k).random(200).astype(np.float32)
    chain = np.add.accumulate(np.broadcast_to(draws, (k, 200)), dtype=np.float32)[-1].astype(np.float64)
    errors = np.abs(chain / (k * draws.astype(np.float64)) - 1)
    worst = draws[errors.argmax()]
    a, b = np.full((33, k), worst, np.float64), np.ones((k, 34))
    if k >= 1024:
        assert errors.max() > (k / 32 + math.log2(k) + 32) * 2.0**-23
    assert_within(to_numpy(tensor(a, device=device) @ tensor(b, device=device)), a @ b, bound(2.0**-23, a, b))
    a, b = np.full((33, k), np.float32(0.1), np.float64), np.full((k, 34), np.float32(0.3), np.float64)
    assert_within(to_numpy(tensor(a, device=device) @ tensor(b, device=device)), a @ b, bound(2.0**-23, a, b))


@pytest.mark.large
def test_more_columns_than_a_grid_axis_holds(device: str) -> None:
    a = vkml.ones((1, 2), device=device)
    got = a @ vkml.ones((2, 2703360), device=device)
    assert got.shape == (1, 2703360) and (got.numpy() == 2).all()


@pytest.mark.parametrize("mode", ["highest", "exact"])
@pytest.mark.parametrize("shape", [(37, 129, 100), (64, 10, 784), (40, 40, 2500)], ids=str)
def test_rows_do_not_depend_on_the_rows_around(precision: None, mode: str, shape: tuple[int, int, int]) -> None:
    vkml.set_float32_matmul_precision(mode)
    m, n, k = shape
    for dtype in FLOATS:
        x, w = tensor(draw(m, k), dtype), tensor(draw(k, n, seed=1), dtype)
        all_rows = x @ w
        for rows in (slice(0, 1), slice(3, 5), slice(m - 7, m)):
            assert_same_bits(vkml.contiguous(x[rows]) @ w, vkml.contiguous(all_rows[rows]), dtype)


@pytest.mark.parametrize("mode", ["highest", "exact"])
def test_a_batch_gives_the_bits_of_its_members(device: str, precision: None, mode: str) -> None:
    vkml.set_float32_matmul_precision(mode)
    for dtype in FLOATS:
        for m, k, n in [(5, 300, 7), (33, 4000, 20), (1, 200, 50)]:
            x, w = tensor(draw(6, m, k), dtype, device), tensor(draw(6, k, n, seed=1), dtype, device)
            both = x @ w
            for i in (0, 5):
                assert_same_bits(x[i] @ w[i], vkml.contiguous(both[i]), f"{dtype} {m} {k} {n}")
            assert_same_bits(x @ w, both, "second run")


def test_broadcast_operand_is_not_copied(device: str) -> None:
    a, b = tensor(draw(8, 64, 64), device=device), tensor(draw(64, 64), device=device)
    vkml.synchronize()
    before = vkml.memory_stats(device)
    vkml.reset_peak_memory(device)
    out = a @ b.expand(8, 64, 64)
    vkml.synchronize()
    after = vkml.memory_stats(device)
    assert after["peak_in_use_bytes"] - before["in_use_bytes"] <= 8 * 64 * 64 * 4 + 4096
    assert out.shape == (8, 64, 64)


def test_expanded_operand_and_its_gradient(device: str) -> None:
    leaf = vkml.ones((1, 4), device=device).requires_grad_()
    out = leaf.expand(3, 4) @ vkml.ones((4, 2), device=device)
    assert (out.numpy() == 4).all()
    out.backward(vkml.ones((3, 2), device=device))
    assert leaf.grad.tolist() == [[6, 6, 6, 6]]


def test_k_zero_has_zero_gradients(device: str) -> None:
    a, b = (vkml.zeros(s, device=device).requires_grad_() for s in ((3, 0), (0, 2)))
    out = a @ b
    assert out.tolist() == [[0, 0]] * 3
    out.backward(vkml.ones((3, 2), device=device))
    assert a.grad.shape == (3, 0) and b.grad.shape == (0, 2)


def test_decision_log_has_reasons(vulkan: str) -> None:
    cases = [((64, 64), (64, 64)), ((1, 256), (256, 1)), ((32, 8192), (8192, 32))]
    names = []
    for left, right in cases:
        x, y = tensor(draw(*left), device=vulkan), tensor(draw(*right), device=vulkan)
        vkml.record_decisions(4)
        _ = x @ y
        vkml.stop_recording_decisions()
        entry = [d for d in vkml.decisions() if d["site"] == "matmul.kernel"][-1]
        assert entry["op"] == "matmul" and entry["because"]
        names.append(entry["chose"])
    assert names == (["gemm_naive", "gemv", "gemm_naive"] if FLOOR else ["gemm_reg", "gemv", "gemm_split_k"])


def test_precision_words(precision: None) -> None:
    for word in ("exact", "highest", "high", "medium"):
        vkml.set_float32_matmul_precision(word)
        assert vkml.get_float32_matmul_precision() == word
    with pytest.raises(vkml.ShapeError, match="expected exact, highest, high or medium, got 'best'"):
        vkml.set_float32_matmul_precision("best")


def test_mixed_devices(vulkan: str) -> None:
    with pytest.raises(vkml.DeviceError, match="matmul"):
        vkml.matmul(vkml.zeros((2, 2), device="cpu"), vkml.zeros((2, 2), device=vulkan))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("rows", [9, 10, 11])
def test_a_batch_whose_stride_is_less_than_the_reach_of_its_rows(device: str, dtype: str, rows: int) -> None:
    """Every second of an odd number of rows: the last of a matrix is nearer the next matrix than a row is long."""
    x = tensor(np.arange(3 * rows * 11).reshape(3, rows, 11) % 7, dtype, device=device)
    w = tensor(np.arange(44).reshape(11, 4) % 5, dtype, device=device)
    for view in (x[:, ::2], x[:, :, ::2].transpose(1, 2)):
        other = w if view.shape[-1] == 11 else tensor(np.arange(rows * 3).reshape(rows, 3) % 5, dtype, device=device)
        assert_same_bits(view @ other, view.contiguous() @ other)
