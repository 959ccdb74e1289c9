"""vkml.nn.KimiDeltaAttention and ShortConvolution: formulas in float64, caches in every split, gates at their ends."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from helpers import tensor, to_numpy
from kda_reference import forward, onnx_cases

import vkml
from vkml import nn

KINDS = {
    "softplus": {},
    "sigmoid": {"num_v_heads": 4, "head_v_dim": 6, "gate": "sigmoid", "conv_bias": True, "beta_scale": 2.0},
}  # fmt: skip


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def layer_of(kind: str, device: str, **more) -> nn.KimiDeltaAttention:
    vkml.manual_seed(3)
    return nn.KimiDeltaAttention(24, num_heads=2, head_dim=8, **KINDS[kind], **more).to(device)


def convolved(p, name, x, size):
    w = p[f"{name}.weight"]
    padded = np.concatenate([np.zeros((x.shape[0], size - 1, x.shape[2])), x], 1)
    y = sum(padded[:, i : i + x.shape[1]] * w[:, 0, i] for i in range(size)) + p.get(f"{name}.bias", 0)
    return y * sigmoid(y)


def reference(layer: nn.KimiDeltaAttention, x: np.ndarray) -> np.ndarray:
    p = {name: to_numpy(t) for name, t in layer.named_parameters()}
    B, T, _ = x.shape
    H, HV, K, V = layer.num_heads, layer.num_v_heads, layer.head_dim, layer.head_v_dim
    q, k, v = (convolved(p, f"{n}_conv1d", x @ p[f"{n}_proj.weight"].T, layer.conv_size) for n in "qkv")
    q, k, v = (y.reshape(B, T, n, -1).transpose(0, 2, 1, 3) for y, n in ((q, H), (k, H), (v, HV)))
    q, k = (y / np.sqrt((y**2).sum(-1, keepdims=True) + 1e-6) for y in (q, k))
    f = (x @ p["f_proj.0.weight"].T @ p["f_proj.1.weight"].T + p["dt_bias"]).reshape(B, T, HV, K).transpose(0, 2, 1, 3)
    a = np.exp(p["A_log"])[:, None, None]
    softplus = np.maximum(f, 0) + np.log1p(np.exp(-np.abs(f)))
    g = -a * softplus if layer.gate == "softplus" else layer.gate_lower_bound * sigmoid(a * f)
    beta = layer.beta_scale * sigmoid(x @ p["b_proj.weight"].T).transpose(0, 2, 1)
    o = forward(q, k, v, g, beta)[0].transpose(0, 2, 1, 3)
    y = o / np.sqrt((o**2).mean(-1, keepdims=True) + layer.norm_eps) * p["o_norm.weight"]
    gate = x @ p["g_proj.0.weight"].T @ p["g_proj.1.weight"].T + p["g_proj.1.bias"]
    return (y * sigmoid(gate).reshape(B, T, HV, V)).reshape(B, T, HV * V) @ p["o_proj.weight"].T


@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, device, rng):
    layer, x = layer_of(kind, device), rng.normal(size=(2, 20, 24))
    want = reference(layer, x.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(
        to_numpy(layer(tensor(x, "float32", device))), want, atol=1e-5 * np.abs(want).max(), rtol=0
    )


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_differences(kind, device, rng):
    layer, x = layer_of(kind, device), rng.normal(size=(1, 9, 24)).astype(np.float32).astype(np.float64)
    weight = rng.normal(size=x.shape).astype(np.float32)
    (layer(tensor(x, "float32", device)) * tensor(weight, "float32", device)).sum().backward()
    for name, p in layer.named_parameters():
        held, direction = to_numpy(p), rng.normal(size=p.shape)
        direction = direction.astype(np.float32).astype(np.float64)
        values = []
        for step in (2.0**-10, -(2.0**-10)):
            with vkml.no_grad():
                p.copy_(tensor(held + step * direction, "float32", device))
            values.append((reference(layer, x) * weight).sum())
            moved = (to_numpy(p) - held) / step  # as rounded
        with vkml.no_grad():
            p.copy_(tensor(held, "float32", device))
        slope, got = (values[0] - values[1]) / 2.0**-9, (to_numpy(p.grad) * moved).sum()
        assert abs(slope - got) <= 2e-3 * np.abs(to_numpy(p.grad) * moved).sum() + 1e-4, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("splits", [[20], [1] * 20, [13, 1, 1, 5], [2, 2, 16], [0, 20]])
def test_cache_in_every_split(kind, splits, device, rng):
    layer, x = layer_of(kind, device), tensor(rng.normal(size=(2, 20, 24)), "float32", device)
    with vkml.no_grad():
        whole, cache, parts, begin = to_numpy(layer(x)), layer.new_cache(2), [], 0
        for length in splits:
            parts.append(to_numpy(layer(vkml.narrow(x, 1, begin, length), cache)))
            begin += length
    assert cache.length == 20
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, atol=3e-6 * np.abs(whole).max(), rtol=0)


def test_cached_tensors_are_constants(rng):
    layer, x = layer_of("softplus", "cpu"), tensor(rng.normal(size=(1, 6, 24)))
    cache = layer.new_cache(1)
    layer(x, cache)
    layer(x, cache).sum().backward()
    assert not cache.state.requires_grad and not cache.conv_q.requires_grad


def test_sixteen_bit_model_keeps_its_decays(device, rng):
    layer = layer_of("softplus", device).bfloat16()
    assert layer.A_log.dtype == layer.dt_bias.dtype == vkml.float32 and layer.q_proj.weight.dtype == vkml.bfloat16
    x = rng.normal(size=(2, 20, 24))
    got, want = to_numpy(layer(tensor(x, "bfloat16", device))), reference(layer, x)
    assert np.linalg.norm(got - want) <= 3e-2 * np.linalg.norm(want)


def test_start_values():
    for kind in KINDS:
        layer = layer_of(kind, "cpu")
        dt = to_numpy(layer.log_decay(vkml.zeros(1, 1, 24)))
        assert (dt >= -1.7).all() and (dt <= -9e-4).all()
    assert layer.no_weight_decay()[0] is layer.A_log


@pytest.mark.parametrize("at", [100.0, -100.0])
@pytest.mark.parametrize("kind", KINDS)
def test_gates_at_their_ends(kind, at, device, rng):
    layer, x = layer_of(kind, device), tensor(rng.normal(size=(1, 70, 24)), "float32", device)
    with vkml.no_grad():
        layer.dt_bias.copy_(vkml.full(layer.dt_bias.shape, at, device=device))
    y = layer(x * 1.0)
    y.sum().backward()
    assert np.isfinite(to_numpy(y)).all()
    assert all(np.isfinite(to_numpy(p.grad)).all() for p in layer.parameters())


def test_zero_input(device):
    layer = layer_of("softplus", device)
    y = layer(vkml.zeros(1, 5, 24, device=device))
    y.sum().backward()
    assert (to_numpy(y) == 0).all() and all(np.isfinite(to_numpy(p.grad)).all() for p in layer.parameters())


def test_wrong_inputs(device):
    layer = vkml.nn.KimiDeltaAttention(8, 2, 4, device=device)
    cache = layer.new_cache(1)
    with pytest.raises(vkml.ShapeError, match=r"KimiDeltaAttention: x: expected shape \(B, T, 8\), got \(3, 8\)"):
        layer(vkml.zeros(3, 8, device=device))
    with pytest.raises(
        vkml.ShapeError, match=r"KimiDeltaAttention: cache: expected a state of shape \(2, 2, 4, 4\), got"
    ):
        layer(vkml.zeros(2, 1, 8, device=device), cache)
    assert cache.length == 0


@pytest.mark.parametrize("tokens", [1, 3])
def test_a_wrong_cache_is_refused_before_anything_changes(device, tokens):
    layer = vkml.nn.KimiDeltaAttention(8, 2, 4, device=device)
    x, cache = vkml.randn((1, 5, 8), device=device), layer.new_cache(1)
    other = vkml.nn.KimiDeltaAttention(8, 2, 4, conv_size=6, device=device).new_cache(1)
    with vkml.no_grad():
        layer(x, cache)
        parts = cache.state_dict()
        for wrong, kind, text in (
            (parts, vkml.DTypeError, "expected a KdaCache, got dict"),
            (5, vkml.DTypeError, "expected a KdaCache, got int"),
            (other, vkml.ShapeError, r"expected a conv_q of shape \(1, 8, 3\), got \(1, 8, 5\)"),
            ({"conv_k": parts["conv_k"][:, :, 1:]}, vkml.ShapeError, r"expected a conv_k of shape \(1, 8, 3\), got"),
            ({"conv_v": parts["conv_v"][:, :4]}, vkml.ShapeError, r"expected a conv_v of shape \(1, 8, 3\), got"),
            ({"length": "a"}, vkml.DTypeError, "expected a length that is an int, got str"),
        ):
            if isinstance(wrong, dict) and wrong is not parts:
                wrong = vkml.nn.KdaCache(**(parts | wrong))
            before = cache.state.tolist()
            with pytest.raises(kind, match=f"^KimiDeltaAttention: cache: {text}"):
                layer(x[:, :tokens], wrong)
            assert cache.state.tolist() == before and cache.length == 5
        cache.length = np.int64(cache.length)
        layer(x[:, :tokens], cache)
        assert cache.length == 5 + tokens


def test_gradients_end_where_the_cache_begins(device):
    layer = vkml.nn.KimiDeltaAttention(8, 2, 4, device=device)
    x = vkml.randn((1, 5, 8), device=device).requires_grad_()
    cache = layer.new_cache(1)
    layer(x[:, :3], cache)
    layer(x[:, 3:], cache).sum().backward()
    got = x.grad.numpy()
    assert (got[:, :3] == 0).all() and (got[:, 3:] != 0).any()


@pytest.mark.parametrize("options", [{"gate": "tanh"}, {"num_v_heads": 3}, {"gate_lower_bound": 1.0}])
def test_refused(options):
    with pytest.raises(vkml.ShapeError, match="KimiDeltaAttention: "):
        nn.KimiDeltaAttention(24, num_heads=2, head_dim=8, **options)


def test_onnx_causal_convolution(device):
    cases = onnx_cases("CausalConvWithState")
    assert len(cases) == 13
    for name, case in cases.items():
        node = case.model.graph.node[0]
        given = dict(zip((n for n in node.input if n), case.data_sets[0][0], strict=True))
        attributes = {a.name: a.s.decode() or a.i for a in node.attribute}
        x, w = given["input"], given["weight"]
        dtype = "float16" if x.dtype == np.float16 else "float32"
        activation = attributes.get("activation", "none")
        layer = nn.ShortConvolution(
            w.shape[0], w.shape[2], "bias" in given, "silu" if activation in ("silu", "swish") else None
        )
        layer.weight = nn.Parameter(tensor(w, dtype))
        if "bias" in given:
            layer.bias = nn.Parameter(tensor(given["bias"], dtype))
        layer.to(device)
        tail = tensor(given["past_state"], dtype, device) if "past_state" in given else None
        columns = tensor(x.transpose(0, 2, 1), dtype, device)
        bound = 2e-3 if dtype == "float16" else 1e-6
        got = to_numpy(layer(columns, tail)).transpose(0, 2, 1)
        np.testing.assert_allclose(got, case.data_sets[0][1][0], atol=bound, rtol=bound, err_msg=name)
        if len(case.data_sets[0][1]) > 1:
            np.testing.assert_allclose(
                to_numpy(layer.next_tail(columns, tail)), case.data_sets[0][1][1], atol=1e-6, err_msg=name
            )


# Copies, pickles and files of a cache ---------------------------------------------------------------------------------


def saved_and_loaded(cache, tmp_path, device):
    vkml.save(tmp_path / "cache.safetensors", {"cache": cache.state_dict()})
    return nn.KdaCache(**vkml.load(tmp_path / "cache.safetensors", device=device)["cache"])


COPIES = {
    "copy": lambda cache, *_: copy.copy(cache),
    "deepcopy": lambda cache, *_: copy.deepcopy(cache),
    "pickle": lambda cache, *_: pickle.loads(pickle.dumps(cache)),
    "file": saved_and_loaded,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_copy_of_a_cache_goes_on_by_itself(way, dtype, device, rng, tmp_path):
    layer = layer_of("sigmoid", device).to(dtype)
    x = tensor(rng.normal(size=(2, 9, 24)), dtype, device)
    steps = [vkml.narrow(x, 1, t, 1) for t in range(4, 9)]
    with vkml.no_grad():
        alone, cache = layer.new_cache(2), layer.new_cache(2)
        for c in (alone, cache):
            layer(x[:, :4], c)
        wanted = [layer(step, alone).tolist() for step in steps]
        other = COPIES[way](cache, tmp_path, device)
        assert type(other) is nn.KdaCache and other.length == 4 and other.state.device == device
        for t in ("conv_q", "conv_k", "conv_v", "state"):
            assert getattr(other, t).dtype == getattr(cache, t).dtype
            assert getattr(other, t).data_ptr() != getattr(cache, t).data_ptr()
        for step in reversed(steps):  # decoding writes the state in place: not into the copy's
            layer(step, cache)
        assert [layer(step, other).tolist() for step in steps] == wanted
        assert other.length == 9 and cache.length == 9


def test_deepcopy_keeps_what_is_shared(rng):
    cache = layer_of("softplus", "cpu").new_cache(1)
    a, b = copy.deepcopy([cache, cache])
    assert a is b and a is not cache


def test_a_cache_prints_in_one_line(device):
    cache = layer_of("sigmoid", device).to("bfloat16").new_cache(3)
    assert (
        repr(cache)
        == f'KdaCache(length=0, batch=3, heads=4, state=8x6 float32, conv_size=4, device="{cache.state.device}")'
    )
    assert (cache == copy.copy(cache)) is False and cache == cache  # identity, as modules compare


def test_what_save_says_of_a_cache_and_a_module(tmp_path):
    layer = layer_of("softplus", "cpu")
    for value in (layer.new_cache(1), layer):
        with pytest.raises(
            vkml.DTypeError, match=r"^save: it: expected .*, got \w+, whose state_dict\(\) can be saved$"
        ):
            vkml.save(tmp_path / "it.safetensors", {"it": value})


def test_a_new_cache_wants_a_number_of_sequences() -> None:
    layer = vkml.nn.KimiDeltaAttention(32, num_heads=1, head_dim=16, device="cpu")
    for batch, got in ((vkml.ones(2, 3, 32), "Tensor"), (-1, "-1"), (True, "True"), (2.0, "float")):
        with pytest.raises(vkml.ShapeError, match=f"new_cache: batch: expected a number of sequences, got {got}$"):
            layer.new_cache(batch)
    assert layer.new_cache(np.int64(3)).state.shape[0] == 3
