"""copy: clone and contiguous of every layout and dtype, writing through strides, transfers between devices."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ALL, LAYOUTS, assert_same_bits, laid_out, tensor, to_numpy
from op_cases import EXACT, bench, bench_cases, op_cases

import vkml

TestClone = op_cases(
    "clone", lambda x: x.copy(), torch="clone", dtypes=ALL, tolerance=EXACT, second=True, same_bits=True
)
bench_cases(
    "transpose", lambda x: x.T.contiguous(), lambda x: x.T, lambda torch, x: x.T.contiguous(),
    bench=[bench((8192, 8192)), bench((8192, 8192), dtype="bfloat16")],
)  # fmt: skip
bench_cases(
    "permute", lambda x: x.permute(0, 2, 3, 1).contiguous(), lambda x: x.transpose(0, 2, 3, 1),
    lambda torch, x: x.permute(0, 2, 3, 1).contiguous(),
    bench=[bench((64, 64, 112, 112)), bench((64, 64, 112, 112), dtype="bfloat16")],
)  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("shape", [(5,), (3, 7), (2, 3, 129), (33, 65), (2, 1, 3, 2, 2, 1, 2, 2)], ids=str)
def test_contiguous(device: str, dtype: str, layout: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x, shown = laid_out(layout, np.trunc(rng.uniform(0, 9, shape)), dtype, device)
    y = x.contiguous()
    assert y.is_contiguous() and np.array_equal(to_numpy(y), shown)
    assert (y.data_ptr() == x.data_ptr()) == x.is_contiguous()
    z = x.clone()
    assert z.is_contiguous() and z.data_ptr() != x.data_ptr()
    assert_same_bits(y, z, layout)


PERMUTATIONS = [
    ((33, 65), (1, 0)),
    ((64, 128), (1, 0)),
    ((1, 9, 70), (2, 0, 1)),
    ((5, 31, 40), (0, 2, 1)),
    ((40, 5, 31), (2, 1, 0)),
    ((8, 2, 8, 3), (3, 2, 1, 0)),
    ((3, 16, 2, 24), (2, 3, 0, 1)),
    ((7, 100), (1, 0)),
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
@pytest.mark.parametrize(("shape", "order"), PERMUTATIONS, ids=str)
def test_transposing(device: str, dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Both ways: gathered from a permuted view, and written through one, with what lies around it untouched."""
    count = int(np.prod(shape))
    held = (np.arange(count) * 37 % 251).astype(dtype).reshape(shape)
    x = vkml.tensor(held, dtype=dtype, device=device)
    assert np.array_equal(x.permute(*order).contiguous().numpy(), held.transpose(order))
    wide = vkml.full((*shape[:-1], shape[-1] + 1), 5, dtype=dtype, device=device)
    view = wide[..., 1:].permute(*order)
    view.copy_(vkml.tensor(held.transpose(order).copy(), dtype=dtype, device=device))
    assert np.array_equal(wide[..., 1:].numpy(), held)
    assert (wide[..., 0].numpy() == 5).all()


@pytest.mark.parametrize("step", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_rows_of_any_alignment(device: str, dtype: str, step: int) -> None:
    """Rows that begin on multiples of `step` bytes are moved in pieces of at most that."""
    item = np.dtype(dtype).itemsize
    first = max(1, step // item)
    held = (np.arange(6 * 96) % 200).astype(dtype).reshape(6, 96)
    x = vkml.tensor(held, dtype=dtype, device=device)[:, first : first + 2 * first + 32]
    assert np.array_equal(x.contiguous().numpy(), held[:, first : first + 2 * first + 32])
    x.copy_(vkml.full(x.shape, 3, dtype=dtype, device=device))
    y = held.copy()
    y[:, first : first + 2 * first + 32] = 3
    assert np.array_equal(x.numpy(), y[:, first : first + 2 * first + 32])


def test_decision_names_the_path(vulkan: str) -> None:
    x = vkml.rand((64, 64), device=vulkan)
    vkml.record_decisions()
    try:
        for view in (x[:, 4:36], x.T, x[::2, ::2]):
            view.clone()
        chosen = [d["chose"] for d in vkml.decisions() if d["site"] == "copy.path"]
    finally:
        vkml.stop_recording_decisions()
    assert chosen[-3:] == ["wide", "transposed", "elements"]


def test_bits_survive(device: str) -> None:
    """-0, NaN payloads and subnormal numbers are copied, not computed."""
    held = np.array([0x80000000, 0x7FC12345, 0xFF812345, 0x00000001, 0x7F800000, 0x3F800000], np.uint32).view(
        np.float32
    )
    x = vkml.tensor(held, device=device)
    for y in (x.clone(), vkml.tensor(np.repeat(held, 2), device=device)[::2].contiguous(), x.to("cpu")):
        assert y.numpy().view(np.uint32).tolist() == held.view(np.uint32).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_writing_through_strides(device: str, dtype: str) -> None:
    held = np.zeros((4, 6))
    target = tensor(held, dtype, device)
    target[1:3, ::2] = tensor(np.ones((2, 3)), dtype, device)
    held[1:3, ::2] = 1
    assert np.array_equal(to_numpy(target), held.astype(bool) if dtype == "bool" else held)


def test_transfers(vulkan: str, rng: np.random.Generator) -> None:
    held = rng.normal(size=(3, 70, 5)).astype(np.float32)
    x = vkml.tensor(held, device="cpu", requires_grad=True)
    there = x.permute(2, 0, 1).to(vulkan)
    assert str(there.device) == vulkan and np.array_equal(there.detach().numpy(), held.transpose(2, 0, 1))
    there.backward(there.detach())
    assert str(x.grad.device) == "cpu" and np.array_equal(x.grad.numpy(), held)
