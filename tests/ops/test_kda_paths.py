"""Which kernels run: slice widths, segments side by side, fast mode or strict, how many dispatches, and the values."""

from __future__ import annotations

import os

import numpy as np
import pytest
from helpers import assert_same_bits, tensor, to_numpy
from kda_reference import HARD, Case, check_backward, check_forward, close, forward

import vkml


@pytest.fixture(params=["deep", "wide", "half", "narrow"])
def path(request, vulkan):
    if request.param == "deep" and vkml.device_info(vulkan)["shared_memory"] < 49152:
        pytest.skip("needs 48 KiB of shared memory; its other build, wide, runs")
    vkml._core._force_kda_path(request.param)
    yield request.param
    vkml._core._force_kda_path("")


@pytest.mark.parametrize(("K", "V"), [(128, 72), (20, 12), (136, 24)])
def test_every_path(K, V, path, vulkan, rng):
    case = Case(rng, B=1, H=1, HV=2, T=130, K=K, V=V)
    vkml.record_decisions()
    check_forward(case, vulkan)
    check_backward(case, vulkan)
    vkml.stop_recording_decisions()
    chose = {d["chose"] for d in vkml.decisions() if d["site"] == "kda.path"}
    narrow = os.environ.get("VKML_MIN_SPEC") == "1" or (path in ("deep", "wide") and K > 128)
    assert chose == {"narrow" if narrow else path}


@pytest.mark.parametrize("path", ["deep", "wide"], indirect=True)
@pytest.mark.parametrize(("K", "V"), [(128, 40), (40, 16), (56, 6)])
def test_slices_of_32_and_of_16_channels_have_the_same_bits(K, V, path, vulkan, rng):
    inputs = Case(rng, B=1, H=2, T=200, K=K, V=V).tensors(vulkan)
    got = vkml.chunk_kda(*inputs)
    vkml._core._force_kda_path("wide")
    want = vkml.chunk_kda(*inputs)
    assert_same_bits(got.output, want.output)
    assert_same_bits(got.final_state, want.final_state)


@pytest.fixture(params=[2, 5])
def segments(request, vulkan):
    """Segments of so many tiles run side by side."""
    vkml._core._force_kda_segments(request.param)
    yield vulkan
    vkml._core._force_kda_segments(0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("K", "V"), [(20, 13), (128, 40), (256, 8)])
def test_segments(K, V, dtype, segments, rng):
    case = Case(rng, B=1, H=1, HV=2, T=700, K=K, V=V, dtype=dtype)
    vkml.record_decisions()
    got = check_forward(case, segments, retain_boundaries=True)
    vkml.stop_recording_decisions()
    assert {d["chose"] for d in vkml.decisions() if d["site"] == "kda.segments"} == {"segments"}
    close(got.boundaries, np.stack(case.forward()[2][:-1:64]), 2e-6, "boundaries", axes=3)
    check_backward(case, segments)
    check_backward(case, segments, boundaries=got.boundaries)
    again = vkml.chunk_kda(*case.tensors(segments))
    assert_same_bits(again.output, got.output, "two runs")


@pytest.mark.parametrize("decay", HARD)
def test_segments_of_hard_decays(decay, segments, rng):
    check_forward(Case(rng, T=450, K=32, V=16, decay=HARD[decay]), segments)


def test_segments_of_correlated_keys(segments, rng):
    case = Case(rng, T=450, K=32, V=16, decay=(-0.04, 0), beta=(1, 1), cosine=0.99)
    check_forward(case, segments, factor=3)


@pytest.mark.parametrize("at", [130, 255, 256, 440])
def test_segments_are_causal(at, segments, rng):
    case = Case(rng, B=1, H=1, T=450, K=8, V=6)
    before = vkml.chunk_kda(*case.tensors(segments)).output
    for a in case.arrays[:5]:
        a[:, :, at] = np.nan
    after = vkml.chunk_kda(*case.tensors(segments)).output
    assert_same_bits(vkml.narrow(before, 2, 0, at).contiguous(), vkml.narrow(after, 2, 0, at).contiguous())


def test_segments_in_several_slabs(segments, rng):
    case = Case(rng, B=1, H=2, T=900, K=8, V=6, state=False)
    vkml._core._force_kda_workspace(3_000_000)
    try:
        check_forward(case, segments)
        check_backward(case, segments)
    finally:
        vkml._core._force_kda_workspace(0)


def test_when_segments_run(vulkan, rng):
    case = Case(rng, B=1, H=1, T=4200, K=8, V=4)
    for expected, arrays in (("segments", case.arrays), ("one", [a[:, :, :4096] for a in case.arrays[:5]])):
        vkml.record_decisions()
        got = vkml.chunk_kda(*(tensor(a, "float32", vulkan) for a in arrays))
        vkml.stop_recording_decisions()
        assert [d["chose"] for d in vkml.decisions() if d["site"] == "kda.segments"] == [expected]
        close(got.output, forward(*arrays[:5], case.arrays[5] if len(arrays) > 5 else None)[0], 2e-6, "output")


@pytest.mark.parametrize("T", [64, 130, 700])
def test_fast_mode(T, device, rng):
    """On cooperative matrices where the device has them; else the table says why not, and strict runs."""
    case = Case(rng, B=2, H=2, HV=4, T=T, K=128, V=128, dtype="bfloat16")
    output, state, states = case.forward()
    vkml.record_decisions()
    got = vkml.chunk_kda(*case.tensors(device), precision="fast", retain_boundaries=True)
    vkml.stop_recording_decisions()
    chose = {d["chose"]: d for d in vkml.decisions() if d["site"] == "kda.fast"}
    assert (set(chose) <= {"cooperative", "strict"} and len(chose) == 1) if device != "cpu" else not chose
    if "strict" in chose:
        assert chose["strict"]["instead_of"] == "cooperative" and chose["strict"]["because"]
    bound = 5e-3 if "cooperative" in chose else 2e-3
    close(got.output, output, bound, "output")
    close(got.final_state, state, bound, "final_state")
    close(got.boundaries, np.stack(states[:-1:64]), bound, "boundaries", axes=3)
    assert_same_bits(got.output, vkml.chunk_kda(*case.tensors(device), precision="fast").output, "two runs")


@pytest.mark.parametrize("decay", HARD)
def test_fast_mode_of_hard_decays(decay, vulkan, rng):
    case = Case(rng, H=1, T=140, K=128, V=128, decay=HARD[decay], dtype="bfloat16")
    output, state, _ = case.forward()
    got = vkml.chunk_kda(*case.tensors(vulkan), precision="fast")
    close(got.output, output, 5e-3, "output")
    close(got.final_state, state, 5e-3, "final_state")


def dispatches(run) -> int:
    before = vkml.dispatch_count("vulkan:0")
    run()
    return vkml.dispatch_count("vulkan:0") - before


def test_dispatch_counts(vulkan, rng):
    case = Case(rng, T=64, K=16, V=16)
    inputs = case.tensors(vulkan)
    token = [vkml.narrow(x, 2, 0, 1) for x in inputs[:5]]
    assert dispatches(lambda: vkml.chunk_kda(*inputs)) <= 3
    assert dispatches(lambda: vkml.kda_decode(*token, inputs[5])) == 1
    long = Case(rng, T=1500, K=16, V=16)
    long_inputs = long.tensors(vulkan)
    assert dispatches(lambda: vkml.chunk_kda(*long_inputs)) <= 12
    assert dispatches(lambda: vkml.chunk_kda_backward(*long_inputs, *long.gradients_in(vulkan))) <= 24


def test_dispatch_counts_at_the_size_of_the_bars(vulkan, rng):
    """B 1, T 8192, H 32, K = V = 128: 1,811 slots of 148 KB forward and 743 of 361 KB backward, in small."""
    case = Case(rng, B=1, H=4, T=8192, K=16, V=16)
    inputs = case.tensors(vulkan, requires_grad=True)
    try:
        vkml._core._force_kda_segments(
            10**6
        )  # one after the other, as 32 heads would; a quarter of the workspace stays free
        vkml._core._force_kda_workspace((743 * 4 // 32 * 100704 + 3) * 4 // 3)
        loss = vkml.chunk_kda(*inputs).output.sum()
        assert dispatches(lambda: vkml.grad([loss], inputs)) <= 24 + 2  # and the gradient of the sum
        vkml._core._force_kda_workspace((1811 * 4 // 32 * 34656 + 3) * 4 // 3)
        assert dispatches(lambda: vkml.chunk_kda(*(x.detach() for x in inputs))) <= 12
    finally:
        vkml._core._force_kda_segments(0)
        vkml._core._force_kda_workspace(0)


@pytest.mark.parametrize("precision", ["strict", "fast"])
def test_offsets_past_32_bits(precision, vulkan, rng):
    """B 8, T 65536, H 32: query takes 4 GiB, and boundaries have 2^32 elements."""
    if vkml.device_info(vulkan)["total_memory"] < 64 << 30:
        pytest.skip("the tensors take 45 GiB")
    case = Case(rng, B=1, H=1, T=65536, K=128, V=128, dtype="bfloat16", state=False)
    q, k, v, g, beta, _ = case.tensors(vulkan)
    scale = np.full((8, 32, 1, 1), 2.0)  # an output is linear in the values, and powers of two are exact
    scale[0, 0], scale[-1, -1] = 1.0, 4.0
    factors = tensor(scale, "bfloat16", vulkan)
    large = [x.expand(8, 32, *x.shape[2:]).contiguous() for x in (q, k, v, g, beta)]
    large[2] = large[2] * factors
    got = vkml.chunk_kda(*large, retain_boundaries=True, precision=precision)
    want = vkml.chunk_kda(q, k, v, g, beta, retain_boundaries=True, precision=precision)
    bound = 5e-3 if precision == "fast" else 2e-3
    for b, h, factor in ((0, 0, 1), (7, 31, 4), (3, 17, 2)):
        head = vkml.narrow(vkml.narrow(got.output, 0, b, 1), 1, h, 1)
        close(head, factor * to_numpy(want.output), bound, f"output of head {b}, {h}")
        for n in (1, 1023):
            state = vkml.narrow(vkml.narrow(vkml.select(got.boundaries, 0, n), 0, b, 1), 1, h, 1)
            expected = factor * to_numpy(vkml.select(want.boundaries, 0, n))
            close(state, expected, bound if precision == "fast" else 4e-6, f"state {n} of head {b}, {h}")
