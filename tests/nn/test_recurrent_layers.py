"""nn.LSTM, GRU, RNN and their cells without PyTorch: values in float64, states that carry on, shapes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import vkml
from vkml import nn

LAYERS = [nn.LSTM, nn.GRU, nn.RNN]


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def step(kind, w_ih, w_hh, b_ih, b_hh, x, h, c):
    a, b = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if kind == "LSTM":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "GRU":
        (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
        z = sigmoid(az + bz)
        return (1 - z) * np.tanh(an + sigmoid(ar + br) * bn) + z * h, c
    return np.tanh(a + b), c


def reference(layer, x):
    """The whole layer from zero states: outputs, h_n, c_n."""
    p = {k: v.numpy().astype(np.float64) for k, v in layer.state_dict().items()}
    ends_h, ends_c = [], []
    for n in range(layer.num_layers):
        sides = []
        for suffix in [f"_l{n}", f"_l{n}_reverse"][: 2 if layer.bidirectional else 1]:
            weights = [p[f"{w}{suffix}"] for w in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            h = c = np.zeros((x.shape[0], layer.hidden_size))
            rows = [None] * x.shape[1]
            for t in range(x.shape[1])[:: -1 if suffix.endswith("reverse") else 1]:
                h, c = step(type(layer).__name__, *weights, x[:, t], h, c)
                rows[t] = h
            sides.append(np.stack(rows, 1))
            ends_h.append(h)
            ends_c.append(c)
        x = np.concatenate(sides, -1)
    return x, np.stack(ends_h), np.stack(ends_c)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layer", LAYERS)
def test_values(layer, bidirectional, device, rng):
    net = layer(4, 6, num_layers=2, bidirectional=bidirectional, device=device)
    x = rng.standard_normal((3, 5, 4)).astype(np.float32)
    y, last = net(vkml.tensor(x, device=device))
    want, want_h, want_c = reference(net, x.astype(np.float64))
    last = last if layer is nn.LSTM else (last,)
    for got, expected in zip((y, *last), (want, want_h, want_c), strict=False):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.detach().numpy(), expected, atol=5e-6)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_sequence_in_two_parts(layer, device, rng):
    net = layer(4, 6, num_layers=2, device=device)
    x = vkml.tensor(rng.standard_normal((3, 7, 4)).astype(np.float32), device=device)
    whole, end = net(x)
    first, state = net(x[:, :3])
    second, last = net(x[:, 3:], state)
    np.testing.assert_allclose(vkml.cat([first, second], 1).detach().numpy(), whole.detach().numpy(), atol=1e-6)
    for a, b in zip(last if layer is nn.LSTM else [last], end if layer is nn.LSTM else [end], strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize(("layer", "cell"), [(nn.LSTM, nn.LSTMCell), (nn.GRU, nn.GRUCell), (nn.RNN, nn.RNNCell)])
def test_cells_step_like_layers(layer, cell, device, rng):
    net, one = layer(4, 6, device=device), cell(4, 6, device=device)
    one.load_state_dict({name.removesuffix("_l0"): t for name, t in net.state_dict().items()})
    x = vkml.tensor(rng.standard_normal((3, 5, 4)).astype(np.float32), device=device)
    state, rows = None, []
    for t in range(5):
        state = one(x[:, t], state)
        rows.append(state[0] if layer is nn.LSTM else state)
    np.testing.assert_allclose(vkml.stack(rows, 1).detach().numpy(), net(x)[0].detach().numpy(), atol=1e-6)
    single = one(x[0, 0])
    shape = [s.shape for s in single] if layer is nn.LSTM else [single.shape]
    assert shape == [(6,)] * len(shape)


@pytest.mark.parametrize("layer", LAYERS)
def test_orders_of_axes(layer, device, rng):
    net = layer(4, 6, bidirectional=True, device=device)
    turned = layer(4, 6, bidirectional=True, batch_first=False, device=device)
    turned.load_state_dict(net.state_dict())
    x = vkml.tensor(rng.standard_normal((3, 5, 4)).astype(np.float32), device=device)
    y, _ = net(x)
    z, _ = turned(x.transpose(0, 1))
    assert z.shape == (5, 3, 12)
    np.testing.assert_allclose(z.transpose(0, 1).detach().numpy(), y.detach().numpy(), atol=1e-6)
    alone, last = net(x[1])
    np.testing.assert_allclose(alone.detach().numpy(), y[1].detach().numpy(), atol=1e-6)
    assert (last[0] if layer is nn.LSTM else last).shape == (2, 6)


def test_dropout_lies_between_layers(device):
    x = vkml.ones(2, 3, 4, device=device)
    single = nn.LSTM(4, 6, dropout=0.9, device=device)
    assert single(x)[0].tolist() == single(x)[0].tolist()  # nothing between
    double = nn.LSTM(4, 6, num_layers=2, dropout=0.9, device=device)
    assert double(x)[0].tolist() != double(x)[0].tolist()
    double.eval()
    assert double(x)[0].tolist() == double(x)[0].tolist()


def test_narrow_layers(device, rng):
    net = nn.GRU(4, 6, device=device).half()
    x = vkml.tensor(rng.standard_normal((3, 5, 4)), dtype="float16", device=device)
    y, last = net(x)
    assert y.dtype == last.dtype == vkml.float16
    want, *_ = reference(net, x.numpy().astype(np.float64))
    np.testing.assert_allclose(y.detach().numpy().astype(np.float64), want, atol=6 * 2.0**-10)
    y.sum().backward()
    assert all(p.grad.dtype == vkml.float16 for p in net.parameters())


def test_a_captured_layer_replays(vulkan, rng):
    net = nn.LSTM(4, 6, device=vulkan)
    x = vkml.tensor(rng.standard_normal((3, 5, 4)).astype(np.float32), device=vulkan)
    out = vkml.zeros(3, 5, 6, device=vulkan)

    def run():
        with vkml.no_grad():
            out.assign_(net(x)[0])

    captured = vkml.capture(run, vulkan)
    fresh = rng.standard_normal((3, 5, 4)).astype(np.float32)
    x.assign_(vkml.tensor(fresh, device=vulkan))
    captured.replay()
    np.testing.assert_allclose(out.numpy(), reference(net, fresh.astype(np.float64))[0], atol=5e-6)


def test_what_does_not_fit(device):
    net = nn.LSTM(4, 6, device=device)
    x = vkml.ones(2, 3, 4, device=device)
    state = vkml.zeros(1, 2, 6, device=device)
    for call, text in (
        (
            lambda: net(vkml.ones(2, 3, 5, device=device)),
            r"LSTM: expected 4 features on the last axis, got \(2, 3, 5\)",
        ),
        (lambda: net(vkml.ones(4, device=device)), r"LSTM: expected rank 2 or 3, got \(4,\)"),
        (lambda: net(x, state), "LSTM: hx: expected 2 tensors, got 1"),
        (lambda: net(x, (state, state[0])), r"LSTM: hx: expected shape \(1, 2, 6\), got \(2, 6\)"),
        (lambda: nn.GRU(4, 6, device=device)(x, (state, state)), "GRU: hx: expected 1 tensors, got 2"),
        (lambda: nn.GRUCell(4, 6, device=device)(x), r"GRUCell: expected rank 1 or 2, got \(2, 3, 4\)"),
        (lambda: nn.LSTM(4, 0), "hidden_size and num_layers of at least 1"),
        (lambda: nn.LSTM(4, 6, dropout=1.5), "LSTM: dropout"),
        (lambda: nn.RNN(4, 6, nonlinearity="gelu"), "RNN: nonlinearity: expected tanh or relu, got 'gelu'"),
    ):
        with pytest.raises(vkml.ShapeError, match=text):
            call()
    with pytest.raises(vkml.ShapeError, match="at least one step"):
        net(vkml.ones(2, 0, 4, device=device))
