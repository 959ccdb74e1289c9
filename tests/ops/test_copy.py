"""copy: clone and contiguous of every layout and dtype, writing through strides, transfers between devices."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ALL, LAYOUTS, assert_same_bits, laid_out, tensor, to_numpy
from op_cases import EXACT, op_cases

import vkml

TestClone = op_cases(
    "clone", lambda x: x.copy(), torch="clone", dtypes=ALL, tolerance=EXACT, second=True, same_bits=True
)


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
