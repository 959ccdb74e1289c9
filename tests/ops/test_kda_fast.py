"""Precision "fast": the kernels for cooperative matrices, as they are where the device has those, else in plain
arithmetic."""

from __future__ import annotations

import os

import numpy as np
import pytest
from helpers import assert_same_bits, tensor, to_numpy
from kda_reference import HARD, INPUTS, Case, close

import vkml

FORWARD, CORRELATED = 5e-3, 2e-2
GRADIENTS = dict(zip(INPUTS, (1e-2, 1e-2, 1e-2, 2e-2, 2e-2, 2e-2), strict=True))


@pytest.fixture
def fast(vulkan):
    """A device whose fast mode runs these kernels."""
    if os.environ.get("VKML_MIN_SPEC") == "1":
        pytest.skip("the kernels take 256 invocations")
    if "bfloat16" not in str(vkml.device_info(vulkan).get("cooperative_matrices", "")):
        vkml._core._force_kda_path("emulated")
    yield vulkan
    vkml._core._force_kda_path("")


def chosen(site: str) -> set[str]:
    return {d["chose"] for d in vkml.decisions() if d["site"] == site}


def of(case: Case, device: str, **options) -> vkml.kda.KdaOutput:
    vkml.record_decisions()
    got = vkml.chunk_kda(*case.tensors(device), precision="fast", **options)
    vkml.stop_recording_decisions()
    assert chosen("kda.fast") <= {"cooperative", "emulated"}, "strict ran"
    assert chosen("kda.fast")
    return got


def backward_of(case: Case, device: str, **options) -> vkml.kda.KdaGradients:
    vkml.record_decisions()
    got = vkml.chunk_kda_backward(*case.tensors(device), *case.gradients_in(device), precision="fast", **options)
    vkml.stop_recording_decisions()
    assert chosen("kda.fast_backward") <= {"cooperative", "emulated"}, "strict ran"
    assert chosen("kda.fast_backward")
    return got


def case_of(rng, **options) -> Case:
    return Case(rng, **{"H": 1, "K": 128, "V": 128, "dtype": "bfloat16"} | options)


def check_backward(case: Case, got: vkml.kda.KdaGradients, factor: float = 1.0) -> None:
    for name, g, want in zip(INPUTS, got, case.backward(), strict=True):
        close(g, want, factor * GRADIENTS[name], f"gradient of {name}")


@pytest.mark.parametrize("T", [2, 64, 130, 321])
def test_forward(T, fast, rng):
    case = case_of(rng, B=2, H=1, HV=2, T=T)
    output, state, states = case.forward()
    got = of(case, fast, retain_boundaries=True)
    close(got.output, output, FORWARD, "output")
    close(got.final_state, state, FORWARD, "final_state")
    close(got.boundaries, np.stack(states[:-1:64]), FORWARD, "boundaries", axes=3)
    assert_same_bits(got.output, of(case, fast).output, "two runs, and no boundaries")


@pytest.mark.parametrize("T", [2, 64, 130, 321])
@pytest.mark.parametrize("state", [True, False])
def test_backward(T, state, fast, rng):
    case = case_of(rng, B=2, T=T, state=state)
    got = backward_of(case, fast)
    check_backward(case, got)
    again = backward_of(case, fast)
    for name, a, b in zip(INPUTS, got, again, strict=True):
        assert_same_bits(a, b, name)


@pytest.mark.parametrize("decay", HARD)
def test_hard_decays(decay, fast, rng):
    case = case_of(rng, T=140, decay=HARD[decay])
    output, state, _ = case.forward()
    got = of(case, fast)
    close(got.output, output, FORWARD, "output")
    close(got.final_state, state, FORWARD, "final_state")
    check_backward(case, backward_of(case, fast))


@pytest.mark.parametrize("cosine", [0.9, 0.99])
def test_correlated_keys(cosine, fast, rng):
    case = case_of(rng, T=128, decay=(-0.04, 0), beta=(1, 1), cosine=cosine)
    output, state, _ = case.forward()
    got = of(case, fast)
    close(got.output, output, CORRELATED, "output")
    close(got.final_state, state, CORRELATED, "final_state")
    for name, g, want in zip(INPUTS, backward_of(case, fast), case.backward(), strict=True):
        close(g, want, CORRELATED, f"gradient of {name}")


@pytest.mark.parametrize("chunk_size", [64, 128, 192, 10**6])
def test_backward_from_stored_states(chunk_size, fast, rng):
    case = case_of(rng, B=1, H=2, T=450)
    states = of(case, fast, chunk_size=chunk_size, retain_boundaries=True).boundaries
    check_backward(case, backward_of(case, fast, boundaries=states, chunk_size=chunk_size))


def test_autograd(fast, rng):
    case = case_of(rng, B=1, H=2, T=450)
    inputs = case.tensors(fast, requires_grad=True)
    d_output, d_state = case.gradients_in(fast)
    vkml.record_decisions()
    out = vkml.chunk_kda(*inputs, precision="fast")
    ((out.output * d_output).sum() + (out.final_state * d_state).sum()).backward()
    vkml.stop_recording_decisions()
    assert chosen("kda.fast_backward") <= {"cooperative", "emulated"}
    for name, x, want in zip(INPUTS, inputs, case.backward(), strict=True):
        close(x.grad, want, GRADIENTS[name], f"gradient of {name}")


def test_slabs(fast, rng):
    """Little workspace: several slabs and few heads at a time give the same bits."""
    case = case_of(rng, B=1, H=3, T=450)
    whole, gradients = of(case, fast), backward_of(case, fast)
    emulated = "emulated" in chosen("kda.fast_backward")
    slot = 205824 + (262144 if emulated else 0)
    vkml._core._force_kda_workspace(9 * slot)
    try:
        got, pieces = of(case, fast), backward_of(case, fast)
    finally:
        vkml._core._force_kda_workspace(0)
    assert_same_bits(got.output, whole.output)
    assert_same_bits(got.final_state, whole.final_state)
    for name, a, b in zip(INPUTS, pieces, gradients, strict=True):
        assert_same_bits(a, b, name)


def test_transposed_inputs(fast, rng):
    """[B, T, H, K] memory, as a layer has it."""
    case = case_of(rng, B=2, H=2, T=70)
    inputs = case.tensors(fast)
    d_output, d_state = case.gradients_in(fast)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs[:5]]
    got = vkml.chunk_kda(*turned, inputs[5], precision="fast")
    want = vkml.chunk_kda(*inputs, precision="fast")
    assert_same_bits(got.output, want.output)
    d_turned = d_output.transpose(1, 2).contiguous().transpose(1, 2)
    a = vkml.chunk_kda_backward(*turned, inputs[5], d_turned, d_state, precision="fast")
    b = vkml.chunk_kda_backward(*inputs, d_output, d_state, precision="fast")
    for name, x, y in zip(INPUTS, a, b, strict=True):
        assert_same_bits(x, y, name)


def test_no_step_gives_no_gradient_to_key_and_value(fast, rng):
    case = case_of(rng, T=100, beta=(0, 0), decay=(-0.1, 0))
    got = backward_of(case, fast)
    assert (to_numpy(got.key) == 0).all() and (to_numpy(got.value) == 0).all() and (to_numpy(got.beta) != 0).any()
    check_backward(case, got)


@pytest.mark.parametrize("beta", [(0, 0.015), (1e-4, 1e-3)])
def test_gradients_of_small_steps(beta, fast, rng):
    case = case_of(rng, T=100, beta=beta)
    check_backward(case, backward_of(case, fast))


REFUSED = {
    "value heads share a query head": {"H": 1, "HV": 2},
    "K and V are not 128": {"K": 64},
    "the tensors are not bfloat16": {"dtype": "float32"},
}


@pytest.mark.parametrize("because", REFUSED)
def test_what_runs_strict(because, fast, rng):
    case = case_of(rng, T=70, **REFUSED[because])
    vkml.record_decisions()
    got = vkml.chunk_kda_backward(*case.tensors(fast), *case.gradients_in(fast), precision="fast")
    vkml.stop_recording_decisions()
    assert chosen("kda.fast_backward") == {"strict"}
    for name, g, want in zip(INPUTS, got, case.backward(), strict=True):
        close(g, want, GRADIENTS[name], f"gradient of {name}")


def test_missing_output_gradient_runs_strict(fast, rng):
    case = case_of(rng, T=70)
    vkml.record_decisions()
    got = vkml.chunk_kda_backward(*case.tensors(fast), None, tensor(case.d_state, "float32", fast), precision="fast")
    vkml.stop_recording_decisions()
    assert chosen("kda.fast_backward") == {"strict"}
    close(got.initial_state, case.backward(d_output=False)[5], 1e-5, "gradient of initial_state")
