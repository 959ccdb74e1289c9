"""The float64 recurrence of Kimi Delta Attention and its exact reverse, in NumPy, and what its tests compare by."""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers import assert_within, onnx_node_cases, rounded, spacing, tensor, to_numpy

import vkml

INPUTS = ("query", "key", "value", "log_decay", "beta", "initial_state")
# Relative RMS per (batch, head): strict mode, by the dtype of query.
ROUNDED = {"float64": 1e-12, "float32": 2e-6, "bfloat16": 2e-3, "float16": 2.5e-4}  # output
STATE = {"float64": 1e-12, "float32": 2e-6, "bfloat16": 2e-6, "float16": 2e-6}
ROUNDED_GRAD = {"float64": 1e-12, "float32": 3e-6, "bfloat16": 2e-3, "float16": 2.5e-4}  # dq, dk, dv
WIDE_GRAD = {"float64": 1e-12, "float32": 3e-6, "bfloat16": 3e-6, "float16": 3e-6}  # dbeta, d initial_state
TINY = 1e-35  # f32 may flush below its smallest normal number
DECAY_GRAD = {"float64": 1e-12, "float32": 5e-6, "bfloat16": 5e-6, "float16": 5e-6}


# Log decays that a naive form overflows or cancels at, for Case.
HARD = {
    "constant -5": (-5, -5), "constant -12": (-12, -12), "constant -20": (-20, -20), "0": (0, 0),
    "-1e-6": (-1e-6, -1e-6), "+0.01": (0.01, 0.01), "[-50, -5]": (-50, -5), "[-1000, 0]": (-1000, 0),
    "10 % at -1000": lambda rng, shape: np.where(rng.random(shape) < 0.1, -1000.0, rng.uniform(-0.1, 0, shape)),
    "2 % at -1e5": lambda rng, shape: np.where(rng.random(shape) < 0.02, -1e5, rng.uniform(-0.1, 0, shape)),
    "2 % at -inf": lambda rng, shape: np.where(rng.random(shape) < 0.02, -np.inf, rng.uniform(-0.1, 0, shape)),
    "0 and -88": lambda rng, shape: np.broadcast_to(np.where(np.arange(shape[2]) % 2, -88.0, 0.0)[:, None], shape),
}  # fmt: skip


def _heads(x: np.ndarray, group: int) -> np.ndarray:
    return np.repeat(x, group, axis=1)


def forward(q, k, v, g, beta, state=None, scale=None):
    """[B, H, T, K] and so on in float64: output, final state, and the state before every token and after the last."""
    group = v.shape[1] // q.shape[1]
    scale = q.shape[3] ** -0.5 if scale is None else scale
    q, k = _heads(q, group), _heads(k, group)
    s = np.zeros((*v.shape[:2], q.shape[3], v.shape[3])) if state is None else state.copy()
    states, outputs = [s], np.zeros(v.shape)
    for t in range(q.shape[2]):
        s = np.exp(g[:, :, t])[..., None] * s
        u = beta[:, :, t, None] * (v[:, :, t] - np.einsum("bhkv,bhk->bhv", s, k[:, :, t]))
        s = s + k[:, :, t, :, None] * u[:, :, None, :]
        outputs[:, :, t] = scale * np.einsum("bhkv,bhk->bhv", s, q[:, :, t])
        states.append(s)
    return outputs, s, states


def backward(q, k, v, g, beta, state, d_output, d_state=None, scale=None):
    """Gradients in the order of INPUTS."""
    H, group = q.shape[1], v.shape[1] // q.shape[1]
    scale = q.shape[3] ** -0.5 if scale is None else scale
    states = forward(q, k, v, g, beta, state, scale)[2]
    q, k = _heads(q, group), _heads(k, group)
    d = np.zeros_like(states[0]) if d_state is None else d_state.copy()
    dq, dk, dv, dg, db = (np.zeros(x.shape) for x in (q, k, v, g, beta))
    for t in reversed(range(q.shape[2])):
        a = np.exp(g[:, :, t])[..., None]
        faded, after, do = a * states[t], states[t + 1], d_output[:, :, t]
        r = v[:, :, t] - np.einsum("bhkv,bhk->bhv", faded, k[:, :, t])
        b = beta[:, :, t, None]
        dq[:, :, t] = scale * np.einsum("bhkv,bhv->bhk", after, do)
        d = d + scale * q[:, :, t, :, None] * do[:, :, None]
        du = np.einsum("bhkv,bhk->bhv", d, k[:, :, t])
        db[:, :, t], dr = (r * du).sum(-1), b * du
        dv[:, :, t] = dr
        dk[:, :, t] = np.einsum("bhkv,bhv->bhk", d, b * r) - np.einsum("bhkv,bhv->bhk", faded, dr)
        d = d - k[:, :, t, :, None] * dr[:, :, None]
        dg[:, :, t] = (d * faded).sum(-1)
        d = a * d
    dq, dk = (x.reshape(x.shape[0], H, group, *x.shape[2:]).sum(2) for x in (dq, dk))
    return dq, dk, dv, dg, db, d


class Case:
    """Random inputs as a dtype holds them, as float64 arrays and as tensors."""

    def __init__(self, rng, B=1, H=2, HV=None, T=70, K=16, V=12, dtype="float32", decay=(-1.0, 0.0), beta=(0.0, 1.0),
                 state=True, cosine=None, norm=1.0, scale=None) -> None:  # fmt: skip
        HV = HV or H
        self.dtype, self.wide, self.scale = dtype, "float64" if dtype == "float64" else "float32", scale
        key = rng.normal(size=(B, H, T, K))
        if cosine is not None:
            common = rng.normal(size=(B, H, 1, K))
            unit = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (common, key)]
            key = np.sqrt(cosine) * unit[0] + np.sqrt(1 - cosine) * unit[1]
        key = norm * key / np.linalg.norm(key, axis=-1, keepdims=True)
        query = rng.normal(size=(B, H, T, K)) * K**-0.5
        g = decay(rng, (B, HV, T, K)) if callable(decay) else rng.uniform(*decay, (B, HV, T, K))
        self.arrays = [
            rounded(query, dtype), rounded(key, dtype), rounded(rng.normal(size=(B, HV, T, V)), dtype),
            rounded(g, self.wide), rounded(rng.uniform(*beta, (B, HV, T)), self.wide),
            rounded(rng.normal(size=(B, HV, K, V)), self.wide) if state else None,
        ]  # fmt: skip
        self.d_output = rounded(rng.normal(size=(B, HV, T, V)), dtype)
        self.d_state = rounded(rng.normal(size=(B, HV, K, V)), self.wide)

    def tensors(self, device: str, requires_grad: bool = False) -> list[Any]:
        kinds = [self.dtype] * 3 + [self.wide] * 3
        return [
            a if a is None else tensor(a, kind, device, requires_grad)
            for a, kind in zip(self.arrays, kinds, strict=True)
        ]

    def gradients_in(self, device: str) -> tuple[vkml.Tensor, vkml.Tensor]:
        return tensor(self.d_output, self.dtype, device), tensor(self.d_state, self.wide, device)

    def forward(self):
        return forward(*self.arrays, self.scale)

    def backward(self, d_output=True, d_state=True):
        d_out = self.d_output if d_output else np.zeros_like(self.d_output)
        return backward(*self.arrays, d_out, self.d_state if d_state else None, self.scale)


def close(got: Any, expected: np.ndarray, bound: float, what: str, axes: int = 2) -> None:
    """Relative RMS per (batch, head), and the largest error against the largest value; all finite."""
    got = to_numpy(got)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    assert np.isfinite(got).all(), f"{what}: {np.count_nonzero(~np.isfinite(got))} elements are not finite"
    flat, want = (x.reshape(int(np.prod(x.shape[:axes])), -1) for x in (got, expected))
    error = np.linalg.norm(flat - want, axis=1)
    size = np.linalg.norm(want, axis=1)
    worst = int(np.argmax(error / np.maximum(size, 1e-30)))
    assert (error <= bound * size + TINY).all(), (
        f"{what}: head {worst} is off by {error[worst] / max(size[worst], 1e-30):.3g} relative RMS, allowed {bound:.3g}"
    )
    largest = np.abs(flat - want).max(axis=1)
    assert (largest <= 10 * bound * np.abs(want).max(axis=1) + TINY).all(), (
        f"{what}: an element is off by {largest.max():.3g}"
    )


def close_rounded(
    got: Any, expected: np.ndarray, dtype: str, bound: float, what: str, wide_bound: float = 2e-6
) -> None:
    """A result of strict mode in `dtype`. 16-bit: the float64 result rounded once, or its neighbour where f32's own
    error decides a tie; and the relative RMS of `bound` where a head has enough elements to speak of one."""
    if dtype in ("float32", "float64"):
        close(got, expected, bound, what)
        return
    values, want = to_numpy(got), rounded(expected, dtype)
    largest = (
        np.abs(expected)
        .reshape(*expected.shape[:2], -1)
        .max(-1)
        .reshape(*expected.shape[:2], *[1] * (expected.ndim - 2))
    )
    assert_within(values, want, spacing(want, dtype) + 10 * wide_bound * largest, what)
    different = np.abs(values - want) > 10 * wide_bound * largest
    assert different.sum() <= 2 + 0.01 * different.size, (
        f"{what}: {different.mean():.1%} of the elements are not the rounded result"
    )
    if expected[0, 0].size >= 500:
        once = max(
            np.linalg.norm(a - b) / np.linalg.norm(b)
            for a, b in zip(*(x.reshape(-1, x[0, 0].size) for x in (want, expected)), strict=True)
        )
        close(got, expected, max(bound, 1.02 * once), what)


def check_forward(case: Case, device: str, factor: float = 1.0, **options: Any) -> vkml.kda.KdaOutput:
    output, state, _ = case.forward()
    got = vkml.chunk_kda(*case.tensors(device), case.scale, **options)
    close_rounded(got.output, output, case.dtype, factor * ROUNDED[case.dtype], "output", factor * 2e-6)
    close(got.final_state, state, factor * STATE[case.dtype], "final_state")
    return got


def check_backward(case: Case, device: str, factor: float = 1.0, decay_factor: float = 1.0, **options: Any) -> Any:
    d_output, d_state = case.gradients_in(device)
    got = vkml.chunk_kda_backward(*case.tensors(device), d_output, d_state, scale=case.scale, **options)
    bounds = [ROUNDED_GRAD] * 3 + [DECAY_GRAD] + [WIDE_GRAD] * 2
    for name, g, want, bound in zip(INPUTS, got, case.backward(), bounds, strict=True):
        more = decay_factor if name == "log_decay" else 1.0
        dtype = case.dtype if bound is ROUNDED_GRAD else case.wide
        close_rounded(g, want, dtype, factor * more * bound[case.dtype], f"gradient of {name}", factor * 3e-6)
    return got


def onnx_cases(op: str) -> dict[str, Any]:
    """The node tests that onnx generates for that operator, by name."""
    return {case.name: case for case in onnx_node_cases(op)}
