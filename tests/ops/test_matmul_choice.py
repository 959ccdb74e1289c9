"""Which pipeline a product takes, on what grounds, and that the choice does not show in the bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits, assert_within, rounded, tensor, to_numpy
from test_matmul import FLOOR, allowed, bound, chosen, draw

import vkml
from vkml import _core

# They add in one order: in chains that K decides, one chain after another.
ONE_ORDER = ["gemm_naive", "gemm_tiled", "gemm_db", "gemm_reg", "gemm_small", "gemm_medium", "gemm_large",
             "gemm_split_k_small", "gemm_split_k_medium", "gemm_split_k_large"]  # fmt: skip
ON_THE_FLOOR = {"gemm_naive", "gemm_small", "gemm_split_k_small"}


@pytest.fixture
def force() -> Iterator[Callable[[str], None]]:
    yield _core._force_gemm
    _core._force_gemm("")


@pytest.fixture
def mode() -> Iterator[Callable[[str], None]]:
    before = vkml.get_float32_matmul_precision()
    yield vkml.set_float32_matmul_precision
    vkml.set_float32_matmul_precision(before)


def logged(call: Callable[[], Any], site: str) -> list[dict[str, Any]]:
    vkml.record_decisions(16)
    call()
    vkml.stop_recording_decisions()
    return [d for d in vkml.decisions() if d["site"] == site]


@pytest.mark.parametrize(
    "size", [(130, 600, 68), (65, 1030, 129), (33, 4096, 36), (5, 2100, 33), (70, 48, 66)], ids=str
)
def test_pipelines_give_one_answer(vulkan: str, force: Callable[[str], None], size: tuple[int, int, int]) -> None:
    m, k, n = size
    x, y = tensor(draw(m, k), device=vulkan), tensor(draw(k, n, seed=1), device=vulkan)
    force("gemm_naive")
    expected, ran = x @ y, []
    for name in ONE_ORDER:
        force(name)
        for other in (y, tensor(draw(k, n, seed=1).T, device=vulkan).transpose(0, 1)):
            assert_same_bits(x @ other, expected, name)
        ran += [name] if chosen(lambda: x @ y) == name else []
    assert set(ran) >= {n for n in ONE_ORDER if "split" not in n and (not FLOOR or n in ON_THE_FLOOR)}
    if k > 512:
        assert "gemm_split_k_small" in ran


@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("size", [(400, 700, 264), (300, 301, 1), (150, 90, 33)], ids=str)
def test_rows_do_not_depend_on_the_batch_around(vulkan: str, size: tuple[int, int, int], along: bool) -> None:
    """A few rows alone take another pipeline than many, and give the same bits."""
    m, k, n = size
    x, w = tensor(draw(m, k), device=vulkan), tensor(draw(k, n, seed=1), device=vulkan)
    if along:
        w = vkml.contiguous(w.transpose(0, 1)).transpose(0, 1)
    whole = x @ w
    names = {chosen(lambda: x @ w)}
    for rows in (slice(0, 1), slice(5, 6), slice(0, 2), slice(3, 40), slice(17, 150), slice(m - 7, m)):
        part = vkml.contiguous(x[rows])
        names.add(chosen(lambda part=part: part @ w))
        assert_same_bits(part @ w, vkml.contiguous(whole[rows]), str(rows))
    assert FLOOR or n == 1 or len(names) > 1, "the pipelines did not differ, so nothing was shown"
    batch = x.reshape(m // 10, 10, k)
    assert_same_bits(batch @ w, whole.reshape(m // 10, 10, n), "folded batch")
    assert_same_bits(vkml.contiguous((batch @ w)[3]), batch[3] @ w, "a member")


def test_one_row_gives_the_bits_of_any_pipeline(vulkan: str, force: Callable[[str], None]) -> None:
    """gemv_columns over parts of K, batches, both layouts, 16 bits and a bias."""
    for dtype in ("float32", "float16", "bfloat16"):
        x, w = tensor(draw(3, 1, 2100), dtype, vulkan), tensor(draw(3, 2100, 130, seed=1), dtype, vulkan)
        bias = tensor(draw(130), dtype, vulkan)
        for y in (w, vkml.contiguous(w.transpose(1, 2)).transpose(1, 2)):
            force("gemm_naive")
            expected, row = x @ y, vkml.linear(x[0], y[0].transpose(0, 1), bias, activation="relu")
            force("gemv_columns")
            assert chosen(lambda x=x, y=y: x @ y) == "gemv_columns"
            assert_same_bits(x @ y, expected, dtype)
            assert_same_bits(vkml.linear(x[0], y[0].transpose(0, 1), bias, activation="relu"), row, dtype)
            force("")


def test_a_column_of_a_transposed_matrix_is_read_in_order(vulkan: str) -> None:
    a, b = rounded(draw(300, 90), "float32"), rounded(draw(300, 1, seed=1), "float32")
    x, y = tensor(a, device=vulkan).transpose(0, 1), tensor(b, device=vulkan)
    assert chosen(lambda: x @ y) == "gemv_columns"
    assert_within(to_numpy(x @ y), a.T @ b, bound(2.0**-23, a.T, b))


@pytest.mark.parametrize("name", [*ONE_ORDER, "gemv", "gemm_split_k"])
@pytest.mark.parametrize("k", [256, 1024, 2048, 4096])
def test_equal_terms_stay_inside_the_bound(vulkan: str, force: Callable[[str], None], name: str, k: int) -> None:
    """The worst of ordinary data: every addition of a binade rounds the same way."""
    for x in (0.1, 0.7, 1 / 3):
        a, b = np.full((3, k), np.float32(x), np.float64), np.full((k, 4), np.float32(0.3), np.float64)
        force(name)
        got = tensor(a, device=vulkan) @ tensor(b, device=vulkan)
        assert_within(to_numpy(got), a @ b, bound(2.0**-23, a, b), f"{name} {k} {x}")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", [*ONE_ORDER, "gemv", "gemm_split_k"])
def test_second_runs_give_the_same_bits(vulkan: str, force: Callable[[str], None], name: str, dtype: str) -> None:
    x, y = tensor(draw(67, 300), dtype, vulkan), tensor(draw(300, 65, seed=1), dtype, vulkan)
    force(name)
    assert_same_bits(x @ y, x @ y, name)


def test_shapes_choose(vulkan: str) -> None:
    """What the table does for a device with lavapipe's limits; it must not name its vendor or its size."""
    if FLOOR:
        pytest.skip("the floor of the limits leaves other pipelines")
    cases = {
        (1, 256, 1): "gemv",
        (1, 300, 700): "gemv_columns",
        (300, 300, 1): "gemv",
        (64, 64, 64): "gemm_reg",
        (2000, 64, 64): "gemm_small",
        (20, 64, 20): "gemm_reg",
        (32, 8192, 32): "gemm_split_k",
        (128, 4096, 256): "gemm_split_k_medium",
        (256, 64, 512): "gemm_medium",
        (512, 64, 1024): "gemm_medium",
        (512, 2048, 1024): "gemm_large",
        (9, 7, 9): "gemm_reg",
    }
    for (m, k, n), name in cases.items():
        x, y = tensor(draw(m, k), device=vulkan), tensor(draw(n, k, seed=1), device=vulkan).transpose(0, 1)
        entry = logged(lambda x=x, y=y: x @ y, "matmul.kernel")[-1]
        units = int(vkml.device_info(vulkan).get("compute_units", 0) or 0)
        if units not in (0, 16):
            pytest.skip("the cases are for a device of 16 units")
        assert entry["chose"] == name, (m, k, n, entry)


def test_every_refusal_is_in_the_log(vulkan: str) -> None:
    x = tensor(draw(20, 64), device=vulkan)
    entry = logged(lambda: x @ x.T, "matmul.kernel")[-1]
    refused = [reason.split(":")[0] for reason in entry["because"].split("; ")]
    order = [
        "gemv",
        "gemv_columns",
        "gemm_naive",
        "gemm_high",
        "gemm_coopmat_wide",
        "gemm_coopmat_large",
        "gemm_coopmat",
        "gemm_large",
        "gemm_medium",
        "gemm_split_k_large",
        "gemm_small",
        "gemm_split_k",
    ]
    assert [name for name in dict.fromkeys(refused) if name in order] == order
    assert entry["instead_of"] == "gemv"


@pytest.mark.parametrize("name", ["gemm_coopmat", "gemm_high", "gemm_split_k_large"])
def test_a_name_that_cannot_be_served_is_refused_in_the_log(vulkan: str, force: Any, name: str) -> None:
    force(name)
    x = tensor(draw(40, 64), device=vulkan)
    entry = logged(lambda: x @ x.T, "matmul.kernel")[-1]
    assert entry["instead_of"] == name and name in entry["because"]
    assert entry["chose"] == ("gemm_naive" if FLOOR else "gemm_reg")


PROBE = """
import json, sys
import numpy as np
import vkml
names = []
for m, k, n in json.loads(sys.argv[1]):
    x = vkml.tensor(np.random.default_rng(0).standard_normal((m, k)).astype(np.float32), device="vulkan:0")
    y = vkml.tensor(np.random.default_rng(1).standard_normal((k, n)).astype(np.float32), device="vulkan:0")
    vkml.record_decisions(4)
    got = (x @ y).numpy()
    vkml.stop_recording_decisions()
    assert np.allclose(got, x.numpy() @ y.numpy(), rtol=1e-4, atol=1e-3)
    names.append([vkml.decisions()[-1]["chose"], vkml.decisions()[-1]["because"]])
print(json.dumps(names))
"""


def probe(shapes: list[tuple[int, int, int]], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(shapes)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"VKML_GEMM_KERNEL": "naive"}, "gemm_naive"),
        ({"VKML_GEMM_KERNEL": "tiled"}, "gemm_tiled"),
        ({"VKML_GEMM_KERNEL": "reg"}, "gemm_reg"),
        ({"VKML_GEMM_KERNEL": "medium"}, "gemm_medium"),
        ({"VKML_GEMM_DB": "1"}, "gemm_db"),
        ({"VKML_GEMV": "FORCED"}, "gemv"),
        ({"VKML_GEMM_SPLITK": "FORCED"}, "gemm_split_k"),
        ({"VKML_GEMM_SPLITK": "FORCED", "VKML_GEMM_SPLITK_SPLITS": "3"}, "gemm_split_k"),
    ],
    ids=str,
)
def test_the_environment_forces_a_pipeline(vulkan: str, environment: dict[str, str], expected: str) -> None:
    if FLOOR and expected not in ("gemv", *ON_THE_FLOOR):
        pytest.skip("the pipeline needs more than the floor of the limits")
    done = probe([(70, 200, 66)], **environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0][0] == expected


def test_the_environment_turns_pipelines_off(vulkan: str) -> None:
    if FLOOR:
        pytest.skip("the floor of the limits leaves other pipelines")
    done = probe([(300, 300, 1), (32, 8192, 32)], VKML_GEMV="OFF", VKML_GEMM_SPLITK="OFF")
    assert done.returncode == 0, done.stderr
    (first, why), (second, why_split) = json.loads(done.stdout)
    assert first != "gemv" and "VKML_GEMV is OFF" in why
    assert "split" not in second and "VKML_GEMM_SPLITK is OFF" in why_split
    # The environment's reg may still split K.
    assert json.loads(probe([(32, 8192, 32)], VKML_GEMM_KERNEL="reg").stdout)[0][0] == "gemm_split_k"


@pytest.mark.parametrize(
    ("name", "value"),
    [("VKML_GEMM_KERNEL", "best"), ("VKML_GEMV", "yes"), ("VKML_GEMM_SPLITK", "4"), ("VKML_GEMM_SPLITK_SPLITS", "0")],
)
def test_the_environment_is_checked(vulkan: str, name: str, value: str) -> None:
    done = probe([(4, 4, 4)], **{name: value})
    assert done.returncode != 0 and f"{name}: expected" in done.stderr and value in done.stderr


# Precision -----------------------------------------------------------------------------------------------------------


def bf16(x: np.ndarray) -> np.ndarray:
    return rounded(rounded(x, "float32"), "bfloat16")


@pytest.mark.parametrize("size", [(1, 70, 33), (5, 40, 1), (33, 300, 65), (130, 520, 136)], ids=str)
def test_medium_multiplies_bf16_operands(device: str, mode: Callable[[str], None], size: tuple[int, int, int]) -> None:
    mode("medium")
    m, k, n = size
    a, b = rounded(draw(m, k), "float32"), rounded(draw(k, n, seed=1), "float32")
    got = to_numpy(tensor(a, device=device) @ tensor(b, device=device))
    assert_within(got, bf16(a) @ bf16(b), allowed("float32", bf16(a), bf16(b)))
    assert np.abs(got - a @ b).max() > np.abs(got - bf16(a) @ bf16(b)).max(), "the operands were not rounded"


def test_medium_keeps_layouts_and_gradients(device: str, mode: Callable[[str], None]) -> None:
    mode("medium")
    a, b = rounded(draw(3, 1, 20, 33), "float32"), rounded(draw(4, 33, 17, seed=1), "float32")
    x = tensor(a.swapaxes(2, 3), device=device).transpose(2, 3).requires_grad_()
    y = tensor(b, device=device).requires_grad_()
    out = x @ y
    assert out.shape == (3, 4, 20, 17)
    assert_within(to_numpy(out), bf16(a) @ bf16(b), allowed("float32", bf16(a), bf16(b)))
    shared = tensor(b[0], device=device).expand(4, 33, 17)
    assert_same_bits(x @ shared, x @ vkml.contiguous(shared))
    g = rounded(draw(3, 4, 20, 17, seed=2), "float32")
    out.backward(tensor(g, device=device))
    whole = bf16(g) @ bf16(b).swapaxes(1, 2)
    assert_within(
        to_numpy(x.grad),
        whole.sum(1, keepdims=True),
        1e-5 * (np.abs(g) @ np.abs(b).swapaxes(1, 2)).sum(1, keepdims=True),
    )


def test_sixteen_bit_products_know_no_medium(device: str, mode: Callable[[str], None]) -> None:
    x = tensor(draw(33, 65), "float16", device)
    before = x @ x.T
    for word in ("medium", "high"):
        mode(word)
        assert_same_bits(x @ x.T, before, word)
        assert not logged(lambda: x @ x.T, "matmul.precision")


@pytest.mark.parametrize("word", ["exact", "highest", "high", "medium"])
def test_the_log_says_what_a_lower_precision_became(device: str, mode: Callable[[str], None], word: str) -> None:
    x, y = tensor(draw(64, 64), device=device), tensor(draw(64, 64), device=device)
    highest = x @ y
    mode(word)
    noted = [(d["chose"], d["instead_of"]) for d in logged(lambda: x @ y, "matmul.precision")]
    if word in ("exact", "highest"):
        assert not noted
    elif device != "cpu" and vkml.device_info(device)["cooperative_matrices"] != "none":
        assert noted == [(word, "")]
    elif word == "high":
        assert noted == [("highest", "high")]
        assert_same_bits(x @ y, highest)
    else:
        assert noted == [("medium, operands rounded beforehand", "medium")]


@pytest.mark.parametrize("word", ["high", "medium"])
@pytest.mark.parametrize("size", [(1024, 1024, 1024), (257, 1000, 131), (2100, 520, 2049)], ids=str)
def test_lower_precisions_on_cooperative_matrices(
    vulkan: str, mode: Callable[[str], None], force: Callable[[str], None], word: str, size: tuple[int, int, int]
) -> None:
    """Real devices only: high within the bound of f32, rows of every size; medium within that of rounded operands."""
    if vkml.device_info(vulkan)["cooperative_matrices"] == "none":
        pytest.skip("the device has no cooperative matrices; tests/cpp/cooperative_test.cpp emulates them")
    mode(word)
    m, k, n = size
    a, b = draw(m, k), draw(k, n, seed=1)
    if word == "high":
        a *= 2.0 ** (np.arange(m) % 7 * 20 - 60.0)[:, None]
    a, b = rounded(a, "float32"), rounded(b, "float32")
    x, y = tensor(a, device=vulkan), tensor(b, device=vulkan)
    if m < 1000:  # 15 tiles: a large device computes in highest what fills so little of it
        force("gemm_high_small" if word == "high" else "gemm_coopmat_small")
    assert chosen(lambda: x @ y).startswith("gemm_high" if word == "high" else "gemm_coopmat")
    if word == "medium":
        a, b = bf16(a), bf16(b)
    assert_within(to_numpy(x @ y), a @ b, bound(2.0**-23, a, b) * (1 if word == "high" else 4))


# Against torch -------------------------------------------------------------------------------------------------------

ODD = (1, 2, 31, 33, 63, 65, 127, 1025)
MANY = [(ODD[i % 8], ODD[(i * 3 + 1) % 8], ODD[(i * 5 + 2) % 8]) for i in range(24)]
MANY += [(m, k, n) for m in (2, 33, 129) for k in (1, 31, 257) for n in (3, 64)] + [
    (4099, 3, 2),
    (2, 4099, 3),
    (3, 2, 4099),
]


@pytest.mark.parametrize("size", sorted(set(MANY)), ids=str)
def test_shapes_against_torch(device: str, size: tuple[int, int, int]) -> None:
    torch = pytest.importorskip("torch")
    m, k, n = size
    a, b = rounded(draw(m, k), "float32"), rounded(draw(n, k, seed=1), "float32")
    x, y = tensor(a, device=device).requires_grad_(), tensor(b, device=device).requires_grad_()
    p, q = (torch.tensor(v, dtype=torch.float32, requires_grad=True) for v in (a, b))
    got, expected = x @ y.transpose(0, 1), p @ q.T
    assert_within(to_numpy(got), expected.detach().double().numpy(), 2 * bound(2.0**-23, a, b.T))
    g = rounded(draw(m, n, seed=2), "float32")
    got.backward(tensor(g, device=device))
    expected.backward(torch.tensor(g, dtype=torch.float32))
    for mine, theirs, left, right in ((x.grad, p.grad, g, b), (y.grad, q.grad, g.T, a)):
        assert_within(to_numpy(mine), theirs.double().numpy(), 2 * bound(2.0**-23, left, right))


# The tuner -----------------------------------------------------------------------------------------------------------


def tuned(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "VKML_PIPELINE_CACHE": str(folder)},
        capture_output=True,
        text=True,
        timeout=580,
    )


SAVE = (
    "import vkml; print(vkml._core._save_gemm_tuning('vulkan:0', [('float32', 'highest', 60, 70, 66, 'gemm_naive')]))"
)


def test_a_tuning_file_decides(vulkan: str, tmp_path: Path) -> None:
    saved = tuned(tmp_path, "-c", SAVE)
    assert saved.returncode == 0, saved.stderr
    file = Path(saved.stdout.strip())
    assert file.parent == tmp_path and file.suffix == ".tune"
    shapes = json.dumps([(66, 64, 64), (66, 300, 64)])
    first, second = json.loads(tuned(tmp_path, "-c", PROBE, shapes).stdout)
    assert first[0] == "gemm_naive" and first[1].startswith("measured best by python -m vkml tune")
    assert "measured best" not in second[1]
    good = file.read_text()
    damages = [("vkml-tune-1", "vkml-tune-0"), ("device ", "device 00"), ("gemm_naive", "gemm_best"), ("end\n", ""),
               ("float32", "float3")]  # fmt: skip
    for damaged in ["", "nonsense\n", *(good.replace(*change) for change in damages)]:
        file.write_text(damaged)
        done = tuned(tmp_path, "-c", PROBE, shapes)
        assert done.returncode == 0, done.stderr
        assert "measured best" not in json.loads(done.stdout)[0][1]
        assert "tuning file" in done.stderr and "ignored" in done.stderr, damaged


def test_tune_measures_and_stores(vulkan: str, tmp_path: Path) -> None:
    only = ["--shape", "60x64x64", "--shape", "33x300x9", "--pipeline", "gemm_naive", "--pipeline", "gemm_small"]
    done = tuned(tmp_path, "-m", "vkml", "tune", "--quick", "--device", "vulkan:0", "--dtype", "float32", *only)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.tune")
    lines = file.read_text().splitlines()
    assert lines[0] == "vkml-tune-1" and lines[-1] == "end"
    highest = [line.split() for line in lines[2:-1] if line.split()[1] == "highest"]
    assert [line[:5] for line in highest] == [["float32", "highest", *c] for c in (("6", "6", "6"), ("5", "3", "8"))]
    assert {line[5] for line in highest} <= {"gemm_naive", "gemm_small"}
    assert str(file) in done.stdout and "TFLOP/s" in done.stdout
