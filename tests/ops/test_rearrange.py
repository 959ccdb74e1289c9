"""flip, roll, repeat, tile, repeat_interleave."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import tensor
from op_cases import ALL, EXACT, op_cases

import vkml

SHAPES = [(1,), (7,), (0, 3), (3, 4), (2, 3, 4), (4, 16), (2, 1, 3, 1, 2)]
COMMON = {"shapes": SHAPES, "dtypes": ALL, "tolerance": EXACT, "same_bits": True, "second": True}

TestFlip = op_cases(
    "flip", lambda x, dims: np.flip(x, dims), torch="flip", dims=[(0,), (-1,), (), (0, -1)][:3], **COMMON
)
TestRoll = op_cases(
    "roll", lambda x, shifts: np.roll(x, shifts), torch="roll", shifts=[1, -2, 5, 0], **COMMON,
)  # fmt: skip
TestTile = op_cases(
    "tile", lambda x, dims: np.tile(x, dims), torch="tile", dims=[(2,), (1, 2, 1), (3, 1), (0,), ()], **COMMON,
)  # fmt: skip
TestRepeatInterleave = op_cases(
    "repeat_interleave", lambda x, repeats, dim: np.repeat(x, repeats, dim), torch="repeat_interleave",
    repeats=[0, 1, 3], dim=[None, 0, -1], **COMMON,
)  # fmt: skip


def test_more_axes(device: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    t = tensor(x, device=device)
    np.testing.assert_array_equal(t.flip(0, 2).numpy(), np.flip(x, (0, 2)))
    np.testing.assert_array_equal(t.permute(2, 0, 1).flip((0, 1, 2)).numpy(), np.flip(x.transpose(2, 0, 1)))
    np.testing.assert_array_equal(t.roll((1, -2), (0, 2)).numpy(), np.roll(x, (1, -2), (0, 2)))
    np.testing.assert_array_equal(t.repeat(2, 1, 3).numpy(), np.tile(x, (2, 1, 3)))
    np.testing.assert_array_equal(t.repeat((2, 1, 3, 1)).numpy(), np.tile(x, (2, 1, 3, 1)))
    times = vkml.tensor([2, 0, 1], device=device)
    np.testing.assert_array_equal(vkml.repeat_interleave(t, times, 0).numpy(), np.repeat(x, [2, 0, 1], 0))
    scalar = tensor(2.0, device=device)
    assert scalar.flip(()).item() == 2 and vkml.tile(scalar, (2,)).tolist() == [2, 2]


def test_rank_eight(device: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 1, 2, 1, 2, 1, 2, 3)).astype(np.float32)
    t = tensor(x, device=device)
    np.testing.assert_array_equal(vkml.tile(t, (2, 1, 1, 1, 1, 1, 1, 2)).numpy(), np.tile(x, (2, 1, 1, 1, 1, 1, 1, 2)))
    for dim in (0, 3, 7):
        np.testing.assert_array_equal(vkml.repeat_interleave(t, 2, dim).numpy(), np.repeat(x, 2, dim))
    np.testing.assert_array_equal(vkml.flip(t, (0, 7)).numpy(), np.flip(x, (0, 7)))


def test_results_are_copies(device: str) -> None:
    x = vkml.zeros((3,), device=device)
    for y in (
        vkml.flip(x, ()),
        vkml.roll(x, 0),
        vkml.tile(x, (1,)),
        vkml.repeat(x, (1,)),
        vkml.repeat_interleave(x, 1),
    ):
        y[0] = 1.0
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda d: vkml.flip(vkml.zeros((3,), device=d), (1,)),
            "IndexError_",
            r"flip: expected dim in \[-1, 0\], got 1",
        ),
        (lambda d: vkml.flip(vkml.zeros((3,), device=d), (0, -1)), "ShapeError", "flip"),
        (
            lambda d: vkml.repeat(vkml.zeros((3, 2), device=d), (2,)),
            "ShapeError",
            "repeat: repeats: expected at least 2 numbers",
        ),
        (
            lambda d: vkml.repeat(vkml.zeros((3,), device=d), (-2,)),
            "ShapeError",
            "repeat: repeats: expected numbers >= 0",
        ),
        (
            lambda d: vkml.roll(vkml.zeros((3,), device=d), (1, 2)),
            "ShapeError",
            "roll: shifts: expected one number without dims",
        ),
        (
            lambda d: vkml.repeat_interleave(vkml.zeros((3,), device=d), -1),
            "ShapeError",
            "repeat_interleave: repeats: expected",
        ),
    ],
)
def test_errors(device: str, call: object, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        call(device)  # type: ignore[operator]
