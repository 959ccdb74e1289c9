"""The generated LinearAttention node tests of the onnx package, as an oracle nobody here wrote."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from helpers import onnx_node_cases, tensor, to_numpy

import vkml

# "linear", "gated" and "gated_per_head_decay" add k v^T without the delta correction: another operator.
NAMES = [
    "gated_delta", "gated_delta_beta_scalar", "decode_step", "prefill_with_past", "no_past_explicit_zeros", "explicit_scale",
    "gated_delta_gqa", "gated_delta_mqa", "fp16", "delta", "linear_t1_no_past",
]  # fmt: skip


@functools.cache
def cases() -> dict:
    return {c.name.removeprefix("test_linear_attention_"): c for c in onnx_node_cases("LinearAttention")}


def split(x: np.ndarray, heads: int) -> np.ndarray:
    """[B, T, heads * width] -> [B, heads, T, width]."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("name", NAMES)
def test_linear_attention(name, device):
    case = cases()[name]
    node = case.model.graph.node[0]
    inputs, (output, state) = case.data_sets[0]
    given = dict(zip((n for n in node.input if n), inputs, strict=True))
    numbers = {a.name: a.f or a.i for a in node.attribute}
    q_heads, heads = int(numbers["q_num_heads"]), int(numbers["kv_num_heads"])
    group = q_heads // heads
    dtype = "float16" if given["query"].dtype == np.float16 else "float32"
    q = split(given["query"], q_heads)
    # Here several queries share one state; in KDA several states share one query: repeat what belongs to the state.
    k, v = (np.repeat(split(given[n], heads), group, 1) for n in ("key", "value"))
    B, _, T, K = q.shape
    g = np.repeat(split(given["decay"], heads), group, 1) if "decay" in given else np.zeros(k.shape)
    beta = np.ones((B, q_heads, T))
    if "beta" in given:
        b = given["beta"].transpose(0, 2, 1)
        beta = np.broadcast_to(b, (B, heads, T)) if b.shape[1] == 1 else b
        beta = np.repeat(beta, group, 1)
    past = np.repeat(given["past_state"], group, 1) if "past_state" in given else None
    got = vkml.chunk_kda(
        *(tensor(x, dtype, device) for x in (q, k, v)), tensor(g, "float32", device), tensor(beta, "float32", device),
        None if past is None else tensor(past, "float32", device), numbers.get("scale") or None,
    )  # fmt: skip
    shown = to_numpy(got.output).transpose(0, 2, 1, 3).reshape(output.shape)
    last = to_numpy(got.final_state)[:, ::group]
    if dtype == "float16":
        np.testing.assert_allclose(shown, output, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(last.astype(np.float16), state, rtol=1e-3, atol=1e-3)
    else:
        np.testing.assert_allclose(shown, output, rtol=1e-5, atol=2e-6)
        np.testing.assert_allclose(last, state, rtol=1e-5, atol=2e-6)


def test_every_case_is_known():
    assert sorted(cases()) == sorted([*NAMES, "linear", "gated", "gated_per_head_decay"])
