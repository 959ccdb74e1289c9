"""Values of composed losses, resampling and transformer stacks in NumPy, for where PyTorch is not installed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import vkml
from vkml import nn

F = nn.functional


def tensors(device, *arrays):
    return [vkml.tensor(np.asarray(a, np.float32), device=device) for a in arrays]


def test_losses_of_pairs(device, rng):
    a, b, c = rng.standard_normal((3, 6, 5)).astype(np.float32)
    sign = np.array([1, -1, 1, 1, -1, -1], np.float32)
    ta, tb, tc, ts = tensors(device, a, b, c, sign)
    x, y = a[:, 0], b[:, 0]
    ranked = np.maximum(0, -sign * (x - y) + 0.5)
    assert nn.MarginRankingLoss(0.5)(ta[:, 0], tb[:, 0], ts).item() == pytest.approx(ranked.mean(), rel=1e-5)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    expected = np.where(sign > 0, 1 - cosine, np.maximum(0, cosine - 0.1))
    got = nn.CosineEmbeddingLoss(0.1, reduction="none")(ta, tb, ts)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-6)
    near, far = np.linalg.norm(a - b + 1e-6, axis=1), np.linalg.norm(a - c + 1e-6, axis=1)
    swapped = np.minimum(far, np.linalg.norm(b - c + 1e-6, axis=1))
    for swap, other in ((False, far), (True, swapped)):
        loss = nn.TripletMarginLoss(swap=swap, reduction="sum")(ta, tb, tc).item()
        assert loss == pytest.approx(np.maximum(0, near - other + 1).sum(), rel=1e-5)


def test_losses_of_signs_and_counts(device, rng):
    x = rng.standard_normal((4, 5)).astype(np.float32)
    sign = np.where(rng.uniform(size=(4, 5)) < 0.5, -1, 1).astype(np.float32)
    count = rng.integers(0, 5, (4, 5)).astype(np.float32)
    tx, ts, tn = tensors(device, x, sign, count)
    assert nn.SoftMarginLoss()(tx, ts).item() == pytest.approx(np.log1p(np.exp(-sign * x)).mean(), rel=1e-5)
    hinge = np.where(sign == 1, x, np.maximum(0, 1 - x)).mean()
    assert nn.HingeEmbeddingLoss()(tx, ts).item() == pytest.approx(hinge, rel=1e-5)
    assert nn.PoissonNLLLoss()(tx, tn).item() == pytest.approx((np.exp(x) - count * x).mean(), rel=1e-5)
    safe = np.maximum(count, 1)
    stirling = np.where(count > 1, safe * np.log(safe) - safe + 0.5 * np.log(2 * math.pi * safe), 0)
    full = nn.PoissonNLLLoss(full=True, reduction="none")(tx, tn)
    np.testing.assert_allclose(full.numpy(), np.exp(x) - count * x + stirling, rtol=1e-5, atol=1e-5)


def test_gaussian_loss_has_a_floor(device):
    x, target, var = tensors(device, [1.0, 1.0], [3.0, 3.0], [2.0, 0.0])
    loss = nn.GaussianNLLLoss(full=True, eps=0.5, reduction="none")(x, target, var)
    expected = [0.5 * (math.log(v) + 4 / v) + 0.5 * math.log(2 * math.pi) for v in (2.0, 0.5)]
    assert loss.tolist() == pytest.approx(expected, rel=1e-6)
    var.requires_grad_()
    nn.GaussianNLLLoss(eps=0.5, reduction="sum")(x, target, var).backward()
    assert var.grad.tolist() == pytest.approx([0.5 * (1 / v - 4 / v**2) for v in (2.0, 0.5)], rel=1e-6)
    for loss in (F.gaussian_nll_loss, F.poisson_nll_loss):
        with pytest.raises(vkml.ShapeError, match="reduction: expected mean, sum or none, got 'average'"):
            loss(*(x, target, var)[: 3 if loss is F.gaussian_nll_loss else 2], reduction="average")


def test_shrinking(device):
    x = vkml.tensor([-2.0, -0.5, 0.0, 0.25, 3.0], device=device)
    assert nn.Hardshrink()(x).tolist() == [-2, 0, 0, 0, 3]
    assert nn.Softshrink()(x).tolist() == [-1.5, 0, 0, 0, 2.5]
    assert nn.Threshold(0.0, 9.0)(x).tolist() == [9, 9, 9, 0.25, 3]
    with pytest.raises(vkml.ShapeError, match="Softshrink: lambd"):
        nn.Softshrink(-1.0)


def resampled(x, places):
    """Linear interpolation along the last axis at fractional places."""
    low = np.clip(np.floor(places).astype(int), 0, x.shape[-1] - 1)
    high = np.minimum(low + 1, x.shape[-1] - 1)
    return x[..., low] * (1 - (places - low)) + x[..., high] * (places - low)


@pytest.mark.parametrize("size", [(3, 11), (8, 7), (1, 1)])
def test_resampling(size, device, rng):
    x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    (t,) = tensors(device, x)
    rows, columns = (np.floor(np.arange(n) * (m / n)).astype(int) for n, m in zip(size, (4, 5), strict=True))
    np.testing.assert_array_equal(nn.Upsample(size)(t).numpy(), x[:, :, rows][..., columns])
    for corners in (False, True):
        places = []
        for n, m in zip(size, (4, 5), strict=True):
            inner = np.maximum((np.arange(n) + 0.5) * m / n - 0.5, 0)
            places.append(np.linspace(0, m - 1, n) if corners and n > 1 else np.zeros(n) if corners else inner)
        expected = resampled(resampled(x, places[1]).swapaxes(-1, -2), places[0]).swapaxes(-1, -2)
        y = F.interpolate(t, size, mode="bilinear", align_corners=corners)
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_resampling_says_what_does_not_fit(device):
    x = vkml.ones(1, 1, 4, device=device)
    for options, text in (
        ({}, "expected size or scale_factor, got None and None"),
        ({"size": 2, "scale_factor": 2}, "expected size or scale_factor"),
        ({"size": 0}, "size: expected a positive int, or 1 of them, got 0"),
        ({"size": (2, 2)}, r"size: expected a positive int, or 1 of them, got \(2, 2\)"),
        ({"scale_factor": math.nan}, "scale_factor: expected a positive finite number, or 1 of them, got nan"),
        ({"scale_factor": -1}, "scale_factor: expected a positive finite number"),
        ({"scale_factor": 0.1}, r"scale_factor: expected a result that is not empty, got \(0,\)"),
        ({"size": 2, "mode": "bicubic"}, "mode: expected nearest"),
        ({"size": 2, "mode": "bilinear"}, "expected rank 4 for mode 'bilinear', got shape"),
        ({"size": 2, "align_corners": True}, "align_corners: expected a linear mode"),
        ({"size": 2, "antialias": True}, "antialias: expected False, got True"),
    ):
        with pytest.raises(vkml.ShapeError, match=text):
            F.interpolate(x, **options)
    for options in ({"size": "a"}, {"size": 2.5}, {"scale_factor": "2"}, {"scale_factor": None, "size": [None]}):
        with pytest.raises(vkml.DTypeError, match=r"interpolate: (size|scale_factor): expected a positive"):
            F.interpolate(x, **options)
    with pytest.raises(vkml.DTypeError, match="expected a floating-point tensor for mode 'linear', got int32"):
        F.interpolate(x.int(), 2, mode="linear")
    with pytest.raises(vkml.ShapeError, match=r"expected rank 3 or more for mode 'nearest', got shape \(4,\)"):
        F.interpolate(x[0, 0], 2)
    with pytest.raises(vkml.ShapeError, match=r"expected a tensor with elements, got shape \(1, 0, 4\)"):
        F.interpolate(x[:, :0], 2)


def test_gated_halves_say_what_does_not_fit(device):
    for x, dim, error, text in (
        (vkml.ones(3, 5), -1, vkml.ShapeError, r"glu: expected an even extent along dim -1, got shape \(3, 5\)"),
        (vkml.tensor(1.0), 0, vkml.ShapeError, r"glu: expected an even extent along dim 0, got shape \(\)"),
        (vkml.ones(2, 4), 2, vkml.IndexError_, r"glu: expected dim in \[-2, 1\], got 2"),
        (vkml.ones(2, 4, dtype="int32"), 0, vkml.DTypeError, "glu: expected a floating-point tensor, got int32"),
    ):
        with pytest.raises(error, match=text):
            F.glu(x.to(device), dim)


def test_layers_blame_the_input_that_does_not_fit(device):
    for layer, shape, text in (
        (nn.Linear(6, 5), (3, 4), r"Linear: expected 6 features on the last axis, got shape \(3, 4\)"),
        (nn.Conv1d(3, 5, 3), (2, 4, 8), r"Conv1d: expected 3 channels, got shape \(2, 4, 8\)"),
        (nn.Conv2d(3, 5, 3), (4, 8, 8), r"Conv2d: expected 3 channels, got shape \(4, 8, 8\)"),
        (nn.Conv2d(4, 4, 3, groups=2), (1, 6, 8, 8), "Conv2d: expected 4 channels, got shape"),
        (nn.Conv3d(3, 5, 3), (2, 4, 8, 8, 8), "Conv3d: expected 3 channels, got shape"),
        (nn.ConvTranspose1d(3, 5, 3), (2, 4, 8), "ConvTranspose1d: expected 3 channels, got shape"),
        (nn.ConvTranspose2d(3, 5, 3), (2, 4, 8, 8), "ConvTranspose2d: expected 3 channels, got shape"),
        (nn.Conv2d(3, 5, 3), (2, 3, 2, 2), "conv2d: expected a kernel no larger than the padded input"),
        (nn.Conv2d(3, 5, 3), (2, 2), "conv2d: expected rank 4"),
    ):
        with pytest.raises(vkml.ShapeError, match="^" + text):
            layer.to(device)(vkml.ones(shape, device=device))
    for layer, shape in ((nn.Linear(4, 5), (2, 4)), (nn.Conv2d(3, 5, 1), (1, 3, 2, 2))):
        name = type(layer).__name__
        with pytest.raises(vkml.DTypeError, match=f"^{name}: expected float32, the weight's dtype, got float64"):
            layer.to(device)(vkml.ones(shape, dtype="float64", device=device))


def test_a_decoder_reads_its_memory_and_not_the_future(device):
    layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, dropout=0.0)
    net = nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(8)).to(device)
    tgt, memory = vkml.randn((1, 5, 8), device=device), vkml.randn((1, 4, 8), device=device)
    y = net(tgt, memory, tgt_is_causal=True).detach().numpy()
    later = vkml.cat([tgt[:, :3], tgt[:, 3:] + 1.0], 1)
    changed = net(later, memory, tgt_is_causal=True).detach().numpy()
    np.testing.assert_allclose(changed[:, :3], y[:, :3], atol=1e-6)
    assert np.abs(changed[:, 3:] - y[:, 3:]).max() > 1e-3
    assert np.abs(net(tgt, memory + 1.0, tgt_is_causal=True).detach().numpy() - y).min(-1).max() > 1e-4
    blocked = np.zeros((5, 4), bool)
    blocked[:, 2:] = True
    masked = net(tgt, memory, memory_mask=vkml.tensor(blocked, device=device)).detach().numpy()
    np.testing.assert_allclose(masked, net(tgt, memory[:, :2]).detach().numpy(), rtol=1e-5, atol=1e-5)
    with pytest.raises(vkml.ShapeError, match="num_layers"):
        nn.TransformerDecoder(layer, 0)


def test_self_attention_of_one_tensor_and_of_three_alike(device):
    layer = nn.MultiheadAttention(8, 2, device=device)
    x = vkml.randn((2, 5, 8), device=device).requires_grad_()
    copies = [x * 1.0 for _ in range(3)]
    once, thrice = layer(x), layer(*copies)
    np.testing.assert_allclose(once.detach().numpy(), thrice.detach().numpy(), rtol=1e-5, atol=1e-6)
    grads = []
    for y in (once, thrice):
        x.grad = None
        layer.zero_grad()
        y.sum().backward()
        grads.append([x.grad.numpy(), layer.in_proj_weight.grad.numpy(), layer.in_proj_bias.grad.numpy()])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
