"""The recurrent operator behind nn.LSTM, GRU and RNN: values in float64, gradients of two orders, layouts, errors."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, assert_same_bits, tensor, to_numpy

import vkml
from vkml.autograd import gradcheck, gradgradcheck

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
KINDS = list(GATES)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def reference(kind, gates, weight, bias, hidden, cell, reverse):
    """float64, one step after the other."""
    states, cells = np.zeros((*gates.shape[:2], hidden.shape[1])), np.zeros((*gates.shape[:2], hidden.shape[1]))
    for t in range(gates.shape[1])[:: -1 if reverse else 1]:
        x, p = gates[:, t], hidden @ weight.T + (0 if bias is None else bias)
        if kind == "lstm":
            i, f, c, o = np.split(x + p, 4, 1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
            hidden = sigmoid(o) * np.tanh(cell)
            cells[:, t] = cell
        elif kind == "gru":
            (xr, xz, xn), (pr, pz, pn) = np.split(x, 3, 1), np.split(p, 3, 1)
            z = sigmoid(xz + pz)
            hidden = (1 - z) * np.tanh(xn + sigmoid(xr + pr) * pn) + z * hidden
        else:
            hidden = np.tanh(x + p) if kind == "tanh" else np.maximum(x + p, 0)
        states[:, t] = hidden
    return states, cells


def arguments(kind, rng, n=3, steps=5, width=6):
    rows = GATES[kind] * width
    shapes = [(n, steps, rows), (rows, width), (rows,), (n, width), (n, width)]
    made = [rng.standard_normal(s) * scale for s, scale in zip(shapes, (1, 0.4, 0.3, 0.5, 0.5), strict=True)]
    return made if kind == "lstm" else [*made[:4], None]


def run(kind, arrays, device, dtype="float32", reverse=False, grad=False):
    inputs = [None if a is None else tensor(a, dtype, device, requires_grad=grad) for a in arrays]
    return inputs, vkml._core._recurrent(kind, *inputs, reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, reverse, device, rng):
    arrays = [None if a is None else a.astype(np.float32).astype(np.float64) for a in arguments(kind, rng)]
    _, (states, cells) = run(kind, arrays, device, reverse=reverse)
    want, want_cells = reference(kind, *arrays, reverse)
    assert_close(states, want, atol=2e-6)
    assert (cells is not None) == (kind == "lstm")
    if cells is not None:
        assert_close(cells, want_cells, atol=3e-6)


@pytest.mark.parametrize("width", [1, 7, 64, 130])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_widths_and_one_step(kind, width, device, rng):
    for n, steps in ((1, 1), (5, 3)):
        arrays = arguments(kind, rng, n, steps, width)
        _, (states, _) = run(kind, arrays, device)
        assert_close(states, reference(kind, *arrays, False)[0], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_dtypes(kind, dtype, device, rng):
    if dtype == "float64" and device != "cpu" and not vkml.device_info(device).get("f64", True):
        pytest.skip("no float64 on this device")
    arrays = arguments(kind, rng)
    inputs, (states, _) = run(kind, arrays, device, dtype, grad=True)
    held = [None if x is None else to_numpy(x) for x in inputs]
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-48}[dtype]
    want = reference(kind, *held, False)[0]
    # Every step rounds its product and its state; 4 roundings of the largest state, which relu does not bound by 1.
    assert_close(states, want, atol=4 * step * max(1.0, np.abs(want).max()))
    states.sum().backward()
    assert all(x is None or (x.grad.dtype == x.dtype and x.grad.shape == x.shape) for x in inputs)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh"])
def test_gradients_by_differences(kind, reverse, rng):
    arrays = arguments(kind, rng, 2, 4, 3)

    def states_and_cells(*inputs):
        full = [*inputs, *[None] * (5 - len(inputs))]
        states, cells = vkml._core._recurrent(kind, *full, reverse)
        return states if cells is None else states + cells * 0.7

    inputs = [tensor(a, "float64", requires_grad=True) for a in arrays if a is not None]
    assert gradcheck(states_and_cells, inputs)
    assert gradgradcheck(states_and_cells, inputs)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernels_gradients_are_the_composed_ones(kind, reverse, device, rng):
    arrays = arguments(kind, rng)
    weight = rng.standard_normal((3, 5, 6))
    found = []
    for create_graph in (False, True):  # with a graph of the gradient it is made of differentiable operators
        inputs, (states, cells) = run(kind, arrays, device, reverse=reverse, grad=True)
        out = (states * tensor(weight, "float32", device)).sum()
        out = out if cells is None else out + (cells * cells).sum()
        given = [x for x in inputs if x is not None]
        found.append(vkml.grad(out, given, create_graph=create_graph))
    for fast, composed in zip(*found, strict=True):
        assert not fast.requires_grad and composed.requires_grad
        scale = np.abs(to_numpy(composed)).max()
        assert_close(fast, to_numpy(composed), atol=1e-5 * max(scale, 1))


def test_only_the_gradients_asked_for(device, rng):
    arrays = arguments("lstm", rng)
    full, (states, _) = run("lstm", arrays, device, grad=True)
    states.sum().backward()
    for i in range(5):
        inputs = [tensor(a, "float32", device, requires_grad=i == k) for k, a in enumerate(arrays)]
        vkml._core._recurrent("lstm", *inputs)[0].sum().backward()
        assert [x.grad is not None for x in inputs] == [i == k for k in range(5)]
        assert_same_bits(inputs[i].grad, full[i].grad, f"input {i}")


def test_a_loss_of_the_last_cell_state_only(device, rng):
    arrays = arguments("lstm", rng)
    inputs, (_, cells) = run("lstm", arrays, device, grad=True)
    cells.select(1, -1).sum().backward()
    step = 1e-5
    for i in (1, 4):
        direction = rng.standard_normal(arrays[i].shape)
        ends = []
        for sign in (1, -1):
            moved = [a + sign * step * direction if k == i else a for k, a in enumerate(arrays)]
            ends.append(reference("lstm", *moved, False)[1][:, -1].sum())
        slope = (ends[0] - ends[1]) / (2 * step)
        assert (to_numpy(inputs[i].grad) * direction).sum() == pytest.approx(slope, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts(kind, device, rng):
    arrays = arguments(kind, rng)
    inputs, (packed, _) = run(kind, arrays, device)
    gates, weight, bias, hidden, cell = inputs
    strided = [
        tensor(np.moveaxis(arrays[0], 1, 0), "float32", device).transpose(0, 1),
        tensor(arrays[1].T, "float32", device).T,
        tensor(np.repeat(arrays[2], 2), "float32", device)[::2],
        tensor(np.pad(arrays[3], ((1, 0), (2, 1))), "float32", device)[1:, 2:-1],
        cell,
    ]
    assert not any(x.is_contiguous() for x in strided[:4])
    again, _ = vkml._core._recurrent(kind, *strided)
    assert_close(again, to_numpy(packed), atol=1e-6)
    assert gates.shape == strided[0].shape and bias is not None and hidden is not None and weight is not None


def test_same_bits_every_time_and_whatever_the_batch(device, rng):
    arrays = arguments("lstm", rng, n=4)
    _, (first, _) = run("lstm", arrays, device)
    _, (again, _) = run("lstm", arrays, device)
    assert_same_bits(first, again)


def test_a_step_is_two_dispatches(vulkan, rng):
    arrays = arguments("lstm", rng, steps=20)
    counts = []
    for steps in (10, 20):
        inputs = [tensor(a, "float32", vulkan) for a in (arrays[0][:, :steps], *arrays[1:])]
        before = vkml.dispatch_count(vulkan)
        vkml._core._recurrent("lstm", inputs[0], inputs[1], None, *inputs[3:])
        counts.append(vkml.dispatch_count(vulkan) - before)
    assert counts == [20, 40]


def test_empty_batch(device):
    x = vkml.zeros(0, 3, 8, device=device, requires_grad=True)
    w = vkml.ones(8, 2, device=device, requires_grad=True)
    state = vkml.zeros(0, 2, device=device)
    y, c = vkml._core._recurrent("lstm", x, w, None, state, state)
    assert y.shape == c.shape == (0, 3, 2)
    y.sum().backward()
    assert x.grad.shape == (0, 3, 8) and w.grad.tolist() == [[0, 0]] * 8


def test_errors(device):
    def call(kind="lstm", gates=(2, 3, 8), weight=(8, 2), hidden=(2, 2), cell=(2, 2), dtype="float32", bias=None):
        made = [vkml.zeros(s, dtype=dtype, device=device) if s else None for s in (gates, weight, bias, hidden, cell)]
        return vkml._core._recurrent(kind, *made)

    with pytest.raises(vkml.ShapeError, match="expected lstm, gru, tanh or relu, got peephole"):
        call("peephole")
    with pytest.raises(vkml.ShapeError, match=r"recurrent: gates: expected rank 3, got \(2, 8\)"):
        call(gates=(2, 8))
    with pytest.raises(vkml.ShapeError, match=r"recurrent: gates: expected 8 columns, got \(2, 3, 7\)"):
        call(gates=(2, 3, 7))
    with pytest.raises(vkml.ShapeError, match="at least one step"):
        call(gates=(2, 0, 8))
    with pytest.raises(vkml.ShapeError, match=r"recurrent: weight: expected shape \(8, 2\), got \(2, 8\)"):
        call(weight=(2, 8))
    with pytest.raises(vkml.ShapeError, match=r"recurrent: bias: expected shape \(8,\), got \(7,\)"):
        call(bias=(7,))
    with pytest.raises(vkml.ShapeError, match=r"recurrent: hidden: expected shape \(2, 2\), got \(3, 2\)"):
        call(hidden=(3, 2))
    with pytest.raises(vkml.ShapeError, match="recurrent: cell"):
        call(cell=None)
    with pytest.raises(vkml.DTypeError, match="floating-point"):
        call(dtype="int32")
    with pytest.raises(vkml.DTypeError, match="one dtype"):
        x = vkml.zeros(2, 3, 2, device=device)
        vkml._core._recurrent("tanh", x, vkml.zeros(2, 2, dtype="float64", device=device), None, x.select(1, 0))
