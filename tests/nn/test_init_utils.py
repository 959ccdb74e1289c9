"""vkml.nn.init and vkml.nn.utils: distributions, structure, and the same numbers where PyTorch draws none."""

from __future__ import annotations

import math

import numpy as np
import pytest

import vkml
from vkml import nn


def test_trunc_normal(device):
    t = vkml.empty(300, 200, device=device)
    assert nn.init.trunc_normal_(t, mean=1.0, std=2.0, a=-1.0, b=2.0) is t
    x = t.numpy().astype(np.float64)
    assert -1 <= x.min() < -0.99 and 1.99 < x.max() <= 2
    # The cut normal's mean and variance, with alpha = -1 and beta = 1/2.
    density = [math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) for z in (-1, 0.5)]
    share = 0.5 * (math.erf(0.5 / math.sqrt(2)) - math.erf(-1 / math.sqrt(2)))
    shift = (density[0] - density[1]) / share
    variance = 4 * (1 + (-1 * density[0] - 0.5 * density[1]) / share - shift**2)
    assert x.mean() == pytest.approx(1 + 2 * shift, abs=0.01) and x.var() == pytest.approx(variance, rel=0.02)
    far = nn.init.trunc_normal_(vkml.empty(1000), std=0.02, a=-2, b=2).numpy()
    assert far.std() == pytest.approx(0.02, rel=0.1)
    for bad in ({"a": 1.0, "b": 1.0}, {"std": 0.0}, {"a": 50.0, "b": 60.0}):
        with pytest.raises(vkml.ShapeError, match="trunc_normal_"):
            nn.init.trunc_normal_(t, **bad)


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal(shape, device):
    w = nn.init.orthogonal_(vkml.empty(*shape, device=device), gain=2.0).numpy().reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(min(w.shape)), atol=1e-5)
    with pytest.raises(vkml.ShapeError, match="rank >= 2"):
        nn.init.orthogonal_(vkml.empty(3))


def test_identities(device):
    assert nn.init.eye_(vkml.empty(2, 3, device=device)).tolist() == [[1, 0, 0], [0, 1, 0]]
    layer = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False, device=device)
    nn.init.dirac_(layer.weight, groups=2)
    x = vkml.randn((1, 4, 5, 5), device=device)
    assert layer(x).tolist() == x.tolist()
    with pytest.raises(vkml.ShapeError, match="eye_: expected rank 2"):
        nn.init.eye_(vkml.empty(3))
    with pytest.raises(vkml.ShapeError, match="dirac_"):
        nn.init.dirac_(vkml.empty(3, 3))


def test_the_same_seed_gives_the_same_layers():
    made = []
    for _ in range(2):
        vkml.manual_seed(4)
        layers = (nn.LSTM(3, 4, 2, bidirectional=True), nn.GRUCell(3, 4), nn.Conv3d(2, 3, 2), nn.Bilinear(2, 3, 4))
        made.append([p.tolist() for layer in layers for p in layer.parameters()])
    assert made[0] == made[1]
    bound = 1 / math.sqrt(4)
    largest = max(np.abs(p.numpy()).max() for p in nn.LSTM(3, 4).parameters())
    assert 0.8 * bound < largest <= bound


def test_parameters_as_a_vector(device):
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)).to(device)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (11,) and vector.device == device and vector.requires_grad
    np.testing.assert_array_equal(
        vector.detach().numpy(), np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])
    )
    before = [p.tolist() for p in net.parameters()]
    nn.utils.vector_to_parameters(vector * 2, net.parameters())
    assert [p.tolist() for p in net.parameters()] == [(np.array(b, np.float32) * 2).tolist() for b in before]
    with pytest.raises(vkml.ShapeError, match=r"expected shape \(11,\), got \(10,\)"):
        nn.utils.vector_to_parameters(vector[:10], net.parameters())
    with pytest.raises(vkml.ShapeError, match="at least one parameter"):
        nn.utils.parameters_to_vector([])


def test_total_norms(device):
    tensors = [vkml.tensor([3.0, 0.0], device=device), vkml.tensor([[-4.0]], device=device)]
    assert nn.utils.get_total_norm(tensors).item() == 5
    assert nn.utils.get_total_norm(tensors, 1.0).item() == 7
    assert nn.utils.get_total_norm(tensors, math.inf).item() == 4
    assert nn.utils.get_total_norm([]).item() == 0


@pytest.mark.torch
def test_against_torch():
    torch = pytest.importorskip("torch")
    ours, theirs = vkml.empty(4, 2, 3), torch.empty(4, 2, 3)
    nn.init.dirac_(ours, 2), torch.nn.init.dirac_(theirs, 2)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    for name, param in (("leaky_relu", 0.2), ("tanh", None), ("relu", None), ("selu", None), ("conv2d", None)):
        assert nn.init.calculate_gain(name, param) == pytest.approx(torch.nn.init.calculate_gain(name, param))
    for name in ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_"):
        a, b = vkml.empty(400, 100), torch.empty(400, 100)
        getattr(nn.init, name)(a), getattr(torch.nn.init, name)(b)
        assert float(a.numpy().std()) == pytest.approx(float(b.std()), rel=0.02), name
