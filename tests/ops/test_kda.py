"""chunk_kda and kda_decode: values, closed forms, structure. Bounds are those of kda_reference.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import LAYOUTS, assert_same_bits, laid_out, tensor, to_numpy
from kda_reference import (
    HARD,
    INPUTS,
    ROUNDED,
    STATE,
    Case,
    check_backward,
    check_forward,
    close,
    close_rounded,
    forward,
)

import vkml

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "kda.json").read_text())["cases"]


def stored(x: dict) -> np.ndarray:
    return np.array(x["data"], np.float64).reshape(x["shape"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("case", GOLDEN, ids=[c["name"] for c in GOLDEN])
def test_golden(case, dtype, device):
    if dtype == "float64" and device != "cpu":
        pytest.skip("float64 is for the CPU")
    wide = "float64" if dtype == "float64" else "float32"
    kinds = [dtype] * 3 + [wide] * 3
    arrays = [stored(case["inputs"][name]) for name in INPUTS]
    inputs = [tensor(a, kind, device) for a, kind in zip(arrays, kinds, strict=True)]
    chunk, scale = case["boundary_chunk_size"], case["scale"]
    out = vkml.chunk_kda(*inputs, scale, chunk, True)
    # The file's log decays are exact in f32 but in the first case, and its results have 13 digits.
    floor = 1e-12 if dtype == "float64" and case["name"] != "exact_fractions" else 1e-6
    close_rounded(out.output, stored(case["output"]), dtype, max(ROUNDED[dtype], floor), "output")
    close(out.final_state, stored(case["final_state"]), max(STATE[dtype], floor), "final_state")
    close(out.boundaries, stored(case["boundaries"]), max(STATE[dtype], floor), "boundaries", axes=3)
    d_out = tensor(stored(case["grad_output"]), dtype, device)
    d_state = tensor(stored(case["grad_final_state"]), wide, device)
    factor = 3 if case["name"] == "correlated_keys" else 1
    strong = case["name"] in ("strong_decay", "spread_decay")
    for boundaries in (None, out.boundaries):
        grads = vkml.chunk_kda_backward(*inputs, d_out, d_state, boundaries, scale, chunk)
        for name, got in zip(INPUTS, grads, strict=True):
            rounds = name in ("query", "key", "value") and dtype in ("bfloat16", "float16")
            bound = ROUNDED[dtype] if rounds else 5e-6 * (2 if strong else 1) if name == "log_decay" else 3e-6
            bound = (
                1e-12 if dtype == "float64" and case["name"] != "exact_fractions" else bound * (1 if rounds else factor)
            )
            close_rounded(
                got,
                stored(case["gradients"][name]),
                dtype if rounds else wide,
                bound,
                f"gradient of {name}",
                3e-6 * factor,
            )


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 64])
def test_exact_fractions(chunk_size, device):
    case = GOLDEN[0]
    inputs = [tensor(stored(case["inputs"][name]), "float32", device) for name in INPUTS]
    out = vkml.chunk_kda(*inputs, case["scale"], chunk_size)
    assert np.abs(to_numpy(out.output) - stored(case["output"])).max() < 1e-6
    assert np.abs(to_numpy(out.final_state) - stored(case["final_state"])).max() < 1e-6


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("K", "V"), [(64, 128), (128, 64), (1, 5), (60, 1), (96, 100), (256, 7), (5, 256)])
def test_widths(K, V, dtype, device, rng):
    check_forward(Case(rng, B=1, H=1, HV=1, T=67, K=K, V=V, dtype=dtype), device)


def test_grouped_heads(device, rng):
    check_forward(Case(rng, B=2, H=2, HV=6, T=70, K=12, V=20), device)


@pytest.mark.parametrize("T", [1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129])
def test_lengths(T, device, rng):
    check_forward(Case(rng, B=2, H=1, HV=2, T=T, K=8, V=6), device)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 16, 32, 63, 64, 65, 128, 130, 131, 10**6, 2**62])
def test_boundaries_are_states_of_cut_runs(chunk_size, device, rng):
    case = Case(rng, B=1, H=3, T=130, K=8, V=6)
    _, _, states = case.forward()
    got = check_forward(case, device, chunk_size=chunk_size, retain_boundaries=True)
    count = -(-130 // chunk_size)
    assert got.boundaries.shape == (count, 1, 3, 8, 6)
    close(got.boundaries, np.stack([states[n * chunk_size] for n in range(count)]), 2e-6, "boundaries", axes=3)
    assert_same_bits(vkml.select(got.boundaries, 0, 0).contiguous(), case.tensors(device)[5], "boundaries[0]")
    plain = vkml.chunk_kda(*case.tensors(device))
    assert plain.boundaries is None
    if chunk_size % 64 == 0:
        assert_same_bits(plain.output, got.output, "output with and without boundaries")


@pytest.mark.parametrize("T", [1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000])
def test_lengths_and_chunk_sizes(T, device, rng):
    """The chunk size changes nothing but the states that are kept: those of a run cut there."""
    case = Case(rng, B=1, H=1, T=T, K=5, V=3)
    inputs = case.tensors(device)
    output, state, states = case.forward()
    for chunk_size in sorted({1, 2, 3, 16, 32, 63, 64, 65, 128, T, T + 1, 10**6}):
        got = vkml.chunk_kda(*inputs, None, chunk_size, True)
        close(got.output, output, 2e-6, f"output, chunks of {chunk_size}")
        close(got.final_state, state, 2e-6, f"final_state, chunks of {chunk_size}")
        close(got.boundaries, np.stack(states[:-1:chunk_size]), 2e-6, f"boundaries, chunks of {chunk_size}", axes=3)


@pytest.mark.parametrize("scale", [0.0, -0.7, 2.5])
def test_scale(scale, device, rng):
    # Slow decays: with scale 0 nothing but the state's own fading is left in its gradient, and a sum of -35 in float32
    # has an error of 2e-6 by itself.
    case = Case(rng, T=70, K=12, V=20, scale=scale, decay=(-0.05, 0))
    check_forward(case, device)
    check_backward(case, device)


def test_extents_that_differ_pairwise(device, rng):
    case = Case(rng, B=2, H=3, HV=9, T=70, K=20, V=13)
    check_forward(case, device)
    check_backward(case, device)


@pytest.mark.parametrize("shape", [{"T": 0}, {"B": 0}, {"H": 0, "HV": 0}], ids=str)
@pytest.mark.parametrize("state", [True, False])
def test_empty(shape, state, device):
    B, H, HV, T, K, V = (*({"B": 2, "H": 2, "HV": 4, "T": 5, "K": 3, "V": 2} | shape).values(),)
    q, g = vkml.ones(B, H, T, K, device=device), vkml.zeros(B, HV, T, K, device=device)
    v, beta = vkml.ones(B, HV, T, V, device=device), vkml.ones(B, HV, T, device=device)
    s = vkml.full((B, HV, K, V), 3.0, device=device) if state else None
    out = vkml.chunk_kda(q, q, v, g, beta, s, retain_boundaries=True)
    assert out.output.shape == (B, HV, T, V) and out.boundaries.shape == (-(-T // 64), B, HV, K, V)
    assert (to_numpy(out.final_state) == (3.0 if state else 0.0)).all() and out.final_state.shape == (B, HV, K, V)
    d = vkml.chunk_kda_backward(q, q, v, g, beta, s, v, vkml.full((B, HV, K, V), 2.0, device=device))
    assert [x.shape for x in d[:5]] == [q.shape, q.shape, v.shape, g.shape, beta.shape]
    assert (to_numpy(d.initial_state) == 2.0).all()


@pytest.mark.parametrize("decay", HARD)
def test_hard_decays(decay, device, rng):
    case = Case(rng, T=140, K=32, V=16, decay=HARD[decay])
    check_forward(case, device)
    # The bound of dg is 5e-6, and twice that when many log decays are below -5.
    many = (case.arrays[3] < -5).mean() >= 0.4
    check_backward(case, device, decay_factor=2 if many else 1)


@pytest.mark.parametrize(
    ("cosine", "beta", "norm"),
    [(0.9, 1, 1), (0.99, 1, 1), (1.0, 1, 1), (0.0, 2, 1), (0.99, 2, 1), (1.0, 2, 1), (0.0, 1.0, 1.3)],
)
def test_hard_keys(cosine, beta, norm, device, rng):
    case = Case(rng, T=128, K=32, V=16, decay=(-0.04, 0), beta=(beta, beta), cosine=cosine, norm=norm)
    # Three times the strict bounds for a cosine of 0.9 or more with beta near 1 or above. Keys of length 1.3 grow the
    # state.
    factor = 3 if cosine >= 0.9 or norm > 1 else 1
    check_forward(case, device, factor=factor)
    check_backward(case, device, factor=factor)


# Closed forms ---------------------------------------------------------------------------------------------------------


def test_key_equal_to_query_reads_the_value_back(device, rng):
    case = Case(rng, T=1500, K=16, V=8, decay=HARD["[-1000, 0]"])
    q, _, v, g, _, s = case.arrays
    k = q
    beta = 1 / (k**2).sum(-1)
    inputs = [tensor(x, "float32", device) for x in (q, k, v, g, beta, s)]
    close(vkml.chunk_kda(*inputs, scale=1.5).output, 1.5 * v, 2e-6, "output")


def test_no_step_only_fades(device, rng):
    case = Case(rng, T=100, K=8, V=6, beta=(0, 0), decay=(-0.1, 0))
    _q, _, _, g, _, s = case.arrays
    got = vkml.chunk_kda(*case.tensors(device))
    close(got.final_state, np.exp(g.sum(2))[..., None] * s, 2e-6, "final_state")
    d = vkml.chunk_kda_backward(*case.tensors(device), *case.gradients_in(device))
    assert (to_numpy(d.key) == 0).all() and (to_numpy(d.value) == 0).all() and (to_numpy(d.beta) != 0).any()


def test_no_value_and_no_state(device, rng):
    case = Case(rng, T=100, K=8, V=6, state=False)
    case.arrays[2] *= 0
    got = vkml.chunk_kda(*case.tensors(device))
    assert (to_numpy(got.output) == 0).all() and (to_numpy(got.final_state) == 0).all()
    d = vkml.chunk_kda_backward(*case.tensors(device), *case.gradients_in(device))
    for name in ("query", "key", "log_decay", "beta"):
        assert (to_numpy(getattr(d, name)) == 0).all(), name
    assert (to_numpy(d.value) != 0).any()


def test_zero_keys(device, rng):
    case = Case(rng, T=100, K=8, V=6)
    case.arrays[1] *= 0
    d = vkml.chunk_kda_backward(*case.tensors(device), *case.gradients_in(device))
    assert (to_numpy(d.value) == 0).all() and (to_numpy(d.beta) == 0).all() and (to_numpy(d.key) != 0).any()


def test_orthonormal_keys(device, rng):
    case = Case(rng, B=1, H=1, T=24, K=24, V=6, decay=(0, 0), state=False)
    case.arrays[1] = np.linalg.qr(rng.normal(size=(24, 24)))[0][None, None].astype(np.float32).astype(np.float64)
    got = vkml.chunk_kda(*case.tensors(device))
    _, k, v, _, beta, _ = case.arrays
    close(got.final_state, np.einsum("bhtk,bht,bhtv->bhkv", k, beta, v), 2e-6, "final_state")


@pytest.mark.parametrize("reset", [-np.inf, -1e4])
def test_reset_starts_anew(reset, device, rng):
    case = Case(rng, T=100, K=8, V=6)
    case.arrays[3][:, :, 37] = reset
    got = check_forward(case, device)
    cut = [x if x is None else x[:, :, 37:] for x in case.arrays[:5]]
    fresh = forward(*cut)[0]
    close(vkml.narrow(got.output, 2, 37, 63), fresh, 2e-6, "tokens from the reset on")
    d = vkml.chunk_kda_backward(
        *case.tensors(device), vkml.zeros(1, 2, 100, 6, device=device), case.gradients_in(device)[1]
    )
    assert all(np.isfinite(to_numpy(x)).all() for x in d)
    assert (to_numpy(d.initial_state) == 0).all() and (to_numpy(d.value)[:, :, :37] == 0).all()


@pytest.mark.parametrize("reset", [-np.inf, -1e4])
def test_reset_of_some_channels(reset, device, rng):
    case = Case(rng, T=100, K=8, V=6)
    case.arrays[3][:, :, 37, ::3] = reset
    check_forward(case, device)
    d = check_backward(case, device)
    assert (to_numpy(d.log_decay)[:, :, 37, ::3] == 0).all() and (to_numpy(d.log_decay)[:, :, 37, 1::3] != 0).any()


# Structure ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, device, rng):
    case = Case(rng, B=2, H=2, T=66, K=8, V=4)
    held = [laid_out(layout, a, "float32", device) for a in case.arrays]
    case.arrays = [values for _, values in held]
    output, state, _ = case.forward()
    got = vkml.chunk_kda(*(t for t, _ in held))
    close(got.output, output, 2e-6, "output")
    close(got.final_state, state, 2e-6, "final_state")
    packed = vkml.chunk_kda(*(tensor(a, "float32", device) for a in case.arrays))
    assert_same_bits(got.output, packed.output, "output against the packed copy")


def test_bytes_outside_are_never_read(device, rng):
    case = Case(rng, B=1, H=2, T=70, K=5, V=3)
    want = vkml.chunk_kda(*case.tensors(device))
    inputs = []
    for a in case.arrays:
        around = np.full([n + 3 for n in a.shape], 1e30)
        inside = tuple(slice(1, n + 1) for n in a.shape)
        around[inside] = a
        inputs.append(tensor(around, "float32", device)[inside])
    got = vkml.chunk_kda(*inputs)
    assert_same_bits(got.output, want.output)
    assert_same_bits(got.final_state, want.final_state)


@pytest.mark.parametrize("cut", [1, 16, 64, 100])
def test_cut_and_continue(cut, device, rng):
    case = Case(rng, T=130, K=8, V=6)
    q, k, v, g, beta, s = case.tensors(device)
    whole = vkml.chunk_kda(q, k, v, g, beta, s)
    parts = []
    for begin, length in ((0, cut), (cut, 130 - cut)):
        out = vkml.chunk_kda(*(vkml.narrow(x, 2, begin, length) for x in (q, k, v, g, beta)), s)
        parts.append(out.output)
        s = out.final_state
    close(vkml.cat(parts, 2), to_numpy(whole.output), 2e-6, "output")
    close(s, to_numpy(whole.final_state), 2e-6, "final_state")


@pytest.mark.parametrize("change", [1e3, np.nan, np.inf])
@pytest.mark.parametrize("at", [0, 15, 16, 40, 63, 64, 99])
def test_causality_bit_for_bit(at, change, device, rng):
    case = Case(rng, B=1, H=1, T=100, K=8, V=6)
    before = vkml.chunk_kda(*case.tensors(device)).output
    for a in case.arrays[:5]:
        a[:, :, at] = -abs(change) if a is case.arrays[3] else change
    after = vkml.chunk_kda(*case.tensors(device)).output
    if at:
        assert_same_bits(
            vkml.narrow(before, 2, 0, at).contiguous(), vkml.narrow(after, 2, 0, at).contiguous(), "earlier outputs"
        )
    assert (to_numpy(vkml.select(before, 2, at)) != to_numpy(vkml.select(after, 2, at))).any()


@pytest.mark.parametrize("more", [1, 10, 64])
def test_idle_tokens_leave_the_state(more, device, rng):
    case = Case(rng, T=70, K=8, V=6)
    want = vkml.chunk_kda(*case.tensors(device)).final_state
    for n in (1, 3, 4):
        case.arrays[n] = np.concatenate([case.arrays[n], 0 * case.arrays[n][:, :, :more]], 2)
    for n in (0, 2):
        case.arrays[n] = np.concatenate([case.arrays[n], case.arrays[n][:, :, :more]], 2)
    assert_same_bits(vkml.chunk_kda(*case.tensors(device)).final_state, want)


def test_two_runs_and_any_batch_give_the_same_bits(device, rng):
    case = Case(rng, B=3, H=2, T=100, K=16, V=20)
    first, second = (vkml.chunk_kda(*case.tensors(device)) for _ in range(2))
    assert_same_bits(first.output, second.output)
    alone = vkml.chunk_kda(*(vkml.narrow(x, 0, 1, 1) for x in case.tensors(device)))
    assert_same_bits(vkml.narrow(first.output, 0, 1, 1).contiguous(), alone.output)


def test_slow_decay_does_not_drift(device, rng):
    case = Case(rng, B=1, H=1, T=8192, K=8, V=4, decay=(-1e-6, -1e-6), beta=(0, 0.02))
    check_forward(case, device)


@pytest.fixture(params=[1, 3_000_000, 6_000_000])
def workspace(request):
    """Too little for one slab; `1` gives slabs of one tile of one group of heads."""
    vkml._core._force_kda_workspace(request.param)
    yield request.param
    vkml._core._force_kda_workspace(0)


@pytest.mark.parametrize("chunk_size", [64, 63, 128, 10**6])
def test_several_slabs(workspace, chunk_size, device, rng):
    case = Case(rng, B=1, H=2, HV=4, T=700, K=8, V=6)
    inputs = case.tensors(device)
    got = check_forward(case, device, chunk_size=chunk_size, retain_boundaries=True)
    _, _, states = case.forward()
    close(got.boundaries, np.stack(states[:-1:chunk_size]), 2e-6, "boundaries", axes=3)
    check_backward(case, device)
    check_backward(case, device, chunk_size=chunk_size, boundaries=got.boundaries)
    vkml._core._force_kda_workspace(0)
    whole = vkml.chunk_kda(*inputs)
    assert_same_bits(whole.output, got.output, "output whatever the slabs")


# Decode ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("K", "V"), [(16, 12), (128, 128), (5, 3), (256, 40)])
def test_decode_loop_equals_one_call(K, V, dtype, device, rng):
    case = Case(rng, B=2, H=2, HV=4, T=9, K=K, V=V, dtype=dtype)
    q, k, v, g, beta, s = case.tensors(device)
    want = vkml.chunk_kda(q, k, v, g, beta, s)
    for t in range(9):
        token = [vkml.narrow(x, 2, t, 1) for x in (q, k, v, g, beta)]
        same = vkml.chunk_kda(*token, s)
        kept = s.clone()
        o, after = vkml.kda_decode(*token, s)
        assert_same_bits(s, kept, "the state must not change")
        assert_same_bits(o, same.output, "chunk_kda with T = 1")
        assert_same_bits(after, same.final_state, "chunk_kda with T = 1")
        o2, s2 = vkml.kda_decode(*token, s, update_state=True)
        assert s2 is s or s2.data_ptr() == s.data_ptr()
        assert_same_bits(s, after, "updated in place")
        assert_same_bits(o2, o)
        close(
            o, to_numpy(vkml.narrow(want.output, 2, t, 1)), 1e-6 if dtype == "float32" else 2 * ROUNDED[dtype], "output"
        )
    close(s, to_numpy(want.final_state), 1e-6, "state")


def test_decode_with_strides(device, rng):
    case = Case(rng, B=2, H=2, T=1, K=8, V=12)
    held = [laid_out("rotated", a, "float32", device) for a in case.arrays]
    o, s = vkml.kda_decode(*(t for t, _ in held))
    want = vkml.kda_decode(*case.tensors(device))
    assert_same_bits(o, want[0])
    assert_same_bits(s, want[1])


def test_decode_slow_decay(device, rng):
    case = Case(rng, B=1, H=1, T=3000, K=4, V=4, decay=(-1e-6, -1e-6), beta=(0, 0.02))
    q, k, v, g, beta, s = case.tensors(device)
    for t in range(3000):
        vkml.kda_decode(*(vkml.narrow(x, 2, t, 1) for x in (q, k, v, g, beta)), s, update_state=True)
    close(s, case.forward()[1], 3e-6, "state")
