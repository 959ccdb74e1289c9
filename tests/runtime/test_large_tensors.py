"""Tensors beyond 4 GiB: every element is where its 64-bit offset says. Needs a device with 24 GiB to spare."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import vkml

ROWS, COLUMNS = 4100, 1 << 18  # 1.07e9 elements: 4.3 GB of f32, so that the last rows lie beyond 2^32 bytes
FAR = ROWS - 3
NEEDED = 24 << 30


@pytest.fixture(scope="module")
def large(request: pytest.FixtureRequest) -> Iterator[vkml.Tensor]:
    """Rows of 1, but for row 0 (2) and row FAR (3), on the first Vulkan device."""
    device = "vulkan:0"
    if not any(str(d.device) == device and d.usable for d in vkml.devices()):
        pytest.skip("no Vulkan device")
    if vkml.device_info(device)["total_memory"] < NEEDED:
        pytest.skip("needs a device of 24 GiB")
    x = vkml.ones((ROWS, COLUMNS), device=device)
    x[0].fill_(2.0)
    x[FAR].fill_(3.0)
    yield x
    del x
    vkml.empty_cache(device)


def ends(t: vkml.Tensor) -> list[float]:
    """First and last element of rows 0, 1 and FAR, read through views, whose addresses the host computes."""
    return [float(t[row, column].item()) for row in (0, 1, FAR) for column in (0, COLUMNS - 1)]


@pytest.mark.parametrize(
    "name", ["add", "mul by a row", "exp", "where", "clone", "to bf16 and back", "rand", "softmax", "layer_norm"]
)
def test_elementwise_and_rows(large: vkml.Tensor, name: str) -> None:
    row = vkml.ones((COLUMNS,), device=str(large.device))
    functions = {
        "add": (lambda x: x + 1.0, [3, 3, 2, 2, 4, 4]),
        "mul by a row": (lambda x: x * row, [2, 2, 1, 1, 3, 3]),
        "exp": (lambda x: vkml.exp(x * 0.0 + x), list(np.exp([2, 2, 1, 1, 3, 3]))),
        "where": (lambda x: vkml.where(x > 2.5, x * 2.0, x), [2, 2, 1, 1, 6, 6]),
        "clone": (lambda x: x.clone(), [2, 2, 1, 1, 3, 3]),
        "to bf16 and back": (lambda x: x.to(vkml.bfloat16).to(vkml.float32), [2, 2, 1, 1, 3, 3]),
        "rand": (lambda x: x + vkml.rand(ROWS, COLUMNS, device=str(x.device)) * 0.0, [2, 2, 1, 1, 3, 3]),
        "softmax": (lambda x: vkml.softmax(x, -1) * COLUMNS, [1] * 6),
        "layer_norm": (lambda x: vkml.layer_norm(x, (COLUMNS,)) + x, [2, 2, 1, 1, 3, 3]),
    }
    function, expected = functions[name]
    np.testing.assert_allclose(ends(function(large)), expected, rtol=1e-5)


def test_transposed_copy(large: vkml.Tensor) -> None:
    turned = large.transpose(0, 1).contiguous()  # (COLUMNS, ROWS)
    got = [float(turned[c, r].item()) for r in (0, 1, FAR) for c in (0, COLUMNS - 1)]
    assert got == [2, 2, 1, 1, 3, 3]


def test_reductions(large: vkml.Tensor) -> None:
    sums = vkml.sum(large, 1).numpy()
    assert sums[[0, 1, FAR]].tolist() == [2 * COLUMNS, COLUMNS, 3 * COLUMNS]
    assert float(vkml.sum(large).item()) == pytest.approx((ROWS + 3) * COLUMNS)
    assert vkml.sum(large, 0).numpy()[[0, -1]].tolist() == [ROWS + 3, ROWS + 3]
    assert vkml.argmax(large, 0).numpy()[[0, -1]].tolist() == [FAR, FAR]


def test_gather_and_write(large: vkml.Tensor) -> None:
    index = vkml.tensor(np.array([FAR, 0, 1]), device=str(large.device))
    picked = vkml.index_select(large, 0, index).numpy()
    assert picked[:, [0, -1]].tolist() == [[3, 3], [2, 2], [1, 1]]
    y = large.clone()
    y[index] = vkml.full((3, COLUMNS), 7.0, device=str(large.device))
    assert ends(y) == [7] * 6


def test_matmul(large: vkml.Tensor) -> None:
    w = vkml.ones((COLUMNS, 2), device=str(large.device))
    got = vkml.matmul(large, w).numpy()
    assert got[[0, 1, FAR]].tolist() == [[2 * COLUMNS] * 2, [COLUMNS] * 2, [3 * COLUMNS] * 2]
