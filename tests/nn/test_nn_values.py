"""Values of layers against closed forms and NumPy in float64: what holds where PyTorch is not installed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import vkml
from vkml import nn

F = nn.functional


def erf(x):
    return np.vectorize(math.erf)(x)


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def elu(x, a):
    return np.where(x > 0, x, a * np.expm1(np.minimum(x, 0)))


ACTIVATIONS = {
    nn.ReLU: lambda x: np.maximum(x, 0),
    nn.ReLU6: lambda x: np.clip(x, 0, 6),
    nn.LeakyReLU: lambda x: np.where(x > 0, x, 0.01 * x),
    nn.PReLU: lambda x: np.where(x > 0, x, 0.25 * x),
    nn.ELU: lambda x: elu(x, 1.0),
    nn.CELU: lambda x: elu(x, 1.0),
    nn.SELU: lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    nn.GELU: lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    nn.SiLU: lambda x: x * sigmoid(x),
    nn.Mish: lambda x: x * np.tanh(softplus(x)),
    nn.Softplus: softplus,
    nn.Softsign: lambda x: x / (1 + np.abs(x)),
    nn.Sigmoid: sigmoid,
    nn.LogSigmoid: lambda x: -softplus(-x),
    nn.Tanh: np.tanh,
    nn.Tanhshrink: lambda x: x - np.tanh(x),
    nn.Hardtanh: lambda x: np.clip(x, -1, 1),
    nn.Hardsigmoid: lambda x: np.clip(x + 3, 0, 6) / 6,
    nn.Hardswish: lambda x: x * np.clip(x + 3, 0, 6) / 6,
    nn.Softmax: softmax,
    nn.Softmin: lambda x: softmax(-x),
    nn.LogSoftmax: lambda x: np.log(softmax(x)),
    nn.GLU: lambda x: x[..., :4] * sigmoid(x[..., 4:]),
}


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=lambda c: c.__name__)
def test_activations(layer, device, rng):
    x = (rng.standard_normal((5, 8)) * 3).astype(np.float32)
    y = layer().to(device)(vkml.tensor(x, device=device))
    np.testing.assert_allclose(y.detach().numpy(), ACTIVATIONS[layer](x.astype(np.float64)), rtol=3e-6, atol=3e-6)


def test_activations_at_the_ends(device):
    x = vkml.tensor([-math.inf, -200.0, 100.0, math.inf], device=device)
    assert F.softplus(x).tolist() == [0, 0, 100, math.inf] and F.relu6(x).tolist() == [0, 0, 6, 6]
    assert F.hardsigmoid(x).tolist() == [0, 0, 1, 1] and F.elu(x).tolist() == [-1, -1, 100, math.inf]
    nan = vkml.tensor([math.nan], device=device)
    for function in (F.relu, F.relu6, F.elu, F.selu, F.silu, F.mish, F.softplus, F.softsign, F.hardswish, F.tanh):
        assert math.isnan(function(nan).item()), function.__name__


def windows(x, k, stride, pad, fill):
    """Every window along the last axis, the padding `fill`."""
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(pad, pad)], constant_values=fill)
    return np.stack([padded[..., i : i + k] for i in range(0, padded.shape[-1] - k + 1, stride)], -2)


def test_pools_of_sequences(device, rng):
    x = rng.standard_normal((2, 3, 9)).astype(np.float32)
    t = vkml.tensor(x, device=device)
    np.testing.assert_array_equal(nn.MaxPool1d(3, stride=2, padding=1)(t).numpy(), windows(x, 3, 2, 1, -np.inf).max(-1))
    np.testing.assert_allclose(nn.AvgPool1d(2)(t).numpy(), windows(x, 2, 2, 0, 0).mean(-1), rtol=1e-6)
    np.testing.assert_array_equal(nn.MaxPool1d(3)(t[0]).numpy(), windows(x[0], 3, 3, 0, 0).max(-1))


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 4), (7, 6), (9, 11)])
def test_adaptive_pools(size, device, rng):
    x = rng.standard_normal((2, 3, 7, 6)).astype(np.float32)
    cells = [[slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip((7, 6), size, strict=True)]
    for layer, fold in ((nn.AdaptiveAvgPool2d, np.mean), (nn.AdaptiveMaxPool2d, np.max)):
        expected = np.array([[fold(x[..., a, b], axis=(-2, -1)) for b in cells[1]] for a in cells[0]])
        y = layer(size)(vkml.tensor(x, device=device))
        np.testing.assert_allclose(y.numpy(), np.moveaxis(expected, (0, 1), (2, 3)), rtol=1e-5, atol=1e-6)


def test_adaptive_pools_keep_an_infinity_in_its_windows(device):
    x = vkml.tensor([[[1.0, math.inf, 2.0, 3.0, 5.0]]], device=device)
    assert nn.AdaptiveAvgPool1d(3)(x).tolist() == [[[math.inf, math.inf, 4.0]]]
    assert nn.AdaptiveMaxPool1d(3)(x).tolist() == [[[math.inf, math.inf, 5.0]]]
    half = nn.AdaptiveAvgPool1d(3)(vkml.tensor([[[1.0, 2.0, 4.0, 8.0]]], dtype="float16", device=device))
    assert half.dtype == vkml.float16 and half.tolist() == [[[1.5, 3.0, 6.0]]]
    with pytest.raises(vkml.ShapeError, match=r"adaptive_avg_pool1d: output_size: expected 1 sizes from \(5,\), got 0"):
        nn.AdaptiveAvgPool1d(0)(x)


def naive_convolution(x, w, bias, stride, dilation):
    """One group, no padding, any number of axes."""
    axes = x.ndim - 2
    out = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    for place in np.ndindex(*w.shape[2:]):
        at = tuple(slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in zip(place, dilation, out, stride))  # noqa: B905
        y += np.einsum("nc...,oc->no...", x[(slice(None), slice(None), *at)], w[(slice(None), slice(None), *place)])
    return y + bias.reshape(-1, *(1,) * axes)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions(axes, device, rng):
    layer = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
    kernel, stride, dilation = (3, 2, 2)[:axes], (2, 1, 2)[:axes], (1, 2, 1)[:axes]
    net = layer(3, 4, kernel, stride=stride, dilation=dilation, padding=1, device=device)
    x = rng.standard_normal((2, 3, 7, 6, 5)[: 2 + axes]).astype(np.float32)
    padded = np.pad(x.astype(np.float64), [(0, 0)] * 2 + [(1, 1)] * axes)
    expected = naive_convolution(padded, net.weight.numpy().astype(np.float64), net.bias.numpy(), stride, dilation)
    np.testing.assert_allclose(net(vkml.tensor(x, device=device)).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [nn.ConvTranspose1d, nn.ConvTranspose2d])
def test_transposed_convolutions_are_adjoint(layer, device, rng):
    """<conv(x), y> = <x, transposed(y)> with the same weight."""
    axes = 1 if layer is nn.ConvTranspose1d else 2
    back = layer(4, 3, 3, stride=2, padding=1, output_padding=1, bias=False, device=device)
    shape = (8, 10)[:axes]
    x = vkml.tensor(rng.standard_normal((2, 3, *shape)).astype(np.float32), device=device)
    forward = (F.conv1d, F.conv2d)[axes - 1](x, back.weight, None, stride=2, padding=1)
    y = vkml.tensor(rng.standard_normal(forward.shape).astype(np.float32), device=device)
    grown = back(y)
    assert grown.shape == x.shape
    assert (forward * y).sum().item() == pytest.approx((grown * x).sum().item(), rel=1e-4, abs=1e-4)
    with pytest.raises(vkml.ShapeError, match="output_padding: expected less than the stride"):
        layer(4, 3, 3, stride=2, output_padding=2)


def channel_statistics(x, axes):
    return x.mean(axes, keepdims=True), x.var(axes, keepdims=True)


@pytest.mark.parametrize(("layer", "shape"), [
    (nn.BatchNorm1d, (6, 3)), (nn.BatchNorm1d, (4, 3, 5)), (nn.BatchNorm2d, (2, 3, 4, 5)),
    (nn.BatchNorm3d, (2, 3, 2, 3, 4)),
], ids=str)  # fmt: skip
def test_batch_norms(layer, shape, device, rng):
    norm = layer(3, device=device)
    x = (rng.standard_normal(shape) * 2 + 5).astype(np.float32)
    axes = (0, *range(2, len(shape)))
    mean, var = channel_statistics(x.astype(np.float64), axes)
    y = norm(vkml.tensor(x, device=device))
    np.testing.assert_allclose(y.detach().numpy(), (x - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-5)
    n = x.size // 3
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * mean.ravel(), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.9 + 0.1 * var.ravel() * n / (n - 1), rtol=1e-5)
    evaluated = norm.eval()(vkml.tensor(x, device=device)).detach().numpy()
    shown = [s.numpy().reshape(1, 3, *(1,) * (len(shape) - 2)) for s in (norm.running_mean, norm.running_var)]
    np.testing.assert_allclose(evaluated, (x - shown[0]) / np.sqrt(shown[1] + 1e-5), rtol=1e-4, atol=1e-5)
    assert norm.num_batches_tracked.item() == 1
    norm.reset_running_stats()
    assert norm.running_mean.tolist() == [0] * 3 and norm.running_var.tolist() == [1] * 3
    with pytest.raises(vkml.ShapeError, match=rf"{layer.__name__}: expected shape \(N, 3"):
        norm(vkml.ones(2, 4, *shape[2:], device=device))


def test_batch_norm_without_momentum_averages_all_batches(device, rng):
    norm, means = nn.BatchNorm1d(2, momentum=None, device=device), []
    for _ in range(3):
        x = rng.standard_normal((5, 2)).astype(np.float32)
        means.append(x.mean(0))
        norm(vkml.tensor(x, device=device))
    np.testing.assert_allclose(norm.running_mean.numpy(), np.mean(means, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("layer", "shape"), [
    (nn.InstanceNorm1d, (2, 3, 7)), (nn.InstanceNorm2d, (2, 3, 4, 5)), (nn.InstanceNorm3d, (2, 3, 2, 3, 4)),
], ids=str)  # fmt: skip
def test_instance_norms(layer, shape, device, rng):
    norm = layer(3, track_running_stats=True, device=device)
    assert norm.weight is None and [k for k, _ in norm.named_parameters()] == []
    x = (rng.standard_normal(shape) * 2 + 5).astype(np.float32)
    mean, var = channel_statistics(x.astype(np.float64), tuple(range(2, len(shape))))
    y = norm(vkml.tensor(x, device=device))
    np.testing.assert_allclose(y.numpy(), (x - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-5)
    n = x[0, 0].size
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * mean.mean(0).ravel(), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.9 + 0.1 * var.mean(0).ravel() * n / (n - 1), rtol=1e-5)
    with pytest.raises(vkml.ShapeError, match="more than one value per channel"):
        layer(3)(vkml.ones(2, 3, *(1,) * (len(shape) - 2)))


def test_padding(device):
    x = vkml.arange(6.0, device=device).reshape(2, 3)
    assert F.pad(x, (1, 0, 0, 1), value=9).tolist() == [[9, 0, 1, 2], [9, 3, 4, 5], [9, 9, 9, 9]]
    assert F.pad(x, (-1, 0)).tolist() == [[1, 2], [4, 5]]
    a = x.numpy()
    for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        np.testing.assert_array_equal(F.pad(x, (2, 1), mode=mode).numpy(), np.pad(a, [(0, 0), (2, 1)], mode=name))
    assert F.pad(vkml.tensor([True], device=device), (1, 1)).tolist() == [False, True, False]
    for pads, text in (((1,), "pairs"), ((1, 1, 1, 1, 1, 1), "pairs"), ((-2, -2), "cropped")):
        with pytest.raises(vkml.ShapeError, match=text):
            F.pad(x, pads)
    with pytest.raises(vkml.ShapeError, match="at most 2 in mode reflect"):
        F.pad(x, (3, 0), mode="reflect")
    with pytest.raises(vkml.ShapeError, match="mode: expected constant"):
        F.pad(x, (1, 1), mode="mirror")


def test_moving_elements(device):
    x = vkml.arange(24.0, device=device).reshape(1, 4, 2, 3)
    up = nn.PixelShuffle(2)(x)
    assert up.shape == (1, 1, 4, 6) and up[0, 0, 0].tolist() == [0, 6, 1, 7, 2, 8]
    assert nn.PixelUnshuffle(2)(up).tolist() == x.tolist()
    assert nn.Unflatten(1, (2, -1))(x).shape == (1, 2, 2, 2, 3)
    columns = F.unfold(x, 2)
    assert columns.shape == (1, 16, 2)
    counts = F.fold(vkml.ones(1, 4, 2, device=device), (2, 3), 2)
    assert counts.tolist() == [[[[1, 2, 1], [1, 2, 1]]]]
    assert F.one_hot(vkml.tensor([2, 0], device=device), 4).tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]
    with pytest.raises(vkml.IndexError_, match=r"expected classes in \[0, 1\], got 0 to 2"):
        F.one_hot(vkml.tensor([2, 0], device=device), 2)


def test_dropping_whole_channels(device):
    vkml.manual_seed(11)
    for layer, shape in ((nn.Dropout1d(0.4), (8, 16, 5)), (nn.Dropout2d(0.4), (8, 16, 3, 2))):
        x = vkml.full(shape, 3.0, device=device).requires_grad_()
        y = layer(x)
        y.sum().backward()
        values = y.detach().numpy().reshape(8, 16, -1)
        assert (values == values[..., :1]).all() and set(np.unique(values)) == {0.0, np.float32(3 / 0.6)}
        assert 25 < (values[..., 0] == 0).sum() < 80
        np.testing.assert_allclose(x.grad.numpy().reshape(8, 16, -1) * 3, values, rtol=1e-6)
        assert layer.eval()(x).tolist() == x.tolist()
    y = nn.Dropout1d(1.0)(vkml.full((1, 2, 3), math.inf, device=device))
    assert y.tolist() == [[[0.0] * 3] * 2]


def test_bilinear_and_similarity(device, rng):
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((4, 3), (4, 5)))
    layer = nn.Bilinear(3, 5, 2, device=device)
    expected = np.einsum("ni,oij,nj->no", a, layer.weight.numpy(), b) + layer.bias.numpy()
    y = layer(vkml.tensor(a, device=device), vkml.tensor(b, device=device))
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-5, atol=1e-5)
    c = rng.standard_normal((4, 3)).astype(np.float32)
    cosine = (a * c).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(c, axis=1)
    similarity = nn.CosineSimilarity()(vkml.tensor(a, device=device), vkml.tensor(c, device=device))
    np.testing.assert_allclose(similarity.numpy(), cosine, rtol=1e-5, atol=1e-6)
    with pytest.raises(vkml.ShapeError, match=r"bilinear: expected \(..., 3\) and \(..., 5\)"):
        layer(vkml.ones(4, 2, device=device), vkml.ones(4, 5, device=device))


def test_losses(device):
    a, b = vkml.tensor([0.5, -3.0], device=device), vkml.tensor([0.0, 0.0], device=device)
    assert nn.L1Loss()(a, b).item() == 1.75 and nn.L1Loss("sum")(a, b).item() == 3.5
    assert nn.SmoothL1Loss(beta=2.0)(a, b).item() == pytest.approx((0.5**2 / 4 + 3 - 1) / 2)
    logs = vkml.tensor([[-0.5, -1.0], [-2.0, -0.1]], device=device)
    assert nn.NLLLoss(reduction="none")(logs, vkml.tensor([1, 1], device=device)).tolist() == pytest.approx([1.0, 0.1])
    weighted = nn.NLLLoss(weight=vkml.tensor([1.0, 3.0])).to(device)
    assert weighted(logs, vkml.tensor([0, 1], device=device)).item() == pytest.approx((0.5 + 0.3) / 4)
    chance = nn.BCELoss()(vkml.tensor([0.25, 1.0], device=device), vkml.tensor([1.0, 1.0], device=device))
    assert chance.item() == pytest.approx(-math.log(0.25) / 2)
    with pytest.raises(vkml.ShapeError, match="beta"):
        nn.SmoothL1Loss(beta=-1.0)
