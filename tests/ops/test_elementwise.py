"""Elementwise operators: every line of the tables, and comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import ALL, FLOATS, INTEGERS, dtype_name, tensor, to_numpy
from op_cases import BROADCAST, Tolerance, bench, op_cases

import vkml

NAN, INF = math.nan, math.inf
NUMBERS = (*FLOATS, *INTEGERS)
BUILT = Tolerance(ulp=8.0)  # exp, log and what is built on them
DIVIDED = Tolerance(ulp=3.0)

erf = np.vectorize(math.erf, otypes=[float])
erfc = np.vectorize(math.erfc, otypes=[float])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(-np.abs(x)), 1.0) / (1 + np.exp(-np.abs(x)))


def normal_cdf(x: np.ndarray) -> np.ndarray:
    """Phi(x) without the cancellation that 1 + erf would have in the tail."""
    hi, lo = 0.7071067811865476, -4.833646656726457e-17
    return 0.5 * (erfc(-x * hi) + 2 / math.sqrt(math.pi) * np.exp(-((x * hi) ** 2)) * (x * lo))


def gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "none":
        return x * normal_cdf(x)
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def wraps(f: Callable[..., Any]) -> Callable[..., Any]:
    """Integers computed in int64 and brought back to the type of the inputs."""

    def reference(*arrays: np.ndarray, **kwargs: Any) -> np.ndarray:
        kind = arrays[0].dtype
        if kind.kind not in "iu":
            return f(*arrays, **kwargs)
        return f(*(a.astype(np.int64) for a in arrays), **kwargs).astype(kind)

    return reference


# Unary ---------------------------------------------------------------------------------------------------------------

TestNeg = op_cases("neg", wraps(np.negative), torch="neg", dtypes=NUMBERS, second=False, same_bits=True)
TestAbs = op_cases("abs", wraps(np.abs), torch="abs", dtypes=NUMBERS, same_bits=True)
TestSign = op_cases("sign", wraps(np.sign), torch="sign", dtypes=NUMBERS, same_bits=True)
TestSquare = op_cases("square", wraps(np.square), torch="square", dtypes=NUMBERS, second=True, domain=(-9, 9))
TestReciprocal = op_cases(
    "reciprocal", np.reciprocal, torch="reciprocal", tolerance=DIVIDED, domain=(0.3, 3), second=True
)
TestSqrt = op_cases("sqrt", np.sqrt, torch="sqrt", tolerance=DIVIDED, domain=(0.1, 9), second=True)
TestRsqrt = op_cases("rsqrt", lambda x: 1 / np.sqrt(x), torch="rsqrt", tolerance=DIVIDED, domain=(0.1, 9), second=True)
TestExp = op_cases(
    "exp",
    np.exp,
    torch="exp",
    tolerance=BUILT,
    second=True,
    bench=[bench((4096, 4096)), bench((4096, 4096), dtype="bfloat16")],
)
TestExp2 = op_cases("exp2", np.exp2, torch="exp2", tolerance=BUILT, second=True)
TestExpm1 = op_cases("expm1", np.expm1, torch="expm1", tolerance=BUILT, second=True)
TestLog = op_cases("log", np.log, torch="log", tolerance=BUILT, domain=(0.05, 9), second=True)
TestLog2 = op_cases("log2", np.log2, torch="log2", tolerance=BUILT, domain=(0.05, 9), second=True)
TestLog1p = op_cases("log1p", np.log1p, torch="log1p", tolerance=BUILT, domain=(-0.9, 9), second=True)
TestErf = op_cases("erf", erf, torch="erf", tolerance=BUILT, second=True)
TestErfc = op_cases("erfc", erfc, torch="erfc", tolerance=BUILT, second=True)
TestSin = op_cases("sin", np.sin, torch="sin", tolerance=BUILT, second=True)
TestCos = op_cases("cos", np.cos, torch="cos", tolerance=BUILT, second=True)
TestTan = op_cases("tan", np.tan, torch="tan", tolerance=BUILT, domain=(-1.2, 1.2), second=True)
TestTanh = op_cases("tanh", np.tanh, torch="tanh", tolerance=BUILT, second=True)
TestSigmoid = op_cases("sigmoid", sigmoid, torch="sigmoid", tolerance=BUILT, second=True)
TestRelu = op_cases(
    "relu",
    lambda x: np.maximum(x, 0),
    torch="relu",
    dtypes=NUMBERS,
    same_bits=True,
    second=True,
    bench=[bench((8192, 8192)), bench((8192, 8192), dtype="bfloat16"), bench((8192, 8192), backward=True)],
)


def torch_gelu(torch, x, approximate="none"):
    """In float64 by erfc and sigmoid: torch's own 1 + erf and 1 + tanh cancel in the tail."""
    if x.dtype != torch.float64:
        return torch.nn.functional.gelu(x, approximate=approximate)
    if approximate == "tanh":
        return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * x * torch.special.erfc(-x * 0.5**0.5)


TestGelu = op_cases(
    "gelu",
    gelu,
    torch=torch_gelu,
    tolerance=BUILT,
    second=True,
    approximate=["none", "tanh"],
    bench=[
        bench((4096, 4096), approximate="none"),
        bench((8192, 8192), dtype="bfloat16", approximate="none"),
        bench((8192, 8192), approximate="none", backward=True),
    ],
)
TestSilu = op_cases("silu", lambda x: x * sigmoid(x), torch="silu", tolerance=BUILT, second=True)
TestSoftplus = op_cases("softplus", lambda x: np.logaddexp(0, x), torch="softplus", tolerance=BUILT, second=True)
TestLogsigmoid = op_cases(
    "logsigmoid", lambda x: -np.logaddexp(0, -x), torch="logsigmoid", tolerance=BUILT, second=True
)
TestMish = op_cases("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), torch="mish", tolerance=BUILT, second=True)
TestLeakyRelu = op_cases(
    "leaky_relu",
    lambda x, negative_slope: np.where(x > 0, x, x * np.float32(negative_slope)),
    torch="leaky_relu",
    tolerance=Tolerance(ulp=1.0),
    negative_slope=[0.25, 0.01],
    second=True,
    dtypes=("float32", "float16", "bfloat16"),
)
TestElu = op_cases(
    "elu",
    lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)),
    torch="elu",
    tolerance=BUILT,
    alpha=[1.0, 0.5],
    second=True,
)
TestHardtanh = op_cases(
    "hardtanh", lambda x, min_val, max_val: np.clip(x, min_val, max_val), torch="hardtanh", min_val=-1.5, max_val=0.5
)
TestRound = op_cases("round", wraps(np.round), torch="round", dtypes=NUMBERS, gradients=False, same_bits=True)
TestFloor = op_cases("floor", wraps(np.floor), torch="floor", dtypes=NUMBERS, gradients=False, same_bits=True)
TestCeil = op_cases("ceil", wraps(np.ceil), torch="ceil", dtypes=NUMBERS, gradients=False, same_bits=True)
TestTrunc = op_cases("trunc", wraps(np.trunc), torch="trunc", dtypes=NUMBERS, gradients=False, same_bits=True)
TestBitwiseNot = op_cases("bitwise_not", np.invert, torch="bitwise_not", dtypes=(*INTEGERS, "bool"), same_bits=True)

# Binary --------------------------------------------------------------------------------------------------------------

TestAdd = op_cases(
    "add",
    wraps(np.add),
    torch="add",
    dtypes=ALL,
    shapes=BROADCAST,
    same_bits=True,
    second=True,
    bench=[
        bench((4096, 4096), (4096, 4096)),
        bench((4096, 4096), (4096,)),
        bench((4096, 4096), (4096, 4096), dtype="bfloat16"),
    ],
)
TestSub = op_cases(
    "sub", wraps(np.subtract), torch="sub", dtypes=NUMBERS, shapes=BROADCAST, same_bits=True, second=True
)
TestMul = op_cases("mul", wraps(np.multiply), torch="mul", dtypes=ALL, shapes=BROADCAST, same_bits=True, second=True)
TestDiv = op_cases(
    "div", np.divide, torch="div", shapes=BROADCAST, tolerance=DIVIDED, domain=[(-3, 3), (0.4, 3)], second=True
)
TestPow = op_cases(
    "pow", np.power, torch="pow", shapes=BROADCAST, tolerance=BUILT, domain=[(0.2, 3), (-3, 3)], second=True
)
TestMaximum = op_cases("maximum", np.maximum, torch="maximum", dtypes=ALL, shapes=BROADCAST, same_bits=True)
TestMinimum = op_cases("minimum", np.minimum, torch="minimum", dtypes=ALL, shapes=BROADCAST, same_bits=True)
TestRemainder = op_cases(
    "remainder",
    np.mod,
    torch="remainder",
    shapes=BROADCAST,
    domain=[(-9, 9), (0.4, 3)],
    tolerance=Tolerance(ulp=1.0),
    gradients=False,
)
TestFloorDivide = op_cases(
    "floor_divide", np.floor_divide, torch="floor_divide", shapes=BROADCAST, domain=[(-9, 9), (0.4, 3)], gradients=False
)
TestBitwiseAnd = op_cases(
    "bitwise_and", np.bitwise_and, torch="bitwise_and", dtypes=(*INTEGERS, "bool"), shapes=BROADCAST
)
TestBitwiseOr = op_cases("bitwise_or", np.bitwise_or, torch="bitwise_or", dtypes=(*INTEGERS, "bool"), shapes=BROADCAST)
TestBitwiseXor = op_cases(
    "bitwise_xor", np.bitwise_xor, torch="bitwise_xor", dtypes=(*INTEGERS, "bool"), shapes=BROADCAST
)


TestScaledAdd = op_cases(
    "scaled_add",
    lambda a, b, alpha, beta: a * alpha + b * beta,
    dtypes=FLOATS,
    shapes=BROADCAST,
    alpha=[0.25, -2.0],
    beta=1.5,
    tolerance=Tolerance(bound=lambda eps, a, b, alpha, beta: eps * (np.abs(a * alpha) + np.abs(b * beta))),
    same_bits=True,
    second=True,
)


def test_scaled_add_has_the_bits_of_products_and_sum(device: str, rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 4001)).astype(np.float32)
    got = vkml.scaled_add(tensor(a, device=device), tensor(b, device=device), 0.3, 1.7).numpy()
    np.testing.assert_array_equal(got, a * np.float32(0.3) + b * np.float32(1.7))


# Comparisons and truths ----------------------------------------------------------------------------------------------

COMPARE = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def compared(name: str, other: str) -> type:
    return op_cases(name, COMPARE[name], torch=other, dtypes=ALL, shapes=BROADCAST, result="bool", gradients=False)


TestEqual = compared("equal", "eq")
TestNotEqual = compared("not_equal", "ne")
TestLess = compared("less", "lt")
TestLessEqual = compared("less_equal", "le")
TestGreater = compared("greater", "gt")
TestGreaterEqual = compared("greater_equal", "ge")
TestLogicalAnd = compared("logical_and", "logical_and")
TestLogicalOr = compared("logical_or", "logical_or")
TestLogicalXor = compared("logical_xor", "logical_xor")
TestLogicalNot = op_cases(
    "logical_not", np.logical_not, torch="logical_not", dtypes=ALL, result="bool", gradients=False
)
TestIsnan = op_cases("isnan", np.isnan, torch="isnan", dtypes=ALL, result="bool", gradients=False)
TestIsinf = op_cases("isinf", np.isinf, torch="isinf", dtypes=ALL, result="bool", gradients=False)
TestIsfinite = op_cases("isfinite", np.isfinite, torch="isfinite", dtypes=ALL, result="bool", gradients=False)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", COMPARE)
def test_compare(name: str, dtype: str, device: str, rng: np.random.Generator) -> None:
    for shapes in [((1000,), (1000,)), ((7, 5), (5,)), ((3, 1), (1, 4)), ((), (4,)), ((0, 2), (2,))]:
        a, b = (rng.integers(0, 3, s) for s in shapes)
        x, y = tensor(a, dtype, device), tensor(b, dtype, device)
        got = getattr(vkml, name)(x, y)
        assert dtype_name(got) == "bool"
        np.testing.assert_array_equal(got.numpy(), COMPARE[name](to_numpy(x), to_numpy(y)))
        np.testing.assert_array_equal(getattr(vkml, name)(x, 1).numpy(), COMPARE[name](to_numpy(x), 1))
        np.testing.assert_array_equal(getattr(vkml, name)(1, x).numpy(), COMPARE[name](1, to_numpy(x)))


def test_compare_symbols_and_nan(device: str) -> None:
    x = tensor([1.0, 2.0, NAN, INF], device=device)
    values = x.numpy()
    for got, expected in [
        (x == x, values == values),
        (x != x, values != values),
        (x < 2, values < 2),
        (x <= 2, values <= 2),
        (x < 2, values < 2),
        (x >= x, values >= values),
        (x != 2, values != 2),
        (vkml.isnan(x), np.isnan(values)),
        (vkml.isinf(x), np.isinf(values)),
        (vkml.isfinite(x), np.isfinite(values)),
        (vkml.logical_not(x), np.logical_not(values)),
    ]:
        np.testing.assert_array_equal(got.numpy(), expected)
    assert hash(x) == hash(x)
    assert len({x, tensor([1.0], device=device)}) == 2


def test_mixed_dtypes_compare_in_the_promoted_one(device: str) -> None:
    assert (tensor([16777217], "int64", device) == tensor([16777216.0], "float32", device)).numpy().tolist() == [True]
