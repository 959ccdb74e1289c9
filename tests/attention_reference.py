"""Attention by hand in float64, its gradients, and the error bound of its values."""

from __future__ import annotations

import math

import numpy as np


def spread(x: np.ndarray, heads: int) -> np.ndarray:
    return x if x.ndim < 3 or x.shape[-3] in (1, heads) else np.repeat(x, heads // x.shape[-3], axis=-3)


def np_weights(
    q: np.ndarray, k: np.ndarray, mask: np.ndarray | None = None, is_causal: bool = False, scale: float | None = None
) -> np.ndarray:
    """Softmax by hand; rows without anything allowed are 0."""
    s = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        mask = np.tril(np.ones(s.shape[-2:], bool))
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    peak = s.max(-1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(np.isneginf(peak), 0.0, peak))
    total = e.sum(-1, keepdims=True)
    return e / np.where(np.isneginf(peak), 1.0, total)


def np_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> np.ndarray:
    if enable_gqa:
        k, v = spread(k, q.shape[-3]), spread(v, q.shape[-3])
    return np_weights(q, k, mask, is_causal, scale) @ v


def reduced(g: np.ndarray, like: np.ndarray, heads: int) -> np.ndarray:
    """Sums what was spread over grouped heads, and what was broadcast."""
    if like.ndim > 2 and like.shape[-3] not in (1, heads):
        g = g.reshape(*g.shape[:-3], like.shape[-3], -1, *g.shape[-2:]).sum(-3)
    g = g.sum(tuple(range(g.ndim - like.ndim)))
    axes = tuple(i for i, n in enumerate(like.shape) if n == 1 and g.shape[i] != 1)
    return g.sum(axes, keepdims=True)


def np_gradients(
    g: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> list[np.ndarray]:
    heads = q.shape[-3] if q.ndim > 2 else 1
    kx, vx = (spread(k, heads), spread(v, heads)) if enable_gqa else (k, v)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    p = np_weights(q, kx, mask, is_causal, scale)
    dp = g @ np.swapaxes(vx, -1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * factor
    full = (ds @ kx, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ g)
    heads = g.shape[-3] if g.ndim > 2 else 1
    return [reduced(x, like, heads) for x, like in zip(full, (q, k, v), strict=True)]


# Largest relative error of a number rounded to 16 bits. The forward cuts bfloat16 weights off, losing up to twice
# that, and divides by the sum of what is left: they are off by this much around what all of them lose.
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def gradient_bounds(
    g: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    dtype: str,
    forms: tuple[str, str],
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> list[np.ndarray]:
    """What 16 bits do to the gradients: rows of attention.path and attention_backward.path say where there are any.

    delta = sum g o comes from the kept output. Rounded it is off by sum |g o| u; made of weights w (1 + e) it is off by
    sum e w (v - o), and delta by sum w |dp - delta| u. All slopes w (dp - delta) of a row are off by w times that, also
    where dp - delta cancels: it is the method's own error, PyTorch's 16-bit kernels have it too.
    """
    unit = UNIT[dtype]
    weights, operands = (unit if form in ("cooperative", "cooperative_shared", "emulated") else 0.0 for form in forms)
    heads = q.shape[-3] if q.ndim > 2 else 1
    kx, vx = (spread(k, heads), spread(v, heads)) if enable_gqa else (k, v)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else abs(scale)
    p = np_weights(q, kx, mask, is_causal, scale)
    dp = g @ np.swapaxes(vx, -1, -2)
    off = np.abs(dp - (p * dp).sum(-1, keepdims=True))
    delta = unit * np.abs(g * (p @ vx)).sum(-1, keepdims=True) + weights * (p * off).sum(-1, keepdims=True)
    slopes, common = operands * p * off * factor, delta * factor
    full = (
        slopes @ np.abs(kx) + common * np.abs(p @ kx),
        np.swapaxes(slopes + p * common, -1, -2) @ np.abs(q),
        operands * np.swapaxes(p, -1, -2) @ np.abs(g),
    )
    heads = g.shape[-3] if g.ndim > 2 else 1
    return [reduced(x, like, heads) for x, like in zip(full, (q, k, v), strict=True)]


def bound(
    eps: float,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> np.ndarray:
    """Scores are off by their sums' rounding, weights by as much, results by that share of sum p |v|."""
    if enable_gqa:
        k, v = spread(k, q.shape[-3]), spread(v, q.shape[-3])
    factor = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else abs(scale)
    size = np.abs(q) @ np.swapaxes(np.abs(k), -1, -2) * factor
    if mask is not None and mask.dtype != bool:
        size = size + np.abs(np.nan_to_num(mask, neginf=0.0))
    worst = np.nan_to_num(size).max(-1, keepdims=True, initial=0.0)
    weights = np.nan_to_num(np_weights(q, k, mask, is_causal, scale))
    return eps * ((q.shape[-1] / 8 + 8) * worst + k.shape[-2] / 32 + 16) * (weights @ np.nan_to_num(np.abs(v))) + 1e-300
