"""scaled_dot_product_attention: values and gradients by hand in float64, every form of it, and what it may not do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attention_reference import bound, gradient_bounds, np_attention, np_gradients, np_weights
from helpers import EPS, FLOATS, assert_close, assert_same_bits, assert_within, rounded, spacing, tensor, to_numpy
from op_cases import Tolerance, bench, op_cases
from vkml.nn.functional import scaled_dot_product_attention as attention

import vkml
from vkml import _core


@pytest.fixture(autouse=True)
def any_path() -> Iterator[None]:
    yield
    _core._force_attention_path("")


def torch_attention(torch: Any, *xs: Any, **kwargs: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(*xs, **kwargs)


def heads(b: int, h: int, n: int, s: int, e: int, ev: int) -> tuple[tuple[int, ...], ...]:
    return (b, h, n, e), (b, h, s, e), (b, h, s, ev)


def flop(b: int, h: int, n: int, s: int, e: int, share: float = 1.0, backward: bool = False) -> float:
    return 4.0 * b * h * n * s * e * share * (2.5 if backward else 1)


BASE = heads(1, 4, 1024, 1024, 64, 64)
LONG = heads(4, 16, 4096, 4096, 128, 128)  # for GPUs
DECODE = heads(4, 16, 1, 8192, 128, 128)
TestAttention = op_cases(
    attention,
    np_attention,
    name="scaled_dot_product_attention",
    torch=torch_attention,
    shapes=[
        ((5, 8), (7, 8), (7, 4)),
        ((3, 33, 8), (3, 35, 8), (3, 35, 4)),
    ],
    grad_shapes=[heads(1, 2, 3, 2, 4, 3)],
    is_causal=[False, True],
    dtypes=FLOATS,
    tolerance=Tolerance(bound=bound),
    grad_tolerance=2e-5,
    second=True,
    domain=(-1.5, 1.5),
    layouts=["transposed", "stepped"],
    bench=[
        bench(*BASE, flops=flop(1, 4, 1024, 1024, 64)),
        bench(*BASE, flops=flop(1, 4, 1024, 1024, 64, 0.5), is_causal=True),
        bench(*BASE, flops=flop(1, 4, 1024, 1024, 64, backward=True), backward=True),
        bench(*BASE, flops=flop(1, 4, 1024, 1024, 64, 0.5, backward=True), backward=True, is_causal=True),
        bench(*BASE, dtype="bfloat16", flops=flop(1, 4, 1024, 1024, 64)),
        bench(*LONG, dtype="bfloat16", flops=flop(4, 16, 4096, 4096, 128)),
        bench(*LONG, dtype="bfloat16", flops=flop(4, 16, 4096, 4096, 128, backward=True), backward=True),
        bench(*DECODE),
        bench(*DECODE, dtype="bfloat16"),
    ],
)


def arrays(rng: np.random.Generator, *shapes: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray]:
    return [rounded(rng.uniform(-2, 2, s), dtype) for s in shapes]


def check(device: str, values: list[np.ndarray], mask: np.ndarray | None = None, dtype: str = "float32",
          gradients: bool = True, **kwargs: Any) -> vkml.Tensor:  # fmt: skip
    """Values within the bound, gradients within 2e-5 of the largest and what 16 bits do."""
    xs = [tensor(a, dtype, device, True) for a in values]
    m = None
    if mask is not None:
        m = vkml.tensor(mask, device=device) if mask.dtype == bool else tensor(mask, dtype, device)
    outs: list[vkml.Tensor] = []
    path, _ = chosen(lambda: outs.append(attention(*xs, attn_mask=m, **kwargs)))
    y = outs[0]
    want = np_attention(*values, mask, **kwargs)
    wide = "float64" if dtype == "float64" else "float32"
    limit = bound(EPS[wide], *values, mask, **kwargs) + (spacing(want, dtype) if dtype != "float32" else 0)
    if path.startswith("cooperative"):  # weights of 16 bits
        limit = limit + EPS[dtype] * 2 * np.abs(values[2]).max()
    assert_within(to_numpy(y), want, limit, f"{dtype} on {device}")
    if not gradients:
        return y
    g = rounded(np.random.default_rng(3).integers(-8, 9, want.shape) / 8, dtype)
    got: list[vkml.Tensor] = []
    form = decided("attention_backward.path", lambda: got.extend(vkml.grad([y], xs, [tensor(g, dtype, device)])))
    limits: list[Any] = [0.0] * 3
    if dtype in ("float16", "bfloat16"):
        limits = gradient_bounds(g, *values, mask, dtype=dtype, forms=(path, form[0]), **kwargs)
    for name, x, e, limit in zip("qkv", got, np_gradients(g, *values, mask, **kwargs), limits, strict=True):
        scale = np.abs(e).max(initial=0.1)  # it is a difference of terms of order 1
        allowed = 2e-5 * scale * (EPS[wide] / EPS["float32"]) + limit
        if dtype in ("float16", "bfloat16"):
            allowed = allowed + spacing(e, dtype) / 2
        assert_within(to_numpy(x), e, allowed, f"gradient of {name} in {dtype} on {device}")
    return y


def chosen(call: Any) -> tuple[str, str]:
    """The path that ran, and why not the first."""
    return decided("attention.path", call)


def decided(site: str, call: Any) -> tuple[str, str]:
    vkml.record_decisions()
    call()
    vkml.stop_recording_decisions()
    found = [(d["chose"], d["because"]) for d in vkml.decisions() if d["site"] == site]
    return found[-1] if found else ("", "")


SIZES = [(1, 1), (2, 31), (31, 2), (33, 1), (1, 33), (63, 65), (65, 63), (127, 65), (33, 257), (257, 127)]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("L", "S"), SIZES)
def test_odd_sizes(device: str, rng: np.random.Generator, L: int, S: int, is_causal: bool) -> None:
    check(device, arrays(rng, *heads(1, 2, L, S, 8, 8)), is_causal=is_causal)


@pytest.mark.parametrize(("E", "Ev"), [(1, 1), (3, 5), (64, 64), (65, 33), (128, 64), (130, 256), (256, 7)])
def test_widths(device: str, rng: np.random.Generator, E: int, Ev: int) -> None:
    check(device, arrays(rng, *heads(1, 2, 35, 40, E, Ev)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_dtypes(device: str, rng: np.random.Generator, dtype: str, is_causal: bool) -> None:
    check(device, arrays(rng, *heads(1, 2, 70, 75, 16, 16), dtype=dtype), dtype=dtype, is_causal=is_causal)


MASKS = [(), (6,), (1, 6), (5, 1), (5, 6), (1, 1, 5, 6), (2, 1, 1, 6), (2, 3, 5, 6), (3, 1, 1), (3, 5, 6)]


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("shape", MASKS, ids=str)
def test_masks_broadcast(device: str, rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> None:
    mask = rng.random(shape) < 0.6 if kind == "bool" else rounded(rng.uniform(-3, 3, shape), "float32")
    check(device, arrays(rng, *heads(2, 3, 5, 6, 8, 8)), np.asarray(mask))


def test_masks_are_read_through_their_strides(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(2, 3, 5, 6, 8, 8))
    xs = [tensor(a, device=device) for a in values]
    stored = rng.uniform(-3, 3, (6, 10)).astype(np.float32)
    flipped = vkml.tensor(stored, device=device).transpose(0, 1)[::2]
    got = attention(*xs, attn_mask=flipped.expand(2, 3, 5, 6))
    assert_within(to_numpy(got), np_attention(*values, stored.T[::2].astype(np.float64)), 1e-5)
    shown = rng.random((2, 6)) < 0.6
    padding = vkml.tensor(shown, device=device).reshape(2, 1, 1, 6).expand(2, 3, 5, 6)
    got = attention(*xs, attn_mask=padding)
    assert_within(to_numpy(got), np_attention(*values, shown.reshape(2, 1, 1, 6)), 1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_float32_mask_keeps_its_values_beside_16_bits(device: str, rng: np.random.Generator, dtype: str) -> None:
    values = arrays(rng, *heads(1, 2, 5, 6, 8, 8), dtype=dtype)
    mask = np.where(rng.random((5, 6)) < 0.5, -1e9, 0.0) + rng.uniform(-1, 1, (5, 6))
    got = attention(*(tensor(a, dtype, device) for a in values), attn_mask=tensor(mask, device=device))
    want = np_attention(*values, rounded(mask, "float32"))
    assert_within(to_numpy(got), want, spacing(want, dtype) + 1e-5)


def test_a_fully_masked_row_gives_0(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(1, 2, 40, 37, 8, 8))
    allowed = rng.random((40, 37)) < 0.5
    allowed[[0, 3, 39]] = False
    for mask in (allowed, np.where(allowed, 0.0, -np.inf)):
        y = check(device, values, mask)
        assert np.abs(to_numpy(y)[..., [0, 3, 39], :]).max() == 0
    xs = [tensor(a, device=device, requires_grad=True) for a in values]
    y = attention(*xs, attn_mask=vkml.zeros((40, 37), dtype="bool", device=device))
    for g in vkml.grad([y], xs, [vkml.ones_like(y)]):
        assert np.abs(to_numpy(g)).max() == 0
    assert np.abs(to_numpy(y)).max() == 0


@pytest.mark.parametrize(("Hq", "Hkv"), [(6, 2), (4, 1), (3, 3)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_grouped_heads(device: str, rng: np.random.Generator, Hq: int, Hkv: int, is_causal: bool) -> None:
    values = arrays(rng, (2, Hq, 37, 8), (2, Hkv, 40, 8), (2, Hkv, 40, 4))
    check(device, values, is_causal=is_causal, enable_gqa=True)
    xs = [tensor(a, device=device) for a in values]
    assert chosen(lambda: attention(*xs, enable_gqa=True))[0] in ("tiled", "wide", "narrow")


def test_grouped_heads_with_a_mask_per_head(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, (2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8))
    check(device, values, rng.random((4, 1, 6)) < 0.7, enable_gqa=True)


def test_key_and_value_with_other_heads(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, (2, 4, 5, 8), (2, 2, 6, 8), (2, 1, 6, 8))
    check(device, values, enable_gqa=True)
    xs = [tensor(a, device=device) for a in values]
    assert chosen(lambda: attention(*xs, enable_gqa=True))[0] == "composed"


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 2, 5, 8), (2, 7, 8), (1, 2, 7, 4)),
        ((4, 5, 8), (1, 7, 8), (1, 7, 4)),
        ((5, 8), (3, 7, 8), (2, 1, 7, 4)),
        ((2, 3, 2, 5, 8), (3, 1, 7, 8), (2, 1, 2, 7, 4)),
        ((2, 1, 5, 8), (1, 3, 7, 8), (1, 3, 7, 8)),
    ],
    ids=str,
)
def test_leading_axes_broadcast(device: str, rng: np.random.Generator, shapes: Any) -> None:
    check(device, arrays(rng, *shapes))


def test_batch_heads_swapped_in_memory(device: str, rng: np.random.Generator) -> None:
    """[B, T, H, E] read as [B, H, T, E], as a projection leaves it."""
    stored = arrays(rng, (2, 35, 3, 8), (2, 38, 3, 8), (2, 38, 3, 8))
    xs = [tensor(a, device=device, requires_grad=True) for a in stored]
    y = attention(*(x.transpose(1, 2) for x in xs), is_causal=True)
    values = [a.swapaxes(1, 2) for a in stored]
    assert_within(to_numpy(y), np_attention(*values, is_causal=True), bound(EPS["float32"], *values, is_causal=True))
    g = np.random.default_rng(1).integers(-8, 9, (2, 35, 3, 8)) / 8
    got = vkml.grad([y], xs, [tensor(g, device=device).transpose(1, 2)])
    for x, e in zip(got, np_gradients(g.swapaxes(1, 2), *values, is_causal=True), strict=True):
        assert_within(to_numpy(x), e.swapaxes(1, 2), 2e-5 * np.abs(e).max())


def test_a_gradient_that_lies_off_16_bytes(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(1, 2, 5, 6, 8, 8))
    xs = [tensor(a, device=device, requires_grad=True) for a in values]
    g = rng.integers(-8, 9, 81) / 8
    given = tensor(g, device=device)[1:].reshape(1, 2, 5, 8)
    got = vkml.grad([attention(*xs)], xs, [given])
    for x, e in zip(got, np_gradients(g[1:].reshape(1, 2, 5, 8), *values), strict=True):
        assert_within(to_numpy(x), e, 1e-5)


@pytest.mark.parametrize("path", ["wide", "narrow", "split"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_every_form(vulkan: str, rng: np.random.Generator, path: str, dtype: str) -> None:
    values = arrays(rng, (1, 4, 33, 24), (1, 2, 290, 24), (1, 2, 290, 40), dtype=dtype)
    mask = rng.random((4, 1, 290)) < 0.7
    xs = [tensor(a, dtype, vulkan) for a in values]
    _core._force_attention_path(path)
    taken = path if path != "wide" or dtype != "float64" else "composed"
    small = vkml.device_info(vulkan)["shared_memory"] < 20480
    taken = "composed" if path == "wide" and small else taken
    assert chosen(lambda: attention(*xs, enable_gqa=True))[0] == taken
    gradients = path != "split" and dtype != "bfloat16"  # the split form has none of its own
    check(vulkan, values, dtype=dtype, gradients=gradients, enable_gqa=True, is_causal=True)
    check(vulkan, values, mask, dtype=dtype, gradients=gradients, enable_gqa=True)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_decoding(device: str, rng: np.random.Generator, groups: int, dtype: str) -> None:
    """One row and a long cache: the keys are shared out; a batch element's bits are its own."""
    values = arrays(rng, (3, 2 * groups, 1, 16), (3, 2, 1337, 16), (3, 2, 1337, 16), dtype=dtype)
    xs = [tensor(a, dtype, device) for a in values]
    assert chosen(lambda: attention(*xs, enable_gqa=True))[0] in ("tiled", "split")
    y = check(device, values, rng.random((3, 1, 1, 1337)) < 0.8, dtype=dtype, enable_gqa=True)
    whole = attention(*xs, enable_gqa=True)
    assert_same_bits(whole[1:2], attention(*(x[1:2] for x in xs), enable_gqa=True), "one of a batch")
    assert y.shape == (3, 2 * groups, 1, 16)


def test_same_bits_whatever_the_batch(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(3, 2, 70, 67, 8, 8))
    xs = [tensor(a, device=device, requires_grad=True) for a in values]
    one = [tensor(a[1:2], device=device, requires_grad=True) for a in values]
    outs = [attention(*xs, is_causal=True), attention(*one, is_causal=True)]
    assert_same_bits(outs[0][1:2], outs[1], "the output")
    g = tensor(rng.uniform(-1, 1, (3, 2, 70, 8)), device=device)
    for a, b in zip(vkml.grad([outs[0]], xs, [g]), vkml.grad([outs[1]], one, [g[1:2]]), strict=True):
        assert_same_bits(a[1:2], b, "a gradient")


def test_bits_do_not_depend_on_how_batches_meet_threads(rng: np.random.Generator) -> None:
    """Many batches take one way through the CPU's gradients, few another."""
    values = arrays(rng, *heads(64, 1, 66, 70, 8, 8))
    xs = [tensor(a, requires_grad=True) for a in values]
    g = tensor(rng.uniform(-1, 1, (64, 1, 66, 8)))
    many = vkml.grad([attention(*xs)], xs, [g])
    few = [tensor(a[5:6], requires_grad=True) for a in values]
    for a, b in zip(many, vkml.grad([attention(*few)], few, [g[5:6]]), strict=True):
        assert_same_bits(a[5:6], b, "a gradient")


def test_no_square_matrix(device: str, rng: np.random.Generator) -> None:
    """At L = S = 4096 a byte per score would be 16 MiB; forward and backward stay under an eighth of that."""
    n, e = 4096, 8
    xs = [tensor(a, device=device, requires_grad=True) for a in arrays(rng, *heads(1, 1, n, n, e, e))]
    g = vkml.ones((1, 1, n, e), device=device)
    vkml.synchronize()
    vkml.reset_peak_memory(device)
    before = vkml.memory_stats(device)["in_use_bytes"]
    got = vkml.grad([attention(*xs, is_causal=True)], xs, [g])
    peak = vkml.memory_stats(device)["peak_in_use_bytes"] - before
    assert np.isfinite(to_numpy(got[0])).all()
    assert 0 < peak < n * n // 8


def test_large_scores_stay_finite(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(1, 1, 33, 40, 8, 8))
    values[0] = values[0] * 1e4
    got = to_numpy(attention(*(tensor(a, device=device) for a in values)))
    assert_within(got, np_attention(*values), 0.02)
    assert np.isfinite(got).all()


def test_nan_and_infinity(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(1, 1, 36, 37, 8, 8))
    values[0][0, 0, 3, 2] = np.nan  # its row only
    values[0][0, 0, 5] = np.inf
    got = to_numpy(attention(*(tensor(a, device=device) for a in values)))[0, 0]
    assert np.isnan(got[[3, 5]]).all()
    rest = np.delete(np.arange(36), [3, 5])
    want = np_attention(*values)[0, 0]
    assert_within(got[rest], want[rest], 1e-5)
    # A blocked score does not matter, whatever it is.
    values[0][0, 0, 3, 2] = 1.0
    values[0][0, 0, 5] = 1.0
    values[1][0, 0, 36] = np.nan
    mask = np.ones((36, 37), bool)
    mask[:, 36] = False
    got = attention(*(tensor(a, device=device) for a in values), attn_mask=vkml.tensor(mask, device=device))
    values[1][0, 0, 36] = 0.0
    assert_within(to_numpy(got), np_attention(*values, mask), 1e-5)


def test_dropout_is_that_of_the_composed_form(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, (2, 4, 35, 8), (2, 2, 39, 8), (2, 2, 39, 8))
    g = rng.uniform(-1, 1, (2, 4, 35, 8))
    found = []
    for path in ("", "composed"):
        _core._force_attention_path(path)
        vkml.manual_seed(7)
        xs = [tensor(a, device=device, requires_grad=True) for a in values]
        y = attention(*xs, dropout_p=0.3, enable_gqa=True)
        found.append([to_numpy(y), *map(to_numpy, vkml.grad([y], xs, [tensor(g, device=device)]))])
    for a, b in zip(*found, strict=True):
        assert_within(a, b, 2e-5 * np.abs(b).max())
    assert np.abs(found[0][0] - np_attention(*values, enable_gqa=True)).max() > 0.1


def test_dropout_of_one_row_and_of_everything(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(1, 2, 1, 700, 8, 8))
    outs = []
    for path in ("", "composed"):
        _core._force_attention_path(path)
        vkml.manual_seed(7)
        outs.append(to_numpy(attention(*(tensor(a, device=device) for a in values), dropout_p=0.3)))
    assert_within(outs[0], outs[1], 2e-5)
    _core._force_attention_path("")
    assert np.abs(to_numpy(attention(*(tensor(a, device=device) for a in values), dropout_p=1.0))).max() == 0
    # Without dropout no draw is taken.
    vkml.manual_seed(1)
    attention(*(tensor(a, device=device) for a in values))
    first = to_numpy(vkml.rand((3,), device=device))
    vkml.manual_seed(1)
    assert_close(vkml.rand((3,), device=device), first)


def test_a_mask_that_wants_a_gradient(device: str, rng: np.random.Generator) -> None:
    values, mask = arrays(rng, *heads(1, 2, 5, 6, 8, 8)), rounded(rng.uniform(-1, 1, (2, 1, 6)), "float32")
    xs = [tensor(a, device=device) for a in values]
    m = tensor(mask, device=device, requires_grad=True)
    assert chosen(lambda: attention(*xs, attn_mask=m))[1] in ("attn_mask wants a gradient", "the CPU's form")
    g = rng.integers(-8, 9, (1, 2, 5, 8)) / 8
    (got,) = vkml.grad([attention(*xs, attn_mask=m)], [m], [tensor(g, device=device)])
    p = np_weights(values[0], values[1], mask)
    dp = g @ np.swapaxes(values[2], -1, -2)
    want = (p * (dp - (p * dp).sum(-1, keepdims=True))).sum((0, 2), keepdims=False)[:, None]
    assert_within(to_numpy(got), want, 1e-5)


def test_wide_rows_run_composed_and_say_why(vulkan: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(1, 1, 5, 6, 300, 8))
    check(vulkan, values)
    path, _ = chosen(lambda: attention(*(tensor(a, device=vulkan) for a in values)))
    assert path == "composed"


@pytest.mark.parametrize(
    "shapes",
    [heads(2, 2, 0, 5, 8, 4), heads(0, 2, 3, 5, 8, 4), heads(2, 2, 3, 5, 8, 0), heads(2, 2, 3, 0, 8, 4)],
    ids=str,
)
def test_empty(device: str, shapes: Any) -> None:
    xs = [vkml.ones(s, device=device).requires_grad_() for s in shapes]
    for is_causal in (False, True):
        y = attention(*xs, is_causal=is_causal)
        assert y.shape == (*shapes[0][:-1], shapes[2][-1])
        assert np.abs(to_numpy(y)).max(initial=0.0) == 0
        for x, g in zip(xs, vkml.grad([y], xs, [vkml.ones_like(y)]), strict=True):
            assert g.shape == x.shape and np.abs(to_numpy(g)).max(initial=0.0) == 0


def test_no_columns_average_the_values(device: str) -> None:
    v = tensor(np.arange(6.0).reshape(3, 2), device=device)
    got = attention(vkml.zeros((4, 0), device=device), vkml.zeros((3, 0), device=device), v)
    assert_close(got, np.tile([2.0, 3.0], (4, 1)), rtol=1e-6)


def test_scale(device: str, rng: np.random.Generator) -> None:
    values = arrays(rng, *heads(1, 2, 5, 6, 8, 8))
    for scale in (0.0, -0.7, 2.0):
        check(device, values, scale=scale)


def test_an_input_changed_since_is_noticed(device: str, rng: np.random.Generator) -> None:
    xs = [tensor(a, device=device, requires_grad=True) for a in arrays(rng, *heads(1, 1, 5, 6, 8, 8))]
    mask = vkml.zeros((5, 6), device=device)
    y = attention(*xs, attn_mask=mask)
    mask.fill_(1.0)
    with pytest.raises(vkml.Error, match="modified"):
        vkml.grad([y], xs, [vkml.ones_like(y)])


ERRORS = [
    ([(5,), (6, 8), (6, 8)], {}, "ShapeError", r"expected rank >= 2, got \(5,\), \(6, 8\) and \(6, 8\)"),
    ([(5, 8), (6, 7), (6, 8)], {}, "ShapeError", r"key: expected 8 columns, got shape \(6, 7\)"),
    ([(5, 8), (6, 8), (7, 8)], {}, "ShapeError", r"value: expected 6 rows, got shape \(7, 8\)"),
    ([(2, 5, 8), (3, 6, 8), (3, 6, 8)], {}, "ShapeError", r"scaled_dot_product_attention.*\(2,\).*\(3,\)"),
    ([(4, 5, 8), (3, 6, 8), (3, 6, 8)], {"enable_gqa": True}, "ShapeError", "expected heads that divide query's 4"),
    ([(5, 8), (6, 8), (6, 8)], {"enable_gqa": True}, "ShapeError", "query: expected heads along axis -3"),
    ([(5, 8), (6, 8), (6, 8)], {"dropout_p": 1.5}, "ShapeError", r"dropout_p: expected a number in \[0, 1\], got 1.5"),
]  # fmt: skip


@pytest.mark.parametrize(("shapes", "kwargs", "error", "text"), ERRORS, ids=range(len(ERRORS)))
def test_errors(device: str, shapes: Any, kwargs: Any, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        attention(*(vkml.ones(s, device=device) for s in shapes), **kwargs)


def test_errors_of_masks_and_dtypes(device: str) -> None:
    q, k = vkml.ones((2, 5, 8), device=device), vkml.ones((2, 6, 8), device=device)
    mask = vkml.ones((5, 6), dtype="bool", device=device)
    with pytest.raises(vkml.ShapeError, match="expected attn_mask or is_causal, got both"):
        attention(q, k, k, attn_mask=mask, is_causal=True)
    for shape in ((5, 7), (3, 5, 6), (1, 2, 5, 6)):
        with pytest.raises(vkml.ShapeError, match=r"attn_mask: expected a shape that broadcasts to"):
            attention(q, k, k, attn_mask=vkml.ones(shape, device=device))
    with pytest.raises(vkml.DTypeError, match="attn_mask: expected a bool or floating-point tensor, got int64"):
        attention(q, k, k, attn_mask=vkml.ones((5, 6), dtype="int64", device=device))
    with pytest.raises(vkml.DTypeError, match="expected one dtype, got float32, float64 and float32"):
        attention(q, k.to(dtype="float64"), k)
    with pytest.raises(vkml.DTypeError, match="expected floating-point tensors, got int64"):
        attention(*(x.to(dtype="int64") for x in (q, k, k)))


def test_devices_must_agree(vulkan: str) -> None:
    with pytest.raises(vkml.DeviceError):
        attention(vkml.ones((5, 8)), vkml.ones((6, 8), device=vulkan), vkml.ones((6, 8), device=vulkan))


@pytest.mark.torch
@pytest.mark.parametrize("case", ["mask", "additive", "grouped", "causal", "scale"])
def test_options_against_torch(device: str, rng: np.random.Generator, case: str) -> None:
    torch = pytest.importorskip("torch")
    values = arrays(rng, (2, 4, 33, 8), *[(2, 2 if case == "grouped" else 4, 37, 8)] * 2)
    mask: Any = {"mask": rng.random((2, 1, 33, 37)) < 0.8, "additive": rng.uniform(-2, 2, (33, 37))}.get(case)
    kwargs = {"grouped": {"enable_gqa": True}, "causal": {"is_causal": True}, "scale": {"scale": 0.3}}.get(case, {})
    peers = [torch.tensor(a, requires_grad=True) for a in values]
    want = torch_attention(torch, *peers, attn_mask=None if mask is None else torch.tensor(mask), **kwargs)
    xs = [tensor(a, device=device, requires_grad=True) for a in values]
    m = mask if mask is None else vkml.tensor(mask if mask.dtype == bool else mask.astype(np.float32), device=device)
    got = attention(*xs, attn_mask=m, **kwargs)
    assert_within(to_numpy(got), want.detach().numpy(), 1e-5)
    expected = torch.autograd.grad(want.sum(), peers)
    for g, e in zip(vkml.grad([got], xs, [vkml.ones_like(got)]), expected, strict=True):
        assert_within(to_numpy(g), e.numpy(), 2e-5 * float(e.abs().max()))
