"""Every path of conv2d by name, at odd sizes, with its gradients, against PyTorch in float64; which one is taken."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from helpers import EPS, assert_same_bits, rounded, tensor, to_numpy

import vkml
from vkml import _core

PATHS = ["pointwise", "direct", "implicit", "im2col", "implicit_small", "implicit_wide", "implicit_square"]

# x, weight, stride, padding, dilation, groups
Case = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int], tuple[int, int], int]
CASES: list[Case] = [
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 6, 7), (4, 3, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    ((2, 16, 9, 8), (65, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 5, 31, 33), (33, 5, 3, 3), (2, 1), (1, 2), (1, 2), 1),
    ((3, 8, 8, 12), (12, 8, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 8, 15, 13), (20, 2, 1, 1), (2, 3), (0, 0), (1, 1), 4),
    ((2, 6, 17, 20), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), 6),
    ((2, 6, 17, 20), (12, 1, 5, 3), (2, 2), (2, 1), (1, 1), 6),
    ((1, 4, 20, 20), (6, 2, 4, 4), (3, 2), (2, 3), (2, 3), 2),
    ((2, 127, 5, 5), (31, 127, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 2, 63, 65), (127, 2, 2, 2), (2, 2), (1, 0), (3, 1), 1),
    ((1, 3, 16, 16), (2, 3, 7, 7), (3, 3), (2, 2), (1, 1), 1),
    ((1, 2, 1, 65), (4, 1, 1, 9), (1, 2), (0, 4), (1, 1), 2),
    ((2, 3, 9, 4), (3, 1, 8, 2), (1, 1), (4, 1), (1, 1), 3),
]
# Sizes that no list above has, one path each: the one the table takes.
SIZES = (1, 2, 31, 33, 63, 65, 127)
MORE: list[Case] = [
    *(((1, c, 7, 9), (c, c, 3, 3), (1, 1), (1, 1), (1, 1), 1) for c in SIZES),
    *(((2, 5, 4, n), (9, 5, 3, 3), (1, 1), (1, 1), (1, 1), 1) for n in SIZES),
    *(((2, 4, n, 5), (10, 4, 3, 1), (2, 1), (1, 0), (1, 1), 1) for n in SIZES),
    *(((n % 4 + 1, 3, 11, 8), (n, 3, 2, 3), (1, 2), (0, 1), (2, 1), 1) for n in SIZES),
    *(((1, n, 6, 10), (n, 1, 3, 3), (1, 1), (1, 1), (1, 1), n) for n in SIZES),
    *(((1, 12, 10, 6), (6, 12 // g, 3, 3), (2, 2), (1, 1), (1, 1), g) for g in (1, 2, 3, 6)),
    *(((1, 3, 12, 12), (5, 3, 2, 2), s, (1, 1), d, 1) for s in ((1, 1), (2, 3), (4, 4)) for d in ((1, 1), (2, 5))),
]


def options(case: Case) -> dict:
    return dict(zip(("stride", "padding", "dilation", "groups"), case[2:], strict=True))


def draw(case: Case, dtype: str) -> list[np.ndarray]:
    """Input, weight and bias as the dtype holds them."""
    rng = np.random.default_rng([*case[0], *case[1], *case[2]])
    return [rounded(rng.standard_normal(s), dtype) for s in (case[0], case[1], case[1][:1])]


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every convolution takes this path where it can."""
    _core._force_conv2d(request.param)
    yield request.param
    _core._force_conv2d("")


@pytest.fixture
def named() -> Iterator:
    """A function that forces a path by name for the rest of the test."""
    yield _core._force_conv2d
    _core._force_conv2d("")


def chosen(call) -> list[tuple[str, str, str]]:
    """(operator, path, reason) of every choice that the call made."""
    vkml.record_decisions(64)
    call()
    vkml.stop_recording_decisions()
    return [(d["op"], d["chose"], d["because"]) for d in vkml.decisions() if d["site"] == "conv2d.path"]


def with_gradients(
    case: Case, dtype: str, device: str, arrays: list[np.ndarray], seed: np.ndarray
) -> list[vkml.Tensor]:
    leaves = [tensor(a, dtype, device, requires_grad=True) for a in arrays]
    out = vkml.conv2d(*leaves, **options(case))
    out.backward(tensor(seed, dtype, device))
    return [out.detach(), *(leaf.grad for leaf in leaves)]


def torch_results(torch, case: Case, arrays: list[np.ndarray], seed: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each result in float64, and the same from the magnitudes of all terms."""
    rows = []
    for values in ([*arrays, seed], [np.abs(a) for a in (*arrays, seed)]):
        leaves = [torch.from_numpy(a.astype(np.float64)).requires_grad_() for a in values[:-1]]
        out = torch.nn.functional.conv2d(*leaves, **options(case))
        out.backward(torch.from_numpy(values[-1].astype(np.float64)))
        rows.append([out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)])
    return list(zip(*rows, strict=True))


def seed_of(case: Case, dtype: str) -> np.ndarray:
    (n, _, h, w), (o, _, kh, kw), s, p, d, _ = case
    size = [
        (e + 2 * pp - dd * (k - 1) - 1) // ss + 1 for e, k, ss, pp, dd in zip((h, w), (kh, kw), s, p, d, strict=True)
    ]
    return rounded(np.random.default_rng([1, *case[0]]).standard_normal((n, o, *size)), dtype)


def terms(case: Case, seed: np.ndarray) -> list[int]:
    """How many products each of the results adds, at most."""
    _, (o, c, kh, kw), *_, groups = case
    pixels = seed.size // o
    return [c * kh * kw + 1, o // groups * kh * kw, pixels, pixels]


def check(case: Case, dtype: str, device: str) -> None:
    torch = pytest.importorskip("torch")
    arrays, seed = draw(case, dtype), seed_of(case, dtype)
    got = with_gradients(case, dtype, device, arrays, seed)
    own = EPS[dtype] / 2 if dtype in ("float16", "bfloat16") else 0.0
    eps = EPS["float64" if dtype == "float64" else "float32"]
    for g, (exact, size), k in zip(got, torch_results(torch, case, arrays, seed), terms(case, seed), strict=True):
        error = np.abs(to_numpy(g) - exact)
        allowed = (k / 32 + np.log2(k) + 33) * eps * size
        allowed = allowed + own * (np.abs(exact) + allowed) + (2.0**-25 if dtype == "float16" else 0.0)
        assert g.shape == exact.shape and (error <= allowed + 1e-300).all(), float((error / (allowed + 1e-300)).max())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_path(vulkan: str, path: str, case: Case) -> None:
    check(case, "float32", vulkan)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("case", [CASES[i] for i in (2, 3, 7, 8)], ids=str)
@pytest.mark.parametrize("name", ["pointwise", "direct", "coopmat", "implicit", "im2col"])
def test_every_dtype(vulkan: str, named, name: str, dtype: str, case: Case) -> None:
    named(name)  # where there are no cooperative matrices they fall back to im2col
    check(case, dtype, vulkan)


@pytest.mark.parametrize("case", MORE, ids=str)
def test_against_torch(device: str, case: Case) -> None:
    check(case, "float32", device)


@pytest.mark.parametrize("case", [CASES[i] for i in (1, 3, 7, 8)], ids=str)
def test_second_derivatives(vulkan: str, path: str, case: Case) -> None:
    """Gradients of a directional derivative, against PyTorch's in float64."""
    torch = pytest.importorskip("torch")
    arrays, seed = draw(case, "float64"), seed_of(case, "float64")
    directions = [np.random.default_rng(i).standard_normal(a.shape) for i, a in enumerate(arrays)]

    def twice(make, conv, grad) -> list:
        leaves = [make(a).requires_grad_() for a in arrays]
        out = conv(*leaves, **options(case))
        first = grad([(out * out * make(seed)).sum()], leaves, create_graph=True)
        along = sum((g * make(d)).sum() for g, d in zip(first, directions, strict=True))
        return grad([along], leaves)

    got = twice(lambda a: tensor(a, "float64", vulkan), vkml.conv2d, vkml.grad)
    expected = twice(torch.from_numpy, torch.nn.functional.conv2d, torch.autograd.grad)
    for g, e in zip(got, expected, strict=True):
        assert np.abs(to_numpy(g) - e.numpy()).max() <= 1e-11 * np.abs(e.numpy()).max()


def test_layouts_are_read_in_place(vulkan: str, path: str) -> None:
    """Channels-last memory, a stepped image, channel slices and a sliced weight give the bits of their copies."""
    rng = np.random.default_rng(0)
    wide = tensor(rng.standard_normal((2, 9, 14, 8)), "float32", vulkan)
    deep = tensor(rng.standard_normal((12, 8, 3, 3, 3)), "float32", vulkan)
    for x in (wide.permute(0, 3, 1, 2), wide[:, :8, ::2].permute(0, 1, 3, 2)):
        weight = deep[:, :, 1]
        assert not x.is_contiguous() and not weight.is_contiguous()
        expected = vkml.conv2d(x.contiguous(), weight.contiguous(), padding=1)
        assert_same_bits(vkml.conv2d(x, weight, padding=1), expected)


@pytest.mark.parametrize("case", [CASES[i] for i in (2, 6, 9)], ids=str)
def test_same_bits_again_and_in_any_batch(vulkan: str, path: str, case: Case) -> None:
    arrays, seed = draw(case, "float32"), seed_of(case, "float32")
    first, again = (with_gradients(case, "float32", vulkan, arrays, seed) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert_same_bits(a, b)
    alone = with_gradients(case, "float32", vulkan, [arrays[0][1:], *arrays[1:]], seed[1:])
    for whole, one in zip(first[:2], alone[:2], strict=True):
        assert_same_bits(whole[1:].contiguous(), one)


def test_tiles_have_one_order_of_sums(vulkan: str, named) -> None:
    """1161 terms: more than one chain, so that the large tiles add to what they stored."""
    case = CASES[9]
    case = ((2, 129, 9, 8), (130, 129, 3, 3), *case[2:])
    arrays, results = draw(case, "float32"), []
    for name in ("implicit_small", "implicit_wide", "implicit_square"):
        named(name)
        results.append(vkml.conv2d(*(tensor(a, "float32", vulkan) for a in arrays), **options(case)))
    assert_same_bits(results[0], results[1])
    assert_same_bits(results[0], results[2])


def test_long_sums_of_one_sign(vulkan: str, path: str) -> None:
    """A gradient of 2^16 equal terms for each weight, and 2^13 terms for each output."""
    x = (
        vkml.full((4, 64, 128, 128), 0.1, device=vulkan)
        if path != "im2col"
        else vkml.full((1, 64, 32, 32), 0.1, device=vulkan)
    )
    n = x.shape[0] * x.shape[2] * x.shape[3]
    w = vkml.full((1, 64, 1, 1), 0.1, device=vulkan).requires_grad_()
    vkml.conv2d(x, w).backward(vkml.full((x.shape[0], 1, *x.shape[2:]), 0.1, device=vulkan))
    exact = n * float(np.float32(0.1)) ** 2
    assert np.abs(to_numpy(w.grad) - exact).max() <= (n / 32 + 50) * 2.0**-23 * exact


# Which path ----------------------------------------------------------------------------------------------------------


def all_choices(case: Case, dtype: str, device: str) -> list[tuple[str, str, str]]:
    return chosen(lambda: with_gradients(case, dtype, device, draw(case, dtype), seed_of(case, dtype)))


def test_the_table(vulkan: str) -> None:
    def paths(case: Case, dtype: str = "float32") -> list[str]:
        return [c[1] for c in all_choices(case, dtype, vulkan)]

    assert [c[0] for c in all_choices(CASES[2], "float32", vulkan)] == [
        "conv2d", "conv2d_input_gradient", "conv2d_weight_gradient",
    ]  # fmt: skip
    assert paths(CASES[2]) == ["implicit"] * 3
    assert paths(CASES[6]) == ["direct"] * 3
    square = ((1, 64, 16, 16), (64, 64, 1, 1), (1, 1), (0, 0), (1, 1), 1)
    assert paths(square) == ["pointwise", "pointwise", "implicit"]
    assert set(paths(((1, 12, 40, 1), (20, 12, 33, 1), (1, 1), (0, 0), (1, 1), 1))) == {"im2col"}
    before = vkml.get_float32_matmul_precision()
    vkml.set_float32_matmul_precision("exact")
    try:
        assert paths(CASES[2]) == ["im2col"] * 3
    finally:
        vkml.set_float32_matmul_precision(before)


def test_cooperative_matrices_say_why_not(vulkan: str, named) -> None:
    named("coopmat")
    for _, path, because in all_choices(CASES[2], "bfloat16", vulkan):
        assert path == "coopmat" or (path == "im2col" and "cooperative matrices of this dtype" in because)
    assert {c[1:] for c in all_choices(CASES[2], "float32", vulkan)} == {
        ("im2col", "cooperative matrices are for f16 and bf16")
    }


def test_names_are_checked() -> None:
    assert {*PATHS, "coopmat"} == set(_core._conv2d_paths())
    with pytest.raises(vkml.ShapeError, match=r"^force_conv2d: expected the name of a path, got fft$"):
        _core._force_conv2d("fft")
    assert "VKML_CONV2D_PATH" in [s["name"] for s in vkml.configuration()]


def test_cpu_multiplies_columns(named) -> None:
    assert {c[1] for c in all_choices(CASES[6], "float32", "cpu")} == {"im2col"}
    named("implicit")
    assert {c[2] for c in all_choices(CASES[2], "float32", "cpu")} == {"the device is the CPU"}


# What only cooperative matrices use ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "groups"), [((2, 8, 8, 8), 1), ((1, 70, 5, 13), 1), ((3, 12, 9, 8), 4), ((2, 130, 3, 24), 2)]
)
def test_channels_last_copies(vulkan: str, dtype: str, shape: tuple[int, ...], groups: int) -> None:
    n, channels, h, w = shape
    x = tensor(np.random.default_rng(0).standard_normal(shape), dtype, vulkan)
    each = channels // groups
    padded = np.zeros((n, h * w, groups, (each + 7) // 8 * 8))
    padded[..., :each] = to_numpy(x).reshape(n, groups, each, h * w).transpose(0, 3, 1, 2)
    assert np.array_equal(to_numpy(_core._conv2d_channels_last(x, groups)), padded)
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert np.array_equal(to_numpy(_core._conv2d_channels_last(last, groups)), padded)


# conv_transpose2d ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "weight", "kwargs"),
    [
        ((2, 4, 5, 6), (4, 3, 3, 2), {}),
        ((2, 4, 5, 6), (4, 3, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
        ((1, 6, 7, 1), (6, 1, 2, 5), {"stride": (3, 2), "padding": (0, 2), "dilation": (2, 1), "groups": 6}),
        ((1, 3, 4, 5), (3, 33, 3, 3), {"dilation": 3, "padding": 2, "output_padding": (2, 1)}),
    ],
)
def test_conv_transpose2d(device: str, shape: tuple, weight: tuple, kwargs: dict) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in (shape, weight, (weight[1] * kwargs.get("groups", 1),))]
    mine = [tensor(a, "float64", device, requires_grad=True) for a in arrays]
    theirs = [torch.from_numpy(a).requires_grad_() for a in arrays]
    out, expected = vkml.conv_transpose2d(*mine, **kwargs), torch.nn.functional.conv_transpose2d(*theirs, **kwargs)
    seed = rng.standard_normal(tuple(expected.shape))
    out.backward(tensor(seed, "float64", device))
    expected.backward(torch.from_numpy(seed))
    pairs = [(out.detach(), expected.detach()), *((m.grad, t.grad) for m, t in zip(mine, theirs, strict=True))]
    for got, e in pairs:
        assert (
            got.shape == tuple(e.shape) and np.abs(to_numpy(got) - e.numpy()).max() <= 1e-13 * np.abs(e.numpy()).max()
        )


def test_conv_transpose2d_errors(device: str) -> None:
    x, w = vkml.zeros((1, 4, 3, 3), device=device), vkml.zeros((4, 2, 3, 3), device=device)
    with pytest.raises(vkml.ShapeError, match=r"^conv_transpose2d: output_padding: expected less than the stride"):
        vkml.conv_transpose2d(x, w, output_padding=1)
    with pytest.raises(vkml.ShapeError, match=r"^conv_transpose2d: weight: expected 4 input channels, got 2$"):
        vkml.conv_transpose2d(x, w[:2])
    with pytest.raises(vkml.ShapeError, match=r"^conv_transpose2d: groups: expected a divisor of 4, got 3$"):
        vkml.conv_transpose2d(x, w, groups=3)
    with pytest.raises(vkml.DTypeError, match=r"^conv_transpose2d: weight: expected float32, got float64$"):
        vkml.conv_transpose2d(x, w.to(dtype="float64"))
