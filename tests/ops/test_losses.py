"""Losses: values, gradients, reductions, the edges of cross_entropy, and classes out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, tensor, to_numpy
from op_cases import Tolerance, bench, op_cases

import vkml
from vkml import _core

REDUCTIONS = ["mean", "sum", "none"]
NEAR = Tolerance(row=3e-6, rel=3e-6)


def reduce(loss: np.ndarray, reduction: str) -> np.ndarray:
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](loss)


def huber(d: np.ndarray, delta: float) -> np.ndarray:
    a = np.abs(d)
    return np.where(a <= delta, d * d / 2, delta * (a - delta / 2))


def pair(name: str, loss: Any, **more: Any) -> type:
    settings = {
        "torch": lambda torch, *xs, **kw: getattr(torch.nn.functional, name)(*xs, **kw),  # torch.kl_div is another
        "shapes": [((4, 5), (4, 5)), ((7,), (7,)), ((2, 3, 4), (2, 3, 4))],
        "tolerance": NEAR,
        "second": True,
        "reduction": REDUCTIONS,
        "grad_tolerance": 3e-5,
    }
    return op_cases(name, lambda x, t, reduction, **kw: reduce(loss(x, t, **kw), reduction), **{**settings, **more})


TestMse = pair("mse_loss", lambda x, t: (x - t) ** 2)
TestL1 = pair("l1_loss", lambda x, t: np.abs(x - t))
TestSmoothL1 = pair("smooth_l1_loss", lambda x, t, beta: huber(x - t, beta) / beta, beta=[1.0, 0.3], second=False)
TestHuber = pair("huber_loss", lambda x, t, delta: huber(x - t, delta), delta=[1.0, 2.0], second=False)
TestKlDiv = pair("kl_div", lambda x, t: t * (np.log(t) - x), domain=[(-3, -0.1), (0.1, 1.0)])
TestKlDivLog = pair(
    "kl_div", lambda x, t, log_target: np.exp(t) * (t - x), log_target=True, domain=[(-3, -0.1), (-3, -0.1)]
)
TestBce = pair(
    "binary_cross_entropy", lambda x, t: -(t * np.log(x) + (1 - t) * np.log1p(-x)), domain=[(0.05, 0.95), (0.0, 1.0)]
)
TestBceLogits = pair(
    "binary_cross_entropy_with_logits",
    lambda x, t: t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x),
    domain=[(-6, 6), (0.0, 1.0)],
)


def np_cross_entropy(
    x: np.ndarray,
    t: np.ndarray,
    w: np.ndarray | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> np.ndarray:
    axis = 0 if x.ndim == 1 else 1
    d = x - x.max(axis, keepdims=True)
    logs = np.moveaxis(d - np.log(np.exp(d).sum(axis, keepdims=True)), axis, -1)
    w = np.ones(logs.shape[-1]) if w is None else w
    kept = t != ignore_index
    safe = np.where(kept, t, 0)
    scale = np.where(kept, w[safe], 0.0)
    loss = -scale * np.take_along_axis(logs, safe[..., None], -1)[..., 0]
    loss = (1 - label_smoothing) * loss - np.where(kept, label_smoothing / logs.shape[-1] * (logs * w).sum(-1), 0)
    return loss.sum() / scale.sum() if reduction == "mean" else reduce(loss, reduction)


def classes(rng: np.random.Generator, x: tuple, *weight: tuple, **kwargs: Any) -> list[np.ndarray]:
    axis = 0 if len(x) == 1 else 1
    target = rng.integers(0, x[axis], x[:axis] + x[axis + 1 :])
    if target.size > 2:
        target.flat[1] = kwargs.get("ignore_index", -100)
    return [rng.uniform(-3, 3, x), target, *(rng.uniform(0.5, 2, s) for s in weight)]


LOGITS = [((5, 4),), ((4,),), ((2, 3, 4),), ((2, 5, 2, 3),), ((3, 65),), ((33, 7),)]
COMMON = {
    "inputs": classes,
    "reduction": REDUCTIONS,
    "label_smoothing": [0.0, 0.1],
    "tolerance": NEAR,
    "second": True,
    "grad_tolerance": 3e-5,
    "layouts": (),
}
TestCrossEntropy = op_cases(
    "cross_entropy",
    np_cross_entropy,
    torch="cross_entropy",
    shapes=LOGITS,
    bench=[
        bench((8192, 8192)),
        bench((2048, 50257)),
        bench((8192, 8192), backward=True),
        bench((8192, 8192), dtype="bfloat16"),
    ],
    **COMMON,
)


def constant_weights(x: Any, t: Any, w: Any, **kwargs: Any) -> Any:
    """As torch, no gradient goes to the class weights."""
    return vkml.cross_entropy(x, t, w.detach(), **kwargs)


def torch_constant_weights(torch: Any, x: Any, t: Any, w: Any, **kwargs: Any) -> Any:
    """torch raises for class weights that require a gradient."""
    return torch.nn.functional.cross_entropy(x, t, w.detach(), **kwargs)


TestCrossEntropyWeighted = op_cases(
    constant_weights,
    np_cross_entropy,
    name="cross_entropy with weights",
    torch=torch_constant_weights,
    shapes=[((5, 4), (4,)), ((2, 3, 4), (3,))],
    **{**COMMON, "dtypes": ("float32", "float64"), "second": False},
)


def test_cross_entropy_known_values(device: str) -> None:
    x = tensor([[1, 2, 3]], "float32", device, True)
    loss = vkml.cross_entropy(x, vkml.tensor([2], device=device))
    assert_close(loss, np.array(0.40760596), rtol=1e-6)
    loss.backward()
    assert_close(x.grad, np.array([[0.0900306, 0.2447285, -0.3347590]]), atol=1e-6)


def test_cross_entropy_all_ignored(device: str) -> None:
    t = vkml.tensor([-100, -100], device=device)
    for reduction, value in (("mean", np.nan), ("sum", 0.0)):
        x = tensor([[1, 2, 3], [3, 2, 1]], "float32", device, True)
        loss = vkml.cross_entropy(x, t, reduction=reduction)
        assert_close(loss, np.array(value))
        loss.backward()
        assert (to_numpy(x.grad) == 0).all()


@pytest.mark.parametrize("bad", [3, -1, 1 << 40])
def test_class_out_of_range(device: str, bad: int) -> None:
    for op in (vkml.cross_entropy, vkml.nll_loss):
        with pytest.raises(vkml.IndexError_, match=rf"{op.__name__}: expected an index in \[0, 3\), got {bad}"):
            op(tensor(np.ones((2, 3)), "float32", device), vkml.tensor([0, bad], device=device)).numpy()


def test_cross_entropy_of_probabilities(device: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-3, 3, (4, 5)).astype(np.float32)
    p = rng.dirichlet(np.ones(5), 4).astype(np.float32)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    for reduction in REDUCTIONS:
        got = vkml.cross_entropy(vkml.tensor(x, device=device), vkml.tensor(p, device=device), reduction=reduction)
        assert_close(got, reduce(-(p * logs).sum(1), reduction), rtol=1e-5)


@pytest.fixture
def structure(request: pytest.FixtureRequest) -> Any:
    """Which kernels reduce the rows of logits on a GPU."""
    _core._force_row_structure(request.param)
    yield request.param
    _core._force_row_structure("")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("structure", ["resident", "split", "looped"], indirect=True)
@pytest.mark.parametrize("shape", [(2, 40000), (3, 4099), (5, 1), (9, 3), (2, 5000, 3), (7, 257)])
def test_cross_entropy_of_many_classes(
    device: str, rng: np.random.Generator, structure: str, shape: tuple[int, ...], dtype: str
) -> None:
    """Values and gradients by every structure; pieces of 16 bytes that reach into the next rows; a strided input."""
    x = tensor(rng.normal(0, 3, shape), dtype, device, True)
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    target.flat[0] = -100
    loss = vkml.cross_entropy(x.flip(1), vkml.tensor(target, device=device), reduction="none")
    held = to_numpy(x)[:, ::-1].astype(np.float64)
    unit = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    expected = np_cross_entropy(held, target, reduction="none")
    assert_close(loss, expected, rtol=unit + 4e-6, atol=1e-6 * np.abs(held).max())
    weights = rng.uniform(0.5, 2, target.shape)
    loss.backward(tensor(weights, dtype, device))
    weights = to_numpy(tensor(weights, dtype)).astype(np.float64)
    p = np.exp(held - held.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    one = np.arange(shape[1]).reshape(1, -1, *[1] * (len(shape) - 2)) == target[:, None]
    wanted = np.where(target[:, None] == -100, 0, (p - one) * weights[:, None])[:, ::-1]
    # A half keeps 2^-24 beside its 11 bits.
    assert_close(x.grad, wanted, rtol=unit + 4e-6, atol=2e-6 + (2.0**-25 if dtype == "float16" else 0))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_cross_entropy_keeps_no_log_softmax(device: str, rng: np.random.Generator, dtype: str) -> None:
    x = tensor(rng.normal(0, 3, (64, 30001)), dtype, device, True)
    t = vkml.tensor(rng.integers(0, 30001, 64), device=device)
    vkml.synchronize()
    before = vkml.memory_stats(device)["in_use_bytes"]
    vkml.reset_peak_memory(device)
    vkml.cross_entropy(x, t).backward()
    vkml.synchronize()
    # Beside the logits only their gradient, to within what the pool rounds up by.
    assert vkml.memory_stats(device)["peak_in_use_bytes"] - before <= x.nbytes * 9 // 8 + (1 << 16)


@pytest.mark.parametrize("changed", ["target", "weight"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_target_that_changed_since_is_noticed(device: str, changed: str, smoothing: float) -> None:
    x = tensor([[1, 2, 3]], "float32", device, True)
    t, w = vkml.tensor([0], device=device), vkml.ones(3, device=device)
    loss = vkml.cross_entropy(x, t, w, label_smoothing=smoothing)
    (t if changed == "target" else w).zero_()
    with pytest.raises(vkml.Error, match="unchanged"):
        loss.backward()
    log = vkml.nll_loss(x, t, w)
    (t if changed == "target" else w).zero_()
    with pytest.raises(vkml.Error, match="unchanged"):
        log.backward()


def test_ignored_rows_may_hold_anything(device: str) -> None:
    """Smoothing averages over the classes of the rows that count only."""
    for odd in (np.nan, np.inf, -np.inf):
        x = tensor([[odd, 1, 2], [0, 1, 2]], "float32", device, True)
        loss = vkml.cross_entropy(x, vkml.tensor([-100, 1], device=device), label_smoothing=0.1)
        assert_close(loss, np.array(1.4076059), rtol=1e-6)
    x = tensor([[1, 2, 3], [3, 2, 1]], "float32", device, True)
    vkml.cross_entropy(x, vkml.tensor([-100, -100], device=device), label_smoothing=0.1).backward()
    assert (to_numpy(x.grad) == 0).all()


def test_class_weights_have_no_gradient(device: str) -> None:
    x, t, w = tensor([[1, 2, 3]], "float32", device), vkml.tensor([0], device=device), vkml.ones(3, device=device)
    for op in (vkml.cross_entropy, vkml.nll_loss):
        with pytest.raises(
            vkml.NotImplementedError_, match=f"{op.__name__}: weight: expected a tensor that requires no"
        ):
            op(x, t, w.requires_grad_())
        with vkml.no_grad():
            op(x, t, w)


def test_nll_loss_of_halves(device: str, rng: np.random.Generator) -> None:
    """Each gradient is one weight, so it has the bits of that; the loss is rounded once."""
    x = tensor(-rng.uniform(0, 5, (6, 11)), "bfloat16", device, True)
    t, w = rng.integers(0, 11, 6), rng.uniform(0.5, 2, 11).astype(np.float32)
    loss = vkml.nll_loss(x, vkml.tensor(t, device=device), vkml.tensor(w, device=device), reduction="none")
    assert loss.dtype == vkml.bfloat16
    assert_close(loss, -w[t] * to_numpy(x)[np.arange(6), t], rtol=2.0**-8)
    loss.sum().backward()
    wanted = np.zeros((6, 11))
    wanted[np.arange(6), t] = -to_numpy(tensor(w[t], "bfloat16"))
    assert (to_numpy(x.grad) == wanted).all()


def test_older_calls_and_int32_targets(device: str) -> None:
    x, t = tensor([[1, 2, 3], [1, 0, 0]], "float32", device), np.array([2, 0])
    expected = np_cross_entropy(to_numpy(x), t, reduction="sum")
    assert_close(vkml.cross_entropy(x, vkml.tensor(t, device=device), "sum"), expected, rtol=1e-6)
    assert_close(
        vkml.cross_entropy(x, vkml.tensor(t.astype(np.int32), device=device), reduction=vkml.Reduction.sum),
        expected,
        rtol=1e-6,
    )


def test_known_values(device: str) -> None:
    def t(v: Any) -> vkml.Tensor:
        return tensor(v, "float32", device)

    assert_close(vkml.binary_cross_entropy_with_logits(t([0.0]), t([1.0])), np.array(0.6931472), rtol=1e-6)
    got = vkml.binary_cross_entropy_with_logits(t([1, 2]), t([1, 0]), reduction="none", pos_weight=t([2, 3]))
    assert_close(got, np.array([0.6265234, 2.1269281]), rtol=1e-6)
    assert_close(vkml.kl_div(t([[-1, -2]]), t([[0.5, 0.5]])), np.array(0.4034264), rtol=1e-6)
    assert_close(vkml.kl_div(t([[-1, -2]]), t([[0.5, 0.5]]), "batchmean"), np.array(0.8068528), rtol=1e-6)
    assert_close(vkml.kl_div(t([-1, -2]), t([0.0, 1.0]), "sum"), np.array(2.0), rtol=1e-6)
    assert_close(vkml.huber_loss(t([0, 0.5, 3]), t([0, 0, 0]), "none"), np.array([0, 0.125, 2.5]))
    assert_close(vkml.huber_loss(t([0, 0.5, 3]), t([0, 0, 0]), "none", 2.0), np.array([0, 0.125, 4]))
    x = tensor([0, 0.5, 3], "float32", device, True)
    vkml.huber_loss(x, t([0, 0, 0]), "sum").backward()
    assert_close(x.grad, np.array([0, 0.5, 1]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: vkml.huber_loss(t, t, delta=0), "ShapeError", "^huber_loss: delta: expected a number > 0, got 0"),
        (
            lambda t: vkml.mse_loss(t, t, "most"),
            "ShapeError",
            "^mse_loss: reduction: expected mean, sum or none, got 'most'$",
        ),
        (
            lambda t: vkml.cross_entropy(t, vkml.tensor([1.0, 2.0], device="cpu")),
            "ShapeError",
            r"^cross_entropy: target: expected int64 or int32 classes, or probabilities of shape \(2, 3\), "
            r"got float32 of shape \(2,\)$",
        ),
        (
            lambda t: vkml.cross_entropy(t, vkml.tensor([1, 2, 3], device="cpu")),
            "ShapeError",
            r"^cross_entropy: target: expected shape \(2,\), got \(3,\)$",
        ),
        (
            lambda t: vkml.cross_entropy(t, vkml.tensor([1, 2], device="cpu"), vkml.zeros(4, device="cpu")),
            "ShapeError",
            r"^cross_entropy: weight: expected shape \(3,\), got \(4,\)$",
        ),
        (
            lambda t: vkml.cross_entropy(vkml.tensor([[1, 2]], device="cpu"), vkml.tensor([1], device="cpu")),
            "DTypeError",
            "^cross_entropy: expected a floating-point tensor, got int64$",
        ),
    ],
)
def test_errors(call: Any, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        call(tensor(np.ones((2, 3)), "float32", "cpu"))
