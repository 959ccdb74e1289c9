"""triu and tril."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import tensor, to_numpy
from op_cases import ALL, EXACT, bench, op_cases

import vkml

MATRICES = [(1, 1), (3, 5), (5, 3), (0, 4), (2, 0, 3), (2, 3, 4), (2, 1, 3, 4, 5), (130, 129)]
ERRORS = [(lambda d: vkml.triu(vkml.ones((3,), device=d)), "ShapeError", r"triu: expected rank >= 2, got \(3,\)")]

TestTriu = op_cases(
    "triu", lambda x, diagonal: np.triu(x, diagonal), torch="triu", shapes=MATRICES, dtypes=ALL, tolerance=EXACT,
    diagonal=[0, 1, -2, 200], same_bits=True, second=True, errors=ERRORS, bench=[bench((4096, 4096), diagonal=0)],
)  # fmt: skip
TestTril = op_cases(
    "tril", lambda x, diagonal: np.tril(x, diagonal), torch="tril", shapes=MATRICES, dtypes=ALL, tolerance=EXACT,
    diagonal=[0, 1, -2, -200], same_bits=True, second=True, bench=[bench((4096, 4096), diagonal=0)],
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_outside_is_zero_even_if_nan(device: str, dtype: str) -> None:
    x = tensor(np.full((3, 3), np.nan), dtype, device)
    got = to_numpy(vkml.triu(x, 1))
    assert np.isnan(got[np.triu_indices(3, 1)]).all() and (got[np.tril_indices(3, 0)] == 0).all()


def test_deep_irregular_batches(device: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 3, 2, 3, 4, 5))
    t = tensor(x, device=device).permute(3, 1, 0, 2, 5, 4)
    np.testing.assert_array_equal(to_numpy(t.tril()), np.tril(to_numpy(t)))
