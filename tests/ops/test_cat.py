"""cat, stack, split, chunk."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ALL, LAYOUTS, assert_same_bits, laid_out, rounded, tensor, to_numpy
from op_cases import bench, bench_cases

import vkml

bench_cases(
    "cat", lambda a, b, dim: vkml.cat([a, b], dim), lambda a, b, dim: np.concatenate([a, b], dim),
    lambda torch, a, b, dim: torch.cat([a, b], dim),
    bench=[
        bench((8192, 4096), (8192, 4096), dim=0),
        bench((8192, 4096), (8192, 4096), dim=1),
        bench((8192, 4096), (8192, 4096), dim=1, dtype="bfloat16"),
        bench((8192, 4096), (8192, 4096), dim=1, backward=True),
    ],
)  # fmt: skip

SHAPES = [
    ([(3,), (5,)], 0),
    ([(2, 3), (4, 3), (1, 3)], 0),
    ([(3, 2), (3, 4), (3, 0)], 1),
    ([(2, 3, 4), (2, 5, 4)], -2),
    ([(0, 3), (2, 3)], 0),
    ([(8, 16), (8, 32)], 1),
    ([(2, 1, 3, 1, 2)] * 3, 2),
    ([(2, 1, 2, 1, 2, 1, 2, 3)] * 2, 4),
]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(("shapes", "dim"), SHAPES)
def test_cat(device: str, rng: np.random.Generator, dtype: str, shapes: list[tuple[int, ...]], dim: int) -> None:
    arrays = [rounded(rng.uniform(0, 5, s), dtype) for s in shapes]
    got = vkml.cat([tensor(a, dtype, device) for a in arrays], dim)
    np.testing.assert_array_equal(to_numpy(got), np.concatenate(arrays, dim))
    assert str(got.dtype).endswith(dtype) and got.is_contiguous()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
def test_layouts(device: str, rng: np.random.Generator, layout: str, dtype: str) -> None:
    for shape in [(4, 8), (3, 5, 7), (2, 3, 2, 3, 2, 3, 2, 2)]:
        pairs = [laid_out(layout, rng.uniform(-5, 5, shape), dtype, device) for _ in range(3)]
        for dim in range(len(shape)):
            got = vkml.cat([t for t, _ in pairs], dim)
            np.testing.assert_array_equal(to_numpy(got), np.concatenate([a for _, a in pairs], dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_stack(device: str, rng: np.random.Generator, dim: int) -> None:
    arrays = [rng.standard_normal((2, 3)).astype(np.float32) for _ in range(4)]
    np.testing.assert_array_equal(
        vkml.stack([tensor(a, device=device) for a in arrays], dim).numpy(), np.stack(arrays, dim)
    )
    scalars = vkml.stack([tensor(1.0, device=device), tensor(2.0, device=device)])
    assert scalars.tolist() == [1, 2]


def test_a_legacy_empty_joins_anything(device: str) -> None:
    empty, x = vkml.zeros((0,), device=device), vkml.ones((2, 3), device=device)
    assert tuple(vkml.cat([empty, x, empty], 1).shape) == (2, 3)
    assert tuple(vkml.cat([empty, empty]).shape) == (0,)


def test_promotion(device: str) -> None:
    got = vkml.cat(
        [vkml.tensor([1, 2], device=device), tensor([1.5], "float16", device), vkml.tensor([True], device=device)]
    )
    assert str(got.dtype).endswith("float16") and got.tolist() == [1, 2, 1.5, 1]


def test_split_and_chunk_are_views(device: str) -> None:
    x = vkml.arange(5, device=device)
    assert [p.tolist() for p in vkml.split(x, 2)] == [[0, 1], [2, 3], [4]]
    assert [p.tolist() for p in vkml.chunk(x, 3)] == [[0, 1], [2, 3], [4]]
    assert [p.tolist() for p in x.split([1, 0, 4])] == [[0], [], [1, 2, 3, 4]]
    assert [len(p) for p in vkml.chunk(vkml.arange(6, device=device), 4)] == [2, 2, 2]
    x.split(2)[1][0] = 7
    assert x.tolist() == [0, 1, 7, 3, 4]
    y = vkml.arange(12, device=device).reshape(3, 4)
    assert [tuple(p.shape) for p in vkml.split(y, 3, dim=-1)] == [(3, 3), (3, 1)]


def test_gradients(device: str, rng: np.random.Generator) -> None:
    a, b = (
        tensor(rng.standard_normal(s), "float64" if device == "cpu" else "float32", device, True)
        for s in [(2, 3), (2, 5)]
    )
    y = vkml.cat([a, b, a], 1)
    g = rng.standard_normal((2, 11)).astype(np.float32)
    y.backward(tensor(g, str(y.dtype).removeprefix("vkml."), device))
    np.testing.assert_allclose(to_numpy(a.grad), g[:, :3].astype(float) + g[:, 8:], rtol=1e-6)
    np.testing.assert_array_equal(to_numpy(b.grad), g[:, 3:8])


def test_second_order(device: str) -> None:
    x = tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    (first,) = vkml.grad(vkml.cat([x * x, x]).sum(), [x], create_graph=True)
    (second,) = vkml.grad(first.sum(), [x])
    assert first.tolist() == [3, 5, 7] and second.tolist() == [2, 2, 2]


def test_split_gradient(device: str) -> None:
    x = tensor(np.arange(5.0), device=device, requires_grad=True)
    parts = vkml.split(x, 2)
    parts[1].backward(tensor([1.0, 2.0], device=device))
    assert x.grad.tolist() == [0, 0, 1, 2, 0]


def test_devices_agree(vulkan: str, rng: np.random.Generator) -> None:
    a = rng.standard_normal((64, 33)).astype(np.float32)
    assert_same_bits(*(vkml.cat([tensor(a, device=d), tensor(a, device=d)], 1) for d in ("cpu", vulkan)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda d: vkml.cat([]), "ShapeError", "cat: tensors: expected at least one tensor, got none"),
        (lambda d: vkml.cat([tensor(1.0, device=d)]), "ShapeError", r"cat: tensors: expected rank >= 1, got \(\)"),
        (
            lambda d: vkml.cat([vkml.ones((2, 3), device=d), vkml.ones((3, 2), device=d)]),
            "ShapeError",
            "cat: tensors: expected shapes that agree",
        ),
        (
            lambda d: vkml.cat([vkml.ones((2, 3), device=d), vkml.ones((3,), device=d)]),
            "ShapeError",
            "cat: tensors: expected rank 2",
        ),
        (lambda d: vkml.cat([vkml.ones((2,), device=d)], 1), "IndexError_", r"cat: expected dim in \[-1, 0\], got 1"),
        (lambda d: vkml.stack([]), "ShapeError", "stack: tensors: expected at least one"),
        (
            lambda d: vkml.stack([vkml.ones((2,), device=d), vkml.ones((3,), device=d)]),
            "ShapeError",
            "stack: tensors: expected one shape",
        ),
        (
            lambda d: vkml.split(vkml.ones((5,), device=d), [2, 2]),
            "ShapeError",
            "split: sizes: expected sizes that add up to 5, got a sum of 4",
        ),
        (
            lambda d: vkml.split(vkml.ones((5,), device=d), 0),
            "ShapeError",
            "split: size: expected a number >= 1, got 0",
        ),
        (
            lambda d: vkml.chunk(vkml.ones((5,), device=d), 0),
            "ShapeError",
            "chunk: chunks: expected a number >= 1, got 0",
        ),
    ],
)
def test_errors(device: str, call: object, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        call(device)  # type: ignore[operator]


def test_mixed_devices(vulkan: str) -> None:
    with pytest.raises(vkml.DeviceError, match="cat"):
        vkml.cat([vkml.ones((2,), device="cpu"), vkml.ones((2,), device=vulkan)])


def test_pieces_of_a_split_nobody_used_get_zeros(device):
    x = vkml.arange(12.0, device=device).reshape(3, 4).requires_grad_()
    a, _, c = vkml.split(x, [1, 2, 1], 1)
    (a * 2 + c * c).sum().backward()
    assert x.grad.tolist() == [[2, 0, 0, 2 * last] for last in (3.0, 7.0, 11.0)]
    x.grad = None
    vkml.chunk(x, 2)[1].sum().backward()
    assert x.grad.tolist() == [[0] * 4, [0] * 4, [1] * 4]
    left, right = vkml.chunk(x, 2, 1)
    (dx,) = vkml.grad((left * right).sum(), x, create_graph=True)
    (ddx,) = vkml.grad((dx * dx).sum(), x)
    np.testing.assert_allclose(ddx.numpy(), 2 * x.detach().numpy())


def test_a_piece_of_a_split_is_a_view(device):
    x = vkml.zeros(4, device=device)
    vkml.split(x, 2)[1].fill_(3.0)
    assert x.tolist() == [0, 0, 3, 3]
    y = vkml.ones(4, device=device, requires_grad=True) * 1
    with pytest.raises(vkml.Error, match="view of a recorded tensor"):
        vkml.split(y, 2)[0].fill_(3.0)


def test_the_gradient_of_a_split_is_one_join(vulkan):
    x = vkml.ones(6, 8, device=vulkan, requires_grad=True)
    pieces = vkml.split(x, 2)
    total = sum((p * (i + 1.0)).sum() for i, p in enumerate(pieces))
    total.backward()  # once, for what is made at first use
    x.grad = None
    total = sum((p * (i + 1.0)).sum() for i, p in enumerate(vkml.split(x, 2)))
    before = vkml.dispatch_count(vulkan)
    total.backward()
    # The seed, then per piece the spread sum (a view), the product and its place in the result.
    assert vkml.dispatch_count(vulkan) - before <= 1 + 3 * 2
    assert x.grad.tolist() == [[float(i // 2 + 1)] * 8 for i in range(6)]
