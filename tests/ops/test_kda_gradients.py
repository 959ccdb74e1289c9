"""chunk_kda_backward and autograd: the float64 reverse, finite differences, identities, and the readable recurrence."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import LAYOUTS, assert_same_bits, laid_out, tensor, to_numpy
from kda_reference import INPUTS, ROUNDED, STATE, Case, check_backward, close, forward

import vkml


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("T", [1, 2, 17, 64, 65, 130])
def test_against_the_reverse_recurrence(T, dtype, device, rng):
    if dtype == "float64" and device != "cpu":
        pytest.skip("float64 is for the CPU")
    check_backward(Case(rng, B=2, H=1, HV=1, T=T, K=12, V=20, dtype=dtype), device)


@pytest.mark.parametrize(("K", "V"), [(64, 128), (128, 64), (1, 5), (60, 1), (256, 7), (5, 256)])
def test_widths(K, V, device, rng):
    # Keys of one channel are all parallel, and beta comes near 1: the bounds of key cosine 0.9 and more.
    check_backward(Case(rng, B=1, H=1, T=67, K=K, V=V), device, factor=3 if K == 1 else 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_grouped_heads(dtype, device, rng):
    check_backward(Case(rng, B=2, H=2, HV=6, T=70, K=12, V=20, dtype=dtype), device)


@pytest.mark.parametrize("chunk_size", [1, 3, 64, 65, 128, 10**6])
def test_boundaries_change_nothing(chunk_size, device, rng):
    case = Case(rng, B=1, H=2, T=200, K=8, V=6)
    inputs, (d_output, d_state) = case.tensors(device), case.gradients_in(device)
    states = vkml.chunk_kda(*inputs, None, chunk_size, True).boundaries
    got = vkml.chunk_kda_backward(*inputs, d_output, d_state, states, chunk_size=chunk_size)
    for name, a, b in zip(INPUTS, got, case.backward(), strict=True):
        close(a, b, 5e-6 if name == "log_decay" else 3e-6, name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, device, rng):
    case = Case(rng, B=2, H=2, T=66, K=8, V=4)
    held = [laid_out(layout, a, "float32", device) for a in (*case.arrays, case.d_output, case.d_state)]
    got = vkml.chunk_kda_backward(*(t for t, _ in held))
    packed = vkml.chunk_kda_backward(*(tensor(values, "float32", device) for _, values in held))
    for name, a, b in zip(INPUTS, got, packed, strict=True):
        assert_same_bits(a, b, name)


@pytest.mark.parametrize("given", ["output", "final_state", "both"])
@pytest.mark.parametrize("state", [True, False])
def test_autograd_is_the_backward(given, state, device, rng):
    case = Case(rng, B=1, H=2, HV=4, T=300, K=8, V=6, state=state)
    inputs, (d_output, d_state) = case.tensors(device, requires_grad=True), case.gradients_in(device)
    out = vkml.chunk_kda(*inputs)
    loss = 0
    if given != "final_state":
        loss = loss + (out.output * d_output).sum()
    if given != "output":
        loss = loss + (out.final_state * d_state).sum()
    loss.backward()
    with vkml.no_grad():
        want = vkml.chunk_kda_backward(
            *inputs, d_output if given != "final_state" else None, d_state if given != "output" else None
        )
    reference = case.backward(given != "final_state", given != "output")
    for name, x, a, b in zip(INPUTS, inputs, want, reference, strict=True):
        if x is not None:
            close(x.grad, to_numpy(a), 3e-6, f"gradient of {name}")
            close(x.grad, b, 5e-6 if name == "log_decay" else 3e-6, f"gradient of {name}")


def test_autograd_with_boundaries(device, rng):
    case = Case(rng, T=200, K=8, V=6)
    for chunk_size in (64, 65):
        inputs = case.tensors(device, requires_grad=True)
        out = vkml.chunk_kda(*inputs, None, chunk_size, True)
        assert not out.boundaries.requires_grad
        (out.output * case.gradients_in(device)[0]).sum().backward()
        for name, x, want in zip(INPUTS, inputs, case.backward(d_state=False), strict=True):
            close(x.grad, want, 5e-6 if name == "log_decay" else 3e-6, f"gradient of {name}")


def test_only_some_inputs_want_gradients(device, rng):
    case = Case(rng, T=20, K=8, V=6)
    q, k, v, g, beta, s = case.tensors(device)
    g.requires_grad_()
    vkml.chunk_kda(q, k, v, g, beta, s).output.sum().backward()
    assert g.grad is not None and q.grad is None and s.grad is None


def test_second_derivatives_are_refused_in_words(rng):
    inputs = Case(rng, T=5, K=4, V=3).tensors("cpu", requires_grad=True)
    out = vkml.chunk_kda(*inputs).output.sum()
    (dq,) = vkml.grad([out], [inputs[0]], create_graph=True)
    with pytest.raises(vkml.Error, match="naive_recurrent_kda"):
        dq.sum().backward()


def test_finite_differences(rng):
    case = Case(rng, B=1, H=1, HV=2, T=9, K=4, V=3, dtype="float64")
    inputs = case.tensors("cpu")
    got = vkml.chunk_kda_backward(*inputs, *case.gradients_in("cpu"))

    def loss(arrays):
        out = vkml.chunk_kda(*(tensor(a, "float64") for a in arrays))
        return (to_numpy(out.output) * case.d_output).sum() + (to_numpy(out.final_state) * case.d_state).sum()

    for which, name in enumerate(INPUTS):
        slopes = np.zeros(case.arrays[which].shape)
        for at in np.ndindex(slopes.shape):
            arrays = [a.copy() for a in case.arrays]
            arrays[which][at] += 1e-6
            plus = loss(arrays)
            arrays[which][at] -= 2e-6
            slopes[at] = (plus - loss(arrays)) / 2e-6
        close(got[which], slopes, 1e-6, f"gradient of {name}", axes=1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_naive_recurrence(dtype, device, rng):
    case = Case(rng, B=1, H=1, HV=2, T=7, K=4, V=3, dtype=dtype)
    inputs = case.tensors(device, requires_grad=True)
    out = vkml.naive_recurrent_kda(*inputs)
    output, state, _ = case.forward()
    close(out.output, output, ROUNDED[dtype], "output")
    close(out.final_state, state, STATE[dtype], "final_state")
    d_output, d_state = case.gradients_in(device)
    ((out.output * d_output).sum() + (out.final_state * d_state).sum()).backward()
    for name, x, got in zip(
        INPUTS, inputs, vkml.chunk_kda_backward(*(t.detach() for t in inputs), d_output, d_state), strict=True
    ):
        assert x.grad.dtype == x.dtype and got.dtype == x.dtype, name
        close(x.grad, to_numpy(got), 5e-6 if x.dtype == vkml.float32 else 1e-2, f"gradient of {name}")


# Identities -----------------------------------------------------------------------------------------------------------


def test_identities(device, rng):
    case = Case(rng, B=1, H=2, T=400, K=16, V=12)
    q, k, v, _, beta, s = case.arrays
    out = vkml.chunk_kda(*case.tensors(device))
    o, last = to_numpy(out.output), to_numpy(out.final_state)
    dq, dk, dv, _, db, ds = map(to_numpy, vkml.chunk_kda_backward(*case.tensors(device), *case.gradients_in(device)))
    do, dl = case.d_output, case.d_state

    def holds(*terms):
        assert abs(sum(x.sum() for x in terms)) <= 1e-6 * sum(np.abs(x).sum() for x in terms)

    holds(dv * v, ds * s, -do * o, -dl * last)
    only_output = to_numpy(vkml.chunk_kda_backward(*case.tensors(device), case.gradients_in(device)[0]).query)
    per_token = np.abs((only_output * q).sum(-1) - (do * o).sum(-1))
    assert (per_token <= 1e-6 * (np.abs(dq * q).sum(-1) + np.abs(do * o).sum(-1))).all()
    holds(k * dk, -2 * beta * db, -s * ds, q * dq, dl * last)


def test_linearity(device, rng):
    case = Case(rng, B=1, H=2, T=100, K=16, V=12)
    d_output, d_state = case.gradients_in(device)
    inputs = case.tensors(device)
    parts = [vkml.chunk_kda_backward(*inputs, d_output, None), vkml.chunk_kda_backward(*inputs, None, d_state)]
    both = vkml.chunk_kda_backward(*inputs, d_output, d_state)
    for name, a, b, c in zip(INPUTS, *parts, both, strict=True):
        close(c, to_numpy(a) + to_numpy(b), 3e-6, name)


def test_two_runs_give_the_same_bits(device, rng):
    case = Case(rng, B=2, H=1, HV=3, T=100, K=16, V=20)
    first, second = (vkml.chunk_kda_backward(*case.tensors(device), *case.gradients_in(device)) for _ in range(2))
    for name, a, b in zip(INPUTS, first, second, strict=True):
        assert_same_bits(a, b, name)


def test_directional_derivative(device, rng):
    case = Case(rng, B=1, H=1, T=150, K=8, V=6)
    grads = vkml.chunk_kda_backward(*case.tensors(device), *case.gradients_in(device))
    for which, name in enumerate(INPUTS):
        direction = rng.normal(size=case.arrays[which].shape)
        values = []
        for step in (1e-6, -1e-6):
            arrays = [a.copy() for a in case.arrays]
            arrays[which] += step * direction
            o, s, _ = forward(*arrays)
            values.append((o * case.d_output).sum() + (s * case.d_state).sum())
        want = (values[0] - values[1]) / 2e-6
        terms = to_numpy(grads[which]) * direction
        assert abs(terms.sum() - want) <= 3e-6 * np.abs(terms).sum() + 1e-6 * abs(want), name
