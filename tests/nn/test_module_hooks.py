"""Hooks, look-ups by dotted name, and what state dicts say when they do not fit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import vkml
from vkml import nn


def double_inputs(module, args):
    return tuple(a * 2 for a in args)


def test_forward_hooks_see_and_replace() -> None:
    layer, x, seen = nn.Identity(), vkml.tensor([1.0, 2.0]), []
    with layer.register_forward_hook(lambda m, args, y: seen.append((m, args, y))):
        assert layer(x) is x
    assert seen == [(layer, (x,), x)]
    handle = layer.register_forward_hook(lambda m, args, y: y + 1)
    pre = layer.register_forward_pre_hook(lambda m, args: args[0] * 10)  # not a tuple: one argument
    assert layer(x).tolist() == [11.0, 21.0] and layer.forward(x) is x
    pre.remove()
    assert layer(x).tolist() == [2.0, 3.0]
    handle.remove()
    handle.remove()  # twice is once
    assert layer(x) is x and len(seen) == 1


def test_order_of_hooks() -> None:
    layer, order = nn.Identity(), []
    layer.register_forward_hook(lambda *_: order.append("first"))
    layer.register_forward_hook(lambda *_: order.append("second"))
    layer.register_forward_hook(lambda *_: order.append("before both"), prepend=True)
    layer.register_forward_pre_hook(lambda *_: order.append("forward begins"))
    layer(vkml.ones(1))
    assert order == ["forward begins", "before both", "first", "second"]


def test_hooks_with_keywords() -> None:
    class Scale(nn.Module):
        def forward(self, x, factor=1.0):
            return x * factor

    scale, seen = Scale(), []
    scale.register_forward_pre_hook(lambda m, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True)
    scale.register_forward_hook(lambda m, args, kwargs, y: seen.append(kwargs), with_kwargs=True)
    assert scale(vkml.ones(1), factor=2.0).tolist() == [3.0] and seen == [{"factor": 3.0}]


def test_hooks_reach_sub_modules_gradients_and_copies(device) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)).to(device)
    shapes = []
    net[1].register_forward_hook(lambda m, args, y: shapes.append(y.shape))
    net[0].register_forward_pre_hook(double_inputs)
    x = vkml.ones(4, 3, device=device)
    y = net(x)
    assert shapes == [(4, 3)]
    y.sum().backward()
    expected = net[0].weight.grad.tolist()
    clean = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)).to(device)
    clean.load_state_dict(net.state_dict())
    clean(x * 2).sum().backward()
    assert clean[0].weight.grad.tolist() == expected
    assert copy.deepcopy(net[0])(x).tolist() == net[0](x).tolist() != clean[0](x).tolist()
    assert pickle.loads(pickle.dumps(net[0]))(x).tolist() == net[0](x).tolist()


def test_an_exception_in_a_hook_goes_through() -> None:
    layer = nn.Identity()
    layer.register_forward_pre_hook(lambda m, args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        layer(vkml.ones(1))


def test_dotted_names() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.BatchNorm1d(2))
    assert net.get_submodule("0.0") is net[0][0] and net.get_submodule("") is net
    assert net.get_parameter("0.0.weight") is net[0][0].weight
    assert net.get_buffer("1.running_mean").tolist() == [0, 0]
    for call, name in (
        (net.get_submodule, "0.3"),
        (net.get_parameter, "0.0.nothing"),
        (net.get_parameter, "1.running_mean"),
        (net.get_buffer, "0.0.weight"),
    ):
        with pytest.raises(AttributeError, match=name.replace(".", r"\.")):
            call(name)


def test_modules_by_name() -> None:
    net = nn.Module()
    net.register_module("first", nn.Linear(2, 2))
    net.add_module("none", None)
    assert net.none is None and [k for k, _ in net.named_children()] == ["first"]
    assert [k for k, _ in net.named_parameters(prefix="net")] == ["net.first.weight", "net.first.bias"]
    with pytest.raises(vkml.DTypeError, match="expected a Module, got int"):
        net.add_module("number", 3)
    with pytest.raises(vkml.ShapeError, match="without a dot"):
        net.add_module("a.b", nn.Identity())
    with pytest.raises(vkml.ShapeError, match="expected a new name"):
        net.add_module("forward", nn.Identity())


def test_buffers_that_are_not_saved(device) -> None:
    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", vkml.zeros(2))
            self.register_buffer("scratch", vkml.zeros(2), persistent=False)
            self.register_buffer("later", None)

    module = Counted().to(device)
    assert list(module.state_dict()) == ["kept"] and module.scratch.device == device
    assert [k for k, _ in module.named_buffers()] == ["kept", "scratch"]
    module.later = vkml.ones(3)
    assert list(module.state_dict()) == ["kept", "later"]
    module.register_buffer("kept", vkml.ones(2), persistent=False)
    assert list(module.state_dict()) == ["later"]
    assert module.half().scratch.dtype == vkml.float16


def test_state_dicts_that_do_not_fit() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    good = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    before = {k: v.tolist() for k, v in net.state_dict().items()}
    less = {k: v for k, v in good.items() if k != "1.running_var"}
    with pytest.raises(vkml.ShapeError, match=r"missing \['1.running_var'\] and unexpected \[\]"):
        net.load_state_dict(less)
    with pytest.raises(vkml.ShapeError, match=r"missing \[\] and unexpected \['2.weight'\]"):
        net.load_state_dict({**good, "2.weight": np.ones(1)})
    with pytest.raises(vkml.ShapeError, match=r"0.bias: expected shape \(3,\), got \(1, 3\)"):
        net.load_state_dict({**good, "0.weight": np.ones((3, 2)), "0.bias": np.ones((1, 3))}, strict=False)
    assert {k: v.tolist() for k, v in net.state_dict().items()} == before  # nothing was written
    assert net.load_state_dict(less, strict=False) == (["1.running_var"], [])
    assert net.load_state_dict(good) == ([], [])


def test_a_state_dict_of_another_dtype_and_device(device) -> None:
    source, target = nn.Linear(3, 2).half(), nn.Linear(3, 2).to(device)
    target.load_state_dict(source.state_dict())
    assert target.weight.dtype == vkml.float32 and target.weight.device == device
    assert target.weight.tolist() == source.weight.float().tolist()
    prefixed = target.state_dict(prefix="net.")
    assert list(prefixed) == ["net.weight", "net.bias"]


def test_lists_of_modules_and_parameters() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Linear(1, 1)])
    layers.insert(1, nn.Sigmoid())
    assert [type(m).__name__ for m in layers] == ["ReLU", "Sigmoid", "Tanh", "Linear"]
    del layers[0]
    assert [k for k, _ in layers.named_parameters()] == ["2.weight", "2.bias"]
    weights = nn.ParameterList([vkml.ones(2)])
    weights.append(vkml.zeros(3))
    assert len(weights) == 2 and weights[-1].shape == (3,) and all(p.requires_grad for p in weights)
    weights[0] = vkml.full((4,), 2.0)
    assert weights.state_dict()["0"].tolist() == [2] * 4 and [p.shape for p in weights] == [(4,), (3,)]
    with pytest.raises(vkml.IndexError_, match=r"expected an index in \[-2, 1\], got 2"):
        weights[2]
    named = nn.ModuleDict({"a": nn.ReLU()})
    named.update({"b": nn.Tanh()})
    assert isinstance(named.pop("a"), nn.ReLU) and list(named.keys()) == ["b"]
    named.clear()
    assert len(named) == 0


def test_copies_in_an_encoder_do_not_drop_alike() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.5, seed=5)
    stack = nn.TransformerEncoder(layer, 3)
    seeds = [m.seed for m in stack.modules() if isinstance(m, nn.Dropout)]
    assert len(seeds) == len(set(seeds)) == 9
    assert stack.layers[0].linear1.weight.data_ptr() != stack.layers[1].linear1.weight.data_ptr()
    assert stack.layers[0].linear1.weight.tolist() == stack.layers[1].linear1.weight.tolist()
    with pytest.raises(vkml.ShapeError, match="num_layers"):
        nn.TransformerEncoder(layer, 0)


def test_repr_shows_what_was_asked_for() -> None:
    shown = {
        nn.LSTM(3, 4, num_layers=2, bidirectional=True): "LSTM(3, 4, num_layers=2, bidirectional=True)",
        nn.Conv2d(
            3, 4, 3, dilation=2
        ): "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=(0, 0), dilation=(2, 2))",
        nn.Conv1d(4, 4, 3, groups=2): "Conv1d(4, 4, kernel_size=(3,), stride=(1,), padding=(0,), groups=2)",
        nn.AdaptiveAvgPool2d((1, 2)): "AdaptiveAvgPool2d(output_size=(1, 2))",
        nn.PReLU(3): "PReLU(num_parameters=3)",
        nn.ELU(): "ELU(alpha=1.0)",
    }
    for module, text in shown.items():
        assert repr(module) == text
