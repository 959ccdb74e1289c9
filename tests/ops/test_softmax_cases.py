"""softmax and log_softmax, declared once."""

from __future__ import annotations

import numpy as np
from op_cases import FLOATS, ROWS, Tolerance, bench, op_cases

import vkml


def np_softmax(x: np.ndarray, dim: int) -> np.ndarray:
    if x.ndim == 0:
        return np.ones(())
    e = np.exp(x - x.max(dim, keepdims=True, initial=-np.inf))
    return e / e.sum(dim, keepdims=True)


def np_log_softmax(x: np.ndarray, dim: int) -> np.ndarray:
    if x.ndim == 0:
        return np.zeros(())
    shifted = x - x.max(dim, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


ERRORS = [
    (lambda d: vkml.softmax(vkml.ones((2,), device=d), 1), "IndexError_", r"softmax: expected dim in \[-1, 0\], got 1"),
    (lambda d: vkml.log_softmax(vkml.ones((2, 2), device=d), -3), "IndexError_", r"log_softmax: expected dim in"),
    (lambda d: vkml.softmax(vkml.tensor([1], device=d)), "DTypeError", "expected a floating-point tensor, got int64"),
]
SHAPES = [(32768, 1024), (8192, 8192), (1024, 65536), (128, 262144)]

TestSoftmax = op_cases(
    "softmax", np_softmax, torch="softmax", shapes=ROWS, dim=[-1, 0], dtypes=FLOATS, tolerance=Tolerance(row=1e-5),
    second=True, batched=True, errors=ERRORS, bench=[bench(s, dim=-1) for s in SHAPES],
)  # fmt: skip
TestLogSoftmax = op_cases(
    "log_softmax", np_log_softmax, torch="log_softmax", shapes=ROWS, dim=[-1, 0], dtypes=FLOATS,
    tolerance=Tolerance(row=1e-5, abs=1e-6), second=True, batched=True, bench=[bench(s, dim=-1) for s in SHAPES],
)  # fmt: skip
