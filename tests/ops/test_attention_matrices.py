"""scaled_dot_product_attention on cooperative matrices, or with those emulated: weights are of 16 bits there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attention_reference import gradient_bounds, np_attention, np_gradients, np_weights, spread
from helpers import assert_same_bits, assert_within, rounded, spacing, tensor, to_numpy
from vkml.nn.functional import scaled_dot_product_attention as attention

import vkml
from vkml import _core

HALVES = ["float16", "bfloat16"]
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-7}  # of a weight: bfloat16 is cut off, not rounded


def lists_matrices() -> bool:
    found = [d for d in vkml.devices() if str(d.device) == "vulkan:0" and d.usable]
    return bool(found) and "bfloat16" in str(vkml.device_info("vulkan:0")["cooperative_matrices"])


@pytest.fixture(autouse=True, params=["cooperative", "cooperative_shared"] if lists_matrices() else ["emulated"])
def matrices(vulkan: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The row of attention.path to force."""
    row: str = request.param
    _core._force_attention_path(row)
    x = vkml.ones((1, 1, 40, 64), dtype="bfloat16", device=vulkan)
    if (found := chosen(lambda: attention(x, x, x))) == row:
        yield row
    _core._force_attention_path("")
    if found != row:
        pytest.skip(f"{row} does not fit the device")


def chosen(call: Any, site: str = "attention.path") -> str:
    vkml.record_decisions()
    call()
    vkml.stop_recording_decisions()
    return [d for d in vkml.decisions() if d["site"] == site][-1]["chose"]


def arrays(rng: np.random.Generator, dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [rounded(rng.uniform(-2, 2, s), dtype) for s in shapes]


def heads(b: int, h: int, n: int, s: int, e: int, ev: int) -> tuple[tuple[int, ...], ...]:
    return (b, h, n, e), (b, h, s, e), (b, h, s, ev)


def check(values: list[np.ndarray], dtype: str, row: str, device: str, mask: np.ndarray | None = None,
          **kwargs: Any) -> vkml.Tensor:  # fmt: skip
    """Values within the rounding of the weights and of the output."""
    xs = [tensor(a, dtype, device) for a in values]
    m = None
    if mask is not None:
        m = vkml.tensor(mask, device=device) if mask.dtype == bool else tensor(mask, "float32", device)
    outs: list[vkml.Tensor] = []
    assert chosen(lambda: outs.append(attention(*xs, attn_mask=m, **kwargs))) == row
    want = np_attention(*values, mask, **kwargs)
    h = values[0].shape[-3]
    k, v = spread(values[1], h), spread(values[2], h)
    kwargs.pop("enable_gqa", None)
    weights = np_weights(values[0], k, mask, **kwargs)
    limit = UNIT[dtype] * (weights @ np.abs(v) + np.abs(want)) + spacing(want, dtype) + 1e-5
    assert_within(to_numpy(outs[0]), want, limit, f"{dtype} {row}")
    return outs[0]


SIZES = [(33, 1), (33, 31), (63, 65), (65, 64), (129, 127), (257, 200)]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("e", [64, 128])
@pytest.mark.parametrize(("L", "S"), SIZES)
def test_sizes(matrices: str, vulkan: str, rng: np.random.Generator, L: int, S: int, e: int, dtype: str,
               is_causal: bool) -> None:  # fmt: skip
    check(arrays(rng, dtype, *heads(1, 2, L, S, e, e)), dtype, matrices, vulkan, is_causal=is_causal)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("E", "Ev"), [(8, 8), (16, 40), (72, 128), (128, 24), (64, 48), (96, 96)])
def test_widths_are_filled_up(matrices: str, vulkan: str, rng: np.random.Generator, E: int, Ev: int,
                              dtype: str) -> None:  # fmt: skip
    check(arrays(rng, dtype, *heads(1, 2, 70, 75, E, Ev)), dtype, matrices, vulkan)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("shape", [(70,), (1, 70), (50, 1), (2, 3, 50, 70), (3, 1, 70)], ids=str)
def test_masks(matrices: str, vulkan: str, rng: np.random.Generator, shape: tuple[int, ...], kind: str,
               dtype: str) -> None:  # fmt: skip
    mask = rng.random(shape) < 0.6 if kind == "bool" else rounded(rng.uniform(-3, 3, shape), "float32")
    check(arrays(rng, dtype, *heads(2, 3, 50, 70, 64, 64)), dtype, matrices, vulkan, mask)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_fully_masked_row_gives_0(matrices: str, vulkan: str, rng: np.random.Generator, dtype: str) -> None:
    allowed = rng.random((50, 70)) < 0.5
    allowed[[0, 3, 49]] = False
    allowed[7, :64] = False  # nothing in the first tile of keys
    allowed[8, 64:] = False
    values = arrays(rng, dtype, *heads(1, 2, 50, 70, 64, 64))
    for mask in (allowed, np.where(allowed, 0.0, -np.inf)):
        y = check(values, dtype, matrices, vulkan, mask)
        assert np.abs(to_numpy(y)[..., [0, 3, 49], :]).max() == 0


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("Hq", "Hkv"), [(6, 2), (4, 1)])
def test_grouped_heads(matrices: str, vulkan: str, rng: np.random.Generator, Hq: int, Hkv: int,
                       is_causal: bool) -> None:  # fmt: skip
    values = arrays(rng, "bfloat16", (2, Hq, 37, 64), (2, Hkv, 70, 64), (2, Hkv, 70, 64))
    check(values, "bfloat16", matrices, vulkan, is_causal=is_causal, enable_gqa=True)


def test_strides(matrices: str, vulkan: str, rng: np.random.Generator) -> None:
    """[B, T, H, E] read as [B, H, T, E], every second row of a longer one."""
    stored = arrays(rng, "bfloat16", (2, 70, 3, 64), (2, 80, 3, 64), (2, 80, 3, 64))
    xs = [tensor(a, "bfloat16", vulkan).transpose(1, 2)[:, :, ::2] for a in stored]
    outs: list[vkml.Tensor] = []
    assert chosen(lambda: outs.append(attention(*xs))) == matrices
    packed = attention(*(x.contiguous() for x in xs))
    assert_same_bits(outs[0], packed, "strided and packed")


def test_same_bits_whatever_the_batch(vulkan: str, rng: np.random.Generator) -> None:
    values = arrays(rng, "bfloat16", *heads(3, 2, 150, 167, 64, 64))
    xs = [tensor(a, "bfloat16", vulkan) for a in values]
    one = attention(*(x[1:2] for x in xs), is_causal=True)
    for _ in range(2):
        assert_same_bits(attention(*xs, is_causal=True)[1:2], one, "the output")


def test_nan_infinity_and_large_scores(vulkan: str, rng: np.random.Generator) -> None:
    values = arrays(rng, "bfloat16", *heads(1, 1, 40, 70, 64, 64))
    values[0][0, 0, 3, 2] = np.nan  # its row only
    values[0][0, 0, 5] = np.inf
    values[0][0, 0, 6] *= 1e4
    got = to_numpy(attention(*(tensor(a, "bfloat16", vulkan) for a in values)))[0, 0]
    assert np.isnan(got[[3, 5]]).all()
    rest = np.delete(np.arange(40), [3, 5])
    values[0][0, 0, [3, 5]] = 0.0
    assert_within(got[rest], np_attention(*values)[0, 0][rest], 0.05)
    # A blocked score does not matter, whatever it is.
    values[1][0, 0, 69] = np.nan
    mask = np.ones((40, 70), bool)
    mask[:, 69] = False
    got = to_numpy(
        attention(*(tensor(a, "bfloat16", vulkan) for a in values), attn_mask=vkml.tensor(mask, device=vulkan))
    )
    values[1][0, 0, 69] = 0.0
    assert_within(got, np_attention(*values, mask), 0.05)


@pytest.mark.parametrize("dtype", HALVES)
def test_dropout_is_that_of_the_composed_form(matrices: str, vulkan: str, rng: np.random.Generator, dtype: str) -> None:
    xs = [tensor(a, dtype, vulkan) for a in arrays(rng, dtype, *heads(2, 2, 50, 70, 64, 64))]
    found = []
    for path in (matrices, "composed"):
        _core._force_attention_path(path)
        vkml.manual_seed(7)
        found.append(to_numpy(attention(*xs, dropout_p=0.3)))
    assert_within(found[0], found[1], 0.02)
    _core._force_attention_path(matrices)
    assert np.abs(found[0] - to_numpy(attention(*xs))).max() > 0.1


def check_gradients(values: list[np.ndarray], dtype: str, row: str, device: str, **kwargs: Any) -> list[vkml.Tensor]:
    """Both passes on matrices, gradients within what 16 bits do to them."""
    xs = [tensor(a, dtype, device, True) for a in values]
    want = np_attention(*values, **kwargs)
    g = rounded(np.random.default_rng(5).integers(-8, 9, want.shape) / 8, dtype)
    got: list[vkml.Tensor] = []

    def run() -> None:
        got.extend(vkml.grad([attention(*xs, **kwargs)], xs, [tensor(g, dtype, device)]))

    assert chosen(run, "attention_backward.path") == row
    limits = gradient_bounds(g, *values, dtype=dtype, forms=(row, row), **kwargs)
    for name, x, e, limit in zip("qkv", got, np_gradients(g, *values, **kwargs), limits, strict=True):
        allowed = limit + spacing(e, dtype) / 2 + 2e-5 * np.abs(e).max(initial=0.1)
        assert_within(to_numpy(x), e, allowed, f"gradient of {name}, {dtype} {row}")
    return got


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("L", "S", "e"), [(33, 1, 128), (1, 33, 64), (63, 65, 128), (65, 64, 64), (129, 127, 128)])
def test_gradients(matrices: str, vulkan: str, rng: np.random.Generator, L: int, S: int, e: int, dtype: str,
                   is_causal: bool) -> None:  # fmt: skip
    check_gradients(arrays(rng, dtype, *heads(1, 2, L, S, e, e)), dtype, matrices, vulkan, is_causal=is_causal)


@pytest.mark.parametrize(("E", "Ev", "scale"), [(8, 8, None), (16, 40, -0.3), (72, 128, None), (128, 24, 0.0)])
def test_gradients_of_other_widths(matrices: str, vulkan: str, rng: np.random.Generator, E: int, Ev: int,
                                   scale: float | None) -> None:  # fmt: skip
    check_gradients(arrays(rng, "float16", *heads(1, 2, 40, 37, E, Ev)), "float16", matrices, vulkan, scale=scale)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("Hq", "Hkv"), [(6, 2), (4, 1)])
def test_gradients_of_grouped_heads(matrices: str, vulkan: str, rng: np.random.Generator, Hq: int, Hkv: int,
                                    is_causal: bool) -> None:  # fmt: skip
    values = arrays(rng, "bfloat16", (2, Hq, 37, 64), (2, Hkv, 50, 64), (2, Hkv, 50, 64))
    check_gradients(values, "bfloat16", matrices, vulkan, is_causal=is_causal, enable_gqa=True)


def test_gradients_through_strides_and_alone(matrices: str, vulkan: str, rng: np.random.Generator) -> None:
    """[B, T, H, E] read as [B, H, T, E]: the same bits as packed, and as a batch element by itself."""
    stored = arrays(rng, "bfloat16", (2, 37, 3, 64), (2, 40, 3, 64), (2, 40, 3, 64))
    g = tensor(rounded(rng.uniform(-1, 1, (2, 3, 37, 64)), "bfloat16"), "bfloat16", vulkan)
    found = []
    for packed, at in ((False, slice(0, 2)), (True, slice(0, 2)), (True, slice(1, 2))):
        xs = [tensor(a[at], "bfloat16", vulkan).transpose(1, 2) for a in stored]
        xs = [(x.contiguous() if packed else x).detach().requires_grad_() for x in xs]
        found.append(vkml.grad([attention(*xs, is_causal=True)], xs, [g[at].contiguous()]))
    for strided, packed, alone in zip(*found, strict=True):
        assert_same_bits(strided, packed, "strided and packed")
        assert_same_bits(packed[1:2], alone, "one of a batch")


def test_the_backward_says_why_not_the_first_form(matrices: str, vulkan: str, rng: np.random.Generator) -> None:
    """By itself a device takes the best form that it has; a form that is asked for gives the reason of the others."""
    xs = [tensor(a, "bfloat16", vulkan, True) for a in arrays(rng, "bfloat16", *heads(1, 1, 40, 40, 64, 64))]
    g = vkml.ones((1, 1, 40, 64), dtype="bfloat16", device=vulkan)

    def last() -> dict[str, Any]:
        vkml.record_decisions()
        vkml.grad([attention(*xs)], xs, [g])
        vkml.stop_recording_decisions()
        return [d for d in vkml.decisions() if d["site"] == "attention_backward.path"][-1]

    asked = last()
    if matrices != "cooperative":
        assert asked["chose"] == matrices and asked["because"] == "another path is asked for by name", asked
    _core._force_attention_path("")
    own = last()
    if matrices == "emulated":
        assert own["chose"] == "wide" and own["because"] == "the device has no such cooperative matrices", own
    elif own["chose"] != "cooperative":
        assert own["chose"] == "cooperative_shared" and own["because"].startswith("the device cannot make"), own


def test_gradients_that_other_kernels_make(vulkan: str, rng: np.random.Generator) -> None:
    """A mask or dropout leaves the matrices, and says why."""
    xs = [tensor(a, "bfloat16", vulkan, True) for a in arrays(rng, "bfloat16", *heads(1, 1, 40, 40, 64, 64))]
    mask = vkml.tensor(np.tril(np.ones((40, 40), bool)), device=vulkan)
    _core._force_attention_path("")
    for kwargs, why in (({"attn_mask": mask}, "attn_mask is read"), ({"dropout_p": 0.5}, "dropout is drawn")):
        vkml.record_decisions()
        vkml.grad([attention(*xs, **kwargs)], xs, [vkml.ones((1, 1, 40, 64), dtype="bfloat16", device=vulkan)])
        vkml.stop_recording_decisions()
        last = [d for d in vkml.decisions() if d["site"] == "attention_backward.path"][-1]
        assert last["chose"] == "wide" and why in last["because"], last
