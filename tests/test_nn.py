"""Module and the layers: parameters, state, text, values against NumPy. Against PyTorch: tests/nn."""

import copy
import pickle

import numpy as np
import pytest

import vkml
from vkml import nn


def net(device=None):
    return nn.Sequential(
        nn.Linear(4, 8, device=device), nn.ReLU(), nn.Sequential(nn.Linear(8, 3, device=device), nn.Dropout(0.5))
    )


def test_names_and_order():
    n = net()
    assert (
        [k for k, _ in n.named_parameters()] == ["0.weight", "0.bias", "2.0.weight", "2.0.bias"] == list(n.state_dict())
    )
    assert [k for k, _ in n.named_modules()] == ["", "0", "1", "2", "2.0", "2.1"]
    assert (
        len(list(n.children())) == 3
        and len(list(n.modules())) == 6
        and [k for k, _ in n.named_children()] == ["0", "1", "2"]
    )
    assert all(p.requires_grad and p.is_leaf for p in n.parameters())
    assert next(n.parameters()) is n[0].weight is next(n.parameters())


def test_attributes():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = vkml.ones(2)  # a tensor becomes a parameter
            self.p = nn.Parameter(vkml.zeros(1), requires_grad=False)
            self.register_buffer("b", vkml.zeros(3))
            self.register_buffer("scratch", vkml.zeros(1), persistent=False)
            self.register_parameter("none", None)
            self.child = nn.Identity()
            self.number = 5

    m = M()
    assert (
        [k for k, _ in m.named_parameters()] == ["w", "p"]
        and isinstance(m.w, nn.Parameter)
        and m.w.requires_grad
        and not m.p.requires_grad
    )
    assert [k for k, _ in m.named_buffers()] == ["b", "scratch"] and m.none is None and m.number == 5
    assert list(m.state_dict()) == ["w", "p", "b"]
    m.b = vkml.ones(3)
    assert m.state_dict()["b"].tolist() == [1, 1, 1] and not m.b.requires_grad
    m.child = 3
    assert m.child == 3 and list(m.children()) == []
    del m.w
    assert not hasattr(m, "w") and "p" in dir(m)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        m.nothing  # noqa: B018
    with pytest.raises(vkml.Error, match="without a dot"):
        m.register_buffer("a.b", vkml.zeros(1))

    class Early(nn.Module):
        def __init__(self):
            self.w = vkml.ones(1)

    with pytest.raises(vkml.Error, match="super"):
        Early()
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)


def test_shared_parameters_count_once():
    a = nn.Linear(3, 3)
    both = nn.Sequential(a, a, nn.Linear(3, 3))
    both[2].weight = a.weight
    assert len(list(both.parameters())) == 3 and both[2].weight is a.weight


def test_modes_and_gradients():
    n = net()
    assert n.training and n.eval() is n and not n[2][1].training and n.train()[2][1].training
    n(vkml.ones(2, 4)).sum().backward()
    assert all(p.grad is not None for p in n.parameters())
    n.zero_grad(set_to_none=False)
    assert n[0].weight.grad.abs().sum().item() == 0
    n.zero_grad()
    assert all(p.grad is None for p in n.parameters())
    assert not any(p.requires_grad for p in n.requires_grad_(False).parameters())
    seen = []
    n.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Dropout", "Sequential", "Sequential"]


def test_repr():
    text = repr(net())
    assert text.startswith(
        "Sequential(\n  (0): Linear(in_features=4, out_features=8, bias=True)\n  (1): ReLU()\n"
        "  (2): Sequential(\n    (0): Linear("
    )
    assert text.endswith("(1): Dropout(p=0.5)\n  )\n)")


def test_state_dict():
    a, b = net(), net()
    b.load_state_dict(a.state_dict())
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert x.tolist() == y.tolist() and x.data_ptr() != y.data_ptr()
    b.load_state_dict({k: v.numpy() for k, v in a.state_dict().items()})
    part = {"0.weight": np.ones((8, 4)), "other": np.ones(1)}
    with pytest.raises(vkml.ShapeError, match=r"missing \['0.bias', .*unexpected \['other'\]"):
        b.load_state_dict(part)
    found = b.load_state_dict(part, strict=False)
    assert found.unexpected_keys == ["other"] and len(found.missing_keys) == 3 and b[0].weight.tolist() == [[1] * 4] * 8
    before = b[0].bias.tolist()
    with pytest.raises(vkml.ShapeError, match=r"load_state_dict: 2.0.bias: expected shape \(3,\), got \(4,\)"):
        b.load_state_dict({**a.state_dict(), "0.bias": np.full(8, 9.0), "2.0.bias": np.ones(4)})
    assert b[0].bias.tolist() == before


def test_to(device):
    n = net()
    weight = n[0].weight
    assert n.to(device) is n and n[0].weight is weight and weight.device == device and weight.requires_grad
    n(vkml.ones(1, 4, device=device)).sum().backward()
    n.half()
    assert weight.dtype == vkml.float16 and weight.grad.dtype == vkml.float16
    n.to("cpu", vkml.float32)
    assert weight.device == "cpu" and weight.dtype == vkml.float32 == weight.grad.dtype
    with pytest.raises(vkml.DTypeError, match="floating-point"):
        n.to("int32")


def test_copies_and_pickles():
    n = net()
    for other in (copy.deepcopy(n), pickle.loads(pickle.dumps(n))):
        assert [k for k, _ in other.named_parameters()] == [k for k, _ in n.named_parameters()]
        assert other[0].weight.tolist() == n[0].weight.tolist() and other[0].weight.data_ptr() != n[0].weight.data_ptr()
        assert isinstance(other[0].weight, nn.Parameter)


def test_containers():
    s = net()
    assert len(s) == 3 and isinstance(s[-1], nn.Sequential) and isinstance(s[:2], nn.Sequential) and len(s[:2]) == 2
    with pytest.raises(vkml.IndexError_):
        s[3]
    l = nn.ModuleList([nn.Identity()])
    assert (
        l.append(nn.ReLU()) is l
        and len(l.extend([nn.Tanh()])) == 3
        and [type(m).__name__ for m in l] == ["Identity", "ReLU", "Tanh"]
    )
    with pytest.raises(vkml.DTypeError, match="expected a Module"):
        l.append(3)
    d = nn.ModuleDict({"a": nn.Linear(1, 1)})
    d["b"] = nn.ReLU()
    assert (
        list(d) == ["a", "b"]
        and "a" in d
        and len(d) == 2
        and [k for k, _ in d.named_parameters()] == ["a.weight", "a.bias"]
    )
    del d["a"]
    assert list(d.keys()) == ["b"]
    named = nn.Sequential({"first": nn.Identity(), "second": nn.ReLU()})
    assert isinstance(named[1], nn.ReLU) and isinstance(named.first, nn.Identity)


def test_linear(device, rng):
    layer = nn.Linear(5, 3, device=device)
    x = rng.standard_normal((2, 4, 5)).astype(np.float32)
    expected = x.astype(np.float64) @ layer.weight.numpy().T.astype(np.float64) + layer.bias.numpy()
    np.testing.assert_allclose(layer(vkml.tensor(x, device=device)).numpy(), expected, rtol=1e-5, atol=1e-5)
    bound = 1 / np.sqrt(5)
    assert np.abs(layer.weight.numpy()).max() <= bound and np.abs(layer.bias.numpy()).max() <= bound
    assert nn.Linear(2, 2, bias=False).bias is None and nn.Linear(2, 2, dtype="float16").weight.dtype == vkml.float16


def test_initial_values_follow_the_seed():
    vkml.manual_seed(3)
    a = nn.Linear(4, 4).weight.tolist()
    b = nn.Linear(4, 4).weight.tolist()
    vkml.manual_seed(3)
    assert nn.Linear(4, 4).weight.tolist() == a != b


def test_dropout(device):
    x = vkml.ones(1000, device=device)
    own = nn.Dropout(0.3, seed=123)
    first, second = own(x).tolist(), own(x).tolist()
    assert first != second and first == nn.Dropout(0.3, seed=123)(x).tolist()
    assert set(np.unique(first)) == {0.0, np.float32(1 / 0.7)} and 200 < first.count(0.0) < 400
    a, b = nn.Dropout(0.5), nn.Dropout(0.5)
    assert a(x).tolist() != b(x).tolist()
    assert a.eval()(x) is x and nn.Dropout(0.0)(x) is x
    with pytest.raises(ValueError, match="Dropout: p"):
        nn.Dropout(1.5)


def test_layers_that_move_data():
    x = vkml.ones(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12) and nn.Flatten(0, 1)(x).shape == (6, 4) and nn.Identity(1, a=2)(x) is x


def test_init():
    t = vkml.zeros(200, 100)
    assert nn.init.uniform_(t, -1, 1) is t and -1 <= t.numpy().min() < -0.9 and 0.9 < t.numpy().max() <= 1
    assert np.std(nn.init.normal_(t, 2.0, 3.0).numpy()) == pytest.approx(3, rel=0.05) and np.mean(
        t.numpy()
    ) == pytest.approx(2, abs=0.1)
    assert np.abs(nn.init.xavier_uniform_(t).numpy()).max() <= np.sqrt(6 / 300)
    assert np.std(nn.init.kaiming_normal_(t, nonlinearity="relu").numpy()) == pytest.approx(np.sqrt(2 / 100), rel=0.05)
    assert np.abs(nn.init.kaiming_uniform_(t, a=5**0.5).numpy()).max() <= 1 / np.sqrt(100)
    assert nn.init.ones_(t).numpy().min() == 1 and nn.init.zeros_(t).numpy().max() == 0
    with pytest.raises(ValueError, match="rank >= 2"):
        nn.init.xavier_uniform_(vkml.zeros(3))


def test_embedding(device):
    e = nn.Embedding(5, 3, padding_idx=-5, device=device)
    assert e.padding_idx == 0 and e.weight.tolist()[0] == [0, 0, 0]
    y = e(vkml.tensor([[1, 0], [1, 4]], device=device))
    assert y.shape == (2, 2, 3) and y.tolist()[0][0] == e.weight.tolist()[1]
    y.sum().backward()
    assert e.weight.grad.tolist() == [[0] * 3, [2] * 3, [0] * 3, [0] * 3, [1] * 3]
    table = vkml.arange(6.0, device=device).reshape(3, 2)
    frozen = nn.Embedding.from_pretrained(table)
    assert frozen(vkml.tensor([2], device=device)).tolist() == [[4, 5]] and not frozen.weight.requires_grad
    assert frozen.weight.data_ptr() == table.data_ptr()
    assert nn.Embedding.from_pretrained(table, freeze=False, padding_idx=-1).padding_idx == 2
    with pytest.raises(ValueError, match="expected rank 2"):
        nn.Embedding.from_pretrained(table[0])


def test_norms(device, rng):
    x = rng.standard_normal((4, 6)).astype(np.float32)
    t = vkml.tensor(x, device=device)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.LayerNorm(6, device=device)(t).numpy(), expected, rtol=1e-4, atol=1e-5)
    rms = x / np.sqrt((x**2).mean(-1, keepdims=True) + 2**-23)
    np.testing.assert_allclose(nn.RMSNorm(6, device=device)(t).numpy(), rms, rtol=1e-4, atol=1e-5)
    assert [k for k, _ in nn.RMSNorm(6).named_parameters()] == ["weight"]
    with pytest.raises(ValueError, match=r"LayerNorm: expected an input that ends in \(6,\), got \(4, 5\)"):
        nn.LayerNorm(6)(vkml.ones(4, 5))


def test_batch_norm(device):
    b = nn.BatchNorm2d(1, device=device)
    x = vkml.tensor(np.array([1.0, 3.0]).reshape(2, 1, 1, 1), device=device)
    np.testing.assert_allclose(b(x).numpy().ravel(), np.array([-1, 1]) / np.sqrt(1 + 1e-5), rtol=1e-6)
    assert (
        b.running_mean.item() == pytest.approx(0.2)
        and b.running_var.item() == pytest.approx(1.1)
        and b.num_batches_tracked.item() == 1
    )
    with pytest.raises(ValueError, match=r"more than one value per channel in training, got \(1, 1, 1, 1\)"):
        b(vkml.ones(1, 1, 1, 1, device=device))
    assert b.running_mean.item() == pytest.approx(0.2) and list(b.state_dict()) == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
        "num_batches_tracked",
    ]


def test_conv_transpose(device):
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2, bias=False, device=device)
    nn.init.ones_(layer.weight)
    y = layer(vkml.ones(1, 1, 2, 2, device=device))
    assert y.shape == (1, 1, 5, 5) and y.sum().item() == 36 and y[0, 0, 2, 2].item() == 4


def test_positional_encoding(device):
    pe = nn.PositionalEncoding(4, max_len=10, device=device)
    y = pe(vkml.zeros(1, 3, 4, device=device)).numpy()[0]
    angles = np.arange(3)[:, None] / 10000.0 ** (np.array([0, 2]) / 4)
    np.testing.assert_allclose(y[:, 0::2], np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(y[:, 1::2], np.cos(angles), atol=1e-6)
    assert list(pe.state_dict()) == ["pe"]
    with pytest.raises(ValueError, match="even"):
        nn.PositionalEncoding(3)


def test_attention(device, rng):
    q = rng.standard_normal((2, 5, 4)).astype(np.float32)
    t = vkml.tensor(q, device=device)
    layer = nn.MultiheadAttention(4, 2, device=device)
    assert [k for k, _ in layer.named_parameters()] == [
        "in_proj_weight",
        "in_proj_bias",
        "out_proj.weight",
        "out_proj.bias",
    ]
    causal = layer(t, is_causal=True).numpy()
    mask = np.triu(np.ones((5, 5), bool), 1)
    np.testing.assert_allclose(
        layer(t, attn_mask=vkml.tensor(mask, device=device)).numpy(), causal, rtol=1e-5, atol=1e-6
    )
    added = np.where(mask, -np.inf, 0).astype(np.float32)
    np.testing.assert_allclose(
        layer(t, attn_mask=vkml.tensor(added, device=device)).numpy(), causal, rtol=1e-5, atol=1e-6
    )
    blocked = layer(t, attn_mask=vkml.tensor(np.ones((5, 5), bool), device=device)).numpy()
    np.testing.assert_allclose(blocked, np.broadcast_to(layer.out_proj.bias.numpy(), blocked.shape), atol=1e-7)
    with pytest.raises(ValueError, match="attn_mask or is_causal"):
        layer(t, attn_mask=vkml.tensor(mask, device=device), is_causal=True)
    with pytest.raises(ValueError, match="num_heads"):
        nn.MultiheadAttention(4, 3)


def test_losses(device):
    logits, target = vkml.tensor([[1.0, 2.0, 3.0]], device=device, requires_grad=True), vkml.tensor([2], device=device)
    loss = nn.CrossEntropyLoss()(logits, target)
    assert loss.item() == pytest.approx(0.4076059, rel=1e-5)
    loss.backward()
    np.testing.assert_allclose(logits.grad.numpy(), [[0.0900306, 0.2447285, -0.3347590]], rtol=1e-5)
    assert nn.CrossEntropyLoss(reduction=vkml.Reduction.sum)(logits, target).item() == pytest.approx(
        0.4076059, rel=1e-5
    )
    assert nn.MSELoss()(vkml.tensor([1.0, 2.0], device=device), vkml.tensor([0.0, 0.0], device=device)).item() == 2.5
    with pytest.raises(ValueError, match="reduction"):
        nn.MSELoss("average")
