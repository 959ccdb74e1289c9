"""shape: views against NumPy, shared memory, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import FLOATS, LAYOUTS, tensor, to_numpy
from op_cases import EXACT, op_cases

import vkml

VIEWS = {
    "reshape": (lambda x: x.reshape(4, -1), lambda a: a.reshape(4, -1)),
    "permute": (lambda x: x.permute(2, 0, -2), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1)),
    "movedim": (lambda x: x.movedim((0, 1), (2, 0)), lambda a: np.moveaxis(a, (0, 1), (2, 0))),
    "expand": (lambda x: x.unsqueeze(1).expand(2, 5, -1, 4), lambda a: np.broadcast_to(a[:, None], (2, 5, 3, 4))),
    "unsqueeze and squeeze": (lambda x: x.unsqueeze(0).unsqueeze(-1).squeeze(0), lambda a: a[..., None]),
    "flatten": (lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "unflatten": (lambda x: x.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "narrow": (lambda x: x.narrow(-1, 1, 2), lambda a: a[..., 1:3]),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1]),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_views_of_every_layout(device: str, name: str, layout: str, rng: np.random.Generator) -> None:
    view, reference = VIEWS[name]
    x, shown = LAYOUTS[layout](rng.normal(size=(2, 3, 4)).astype(np.float32), lambda a: tensor(a, "float32", device))
    assert np.array_equal(to_numpy(view(x)), reference(shown))


TESTS = {
    name: op_cases(view, reference, name=name, shapes=[(2, 3, 4)], dtypes=FLOATS, tolerance=EXACT, second=True)
    for name, (view, reference) in VIEWS.items()
}
TestReshape, TestPermute, TestExpand, TestNarrow = (TESTS[n] for n in ("reshape", "permute", "expand", "narrow"))
TestSelect, TestUnflatten, TestMovedim = (TESTS[n] for n in ("select", "unflatten", "movedim"))


def test_views_share_memory(device: str) -> None:
    x = vkml.zeros((2, 3, 4), device=device)
    for name, (view, _) in VIEWS.items():
        if name not in ("select", "narrow"):
            assert view(x).data_ptr() == x.data_ptr(), name
    x.narrow(1, 1, 1).select(0, 1)[...] = 5
    assert x.sum().item() == 20
    copied = x.transpose(0, 2).reshape(-1)  # no strides show it
    assert copied.data_ptr() != x.data_ptr() and copied.sum().item() == 20


def test_ranks_at_the_ends(device: str) -> None:
    x = tensor(np.arange(6.0), "float32", device)
    deep = x.reshape(1, 1, 2, 1, 3, 1, 1, 1)
    assert deep.squeeze().shape == (2, 3) and deep.squeeze(0).shape == (1, 2, 1, 3, 1, 1, 1)
    assert tensor(3.0, device=device).reshape(1, 1).reshape(()).item() == 3
    assert vkml.zeros((0, 3), device=device).reshape(3, 0, 5).shape == (3, 0, 5)
    with pytest.raises(vkml.ShapeError):
        deep.unsqueeze(0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.reshape(5, -1), "ShapeError"),
        (lambda x: x.reshape(-1, -1), "ShapeError"),
        (lambda x: x.permute(0, 1), "ShapeError"),
        (lambda x: x.permute(0, 0, 1), "ShapeError"),
        (lambda x: x.transpose(0, 3), "IndexError_"),
        (lambda x: x.expand(2, 6, 4), "ShapeError"),
        (lambda x: x.narrow(0, 1, 2), "ShapeError"),
        (lambda x: x.select(2, 4), "IndexError_"),
        (lambda x: x.unflatten(1, (2, 2)), "ShapeError"),
        (lambda x: x.unsqueeze(4), "IndexError_"),
    ],
)
def test_errors(device: str, call: Any, error: str) -> None:
    with pytest.raises(getattr(vkml, error), match=r"expected .*, got "):
        call(vkml.zeros((2, 3, 4), device=device))
