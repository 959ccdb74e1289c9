"""Every bound function, given a wrong kind: a TypeError in vkML's words that names operator and argument."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vkml
from vkml import _calls, _core

X = vkml.ones((2, 2))
LATE = {"dtype", "device", "type"}  # readers with classes of their own
IN_PYTHON = {"to", "astype", "type_as", "vulkan"}
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Odd:
    """Is nothing that any operator takes."""


def functions() -> Iterator[tuple[str, Any]]:
    for name, value in vars(_core).items():
        if type(value).__name__ == "nb_func":
            yield name, value
    for name, value in vars(vkml.Tensor).items():
        if type(value).__name__ == "nb_method" and not name.startswith("__"):
            yield f"Tensor.{name}", value


def example(type_: ast.expr | None) -> Any:
    """A value that fits a type of a signature, if it is one that operators take."""
    for option in _calls.alternatives(type_):
        name = _calls.word(option)
        simple = {
            "Tensor": X, "ndarray": np.ones(2), "int": 1, "float": 1.0, "bool": True, "str": "mean", "dtype": "float32",
            "device": "cpu", "Callable": print, "None": None,
        }  # fmt: skip
        if name in simple:
            return simple[name]
        if name in _calls.SEQUENCES:
            return [example(t) for t in _calls.items(option)[:1]]
    return None


def calls() -> Iterator[Any]:
    """Each parameter with a type, of each overload, in the place of the others' examples."""
    for name, function in functions():
        for n, parameters in enumerate(_calls.overloads(function)):
            for p in parameters:
                if p.type is None or p.kind not in (POSITIONAL, inspect.Parameter.KEYWORD_ONLY):
                    continue
                if p.name == "self" and function.__nb_signature__[n][0].startswith("def "):
                    continue
                if (name, p.name) == ("Tensor.to", "copy"):  # any truth value
                    continue
                if any(_calls.word(t) in ("object", "Any") for t in _calls.alternatives(p.type)):
                    continue
                yield pytest.param(function, parameters, p, id=f"{name}-{n}-{p.name}")


def call(function: Any, parameters: list[Any], at: Any, value: Any) -> Any:
    args, kwargs = [], {}
    for p in parameters:
        given = value if p is at else example(p.type)
        if p.kind is POSITIONAL:
            args.append(given)
        elif p.kind is inspect.Parameter.KEYWORD_ONLY and (p is at or p.required):
            kwargs[p.name] = given
    return function(*args, **kwargs)


@pytest.mark.parametrize(("function", "parameters", "at"), list(calls()))
def test_every_argument(function: Any, parameters: list[Any], at: Any) -> None:
    with pytest.raises((TypeError, vkml.DeviceError)) as caught:
        call(function, parameters, at, Odd())
    text = str(caught.value)
    assert isinstance(caught.value, vkml.Error), text
    late = {_calls.word(t) for t in _calls.alternatives(at.type)} & LATE
    assert isinstance(caught.value, TypeError) or late, text
    assert re.search(r": expected .*, got ", text), text
    assert "vkml._core" not in text and "::" not in text and "\n" not in text, text
    if function.__name__.startswith("_") or function.__name__ in IN_PYTHON:
        return  # a function of Python has the name
    assert text.startswith(f"{function.__name__}: "), text
    if len(function.__nb_signature__) == 1:  # else each overload has an argument at fault
        assert re.search(r", got .*Odd", text), text
        assert text.startswith(f"{function.__name__}: {at.name}: expected "), text


@pytest.mark.parametrize(("function", "parameters", "at"), list(calls()))
def test_a_list_or_none_for_a_tensor(function: Any, parameters: list[Any], at: Any) -> None:
    words = [_calls.word(t) for t in _calls.alternatives(at.type)]
    if words != ["Tensor"]:
        return
    for value, got in [(None, "None"), ([1.0, 2.0], "list"), (np.ones(2), "ndarray"), (3, "int")]:
        if got == "int" and len(function.__nb_signature__) > 1:
            continue  # scatter_add(src, axis, index, dim_size)
        with pytest.raises(vkml.DTypeError, match=f"expected .*, got {got}"):
            call(function, parameters, at, value)


TEXTS = [
    (lambda: vkml.softmax([1, 2]), "softmax: input: expected a Tensor, got list"),
    (lambda: vkml.softmax(X, "a"), "softmax: dim: expected an int, got str"),
    (lambda: vkml.softmax(X, 1.5), "softmax: dim: expected an int, got float"),
    (lambda: vkml.softmax(X, dim=2**63), "softmax: dim: expected an int, got 9223372036854775808, which has more than"),
    (lambda: vkml.softmax(), "softmax: input: expected a Tensor, got nothing"),
    (lambda: vkml.softmax(X, 0, 1), "softmax: expected at most 2 arguments, got 3"),
    (lambda: vkml.softmax(X, axes=1), "softmax: expected the arguments input, dim, got axes"),
    (lambda: vkml.softmax(X, 0, dim=0), "softmax: dim: expected one value, got two"),
    (lambda: X.softmax("a"), "softmax: dim: expected an int, got str"),
    (lambda: X.softmax(0, 1), "softmax: expected at most 1 argument, got 2"),
    (lambda: vkml.Tensor.relu(3), "relu: self: expected a Tensor, got int"),
    (lambda: vkml.Tensor.relu_(3), "relu_: self: expected a Tensor, got int"),
    (lambda: vkml.add(None, X), "add: input: expected a Tensor or a number, got None"),
    (lambda: vkml.add(X, "a"), "add: other: expected a Tensor or a number, got str"),
    (lambda: vkml.reshape(X, "a"), "reshape: shape: expected an int or a sequence of ints, got 'a'"),
    (lambda: vkml.reshape(X, [2, 1.5]), r"reshape: shape: expected an int or a sequence of ints, got \[2, 1.5\]"),
    (lambda: X.reshape("a"), "reshape: expected ints or a sequence of ints, got 'a'"),
    (lambda: X.flip(0, "a"), r"flip: expected ints or a sequence of ints, got \(0, 'a'\)"),
    (lambda: vkml.sum(X, dim=1.5), "sum: dim: expected an int or a sequence of ints, got 1.5"),
    (lambda: vkml.sum(X, 0, 1), "sum: keepdim: expected a bool, got int"),
    (lambda: vkml.cat([X, 3]), "cat: tensors: expected a sequence of Tensors, got list with int at 1"),
    (lambda: vkml.cat(3), "cat: tensors: expected a sequence of Tensors, got int"),
    (lambda: X.type_as(3), "type_as: other: expected a Tensor, got int"),
    (lambda: vkml.arange(3, dtype="flot"), "arange: dtype: expected one of float32, .*, got 'flot'"),
    (lambda: vkml.cast(X, 3), "cast: dtype: expected one of float32, .*, got 3"),
    (
        lambda: X.fill_("a"),
        "fill_: value: expected a number, got str",
    ),
    (lambda: vkml.gelu(X, 3), "gelu: approximate: expected a string, got int"),
]


@pytest.mark.parametrize(("call", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_texts(call: Any, text: str) -> None:
    with pytest.raises(vkml.DTypeError, match=f"^{text}") as caught:
        call()
    assert isinstance(caught.value, TypeError)


def test_a_device_of_another_kind_stays_a_device_error() -> None:
    with pytest.raises(vkml.DeviceError, match=r'^arange: device: expected "cpu", .*, got 3.5'):
        vkml.arange(3, device=3.5)
    with pytest.raises(vkml.DTypeError, match=r"^device: expected at most 1 argument, got 2"):
        vkml.device("cpu", 3)


def test_a_pair_of_three() -> None:
    with pytest.raises(vkml.ShapeError, match=r"^max_pool2d: kernel(_size)?: expected one integer or a pair"):
        vkml.max_pool2d(vkml.ones((1, 1, 4, 4)), (1, 2, 3))


def test_operators_leave_the_word_to_python() -> None:
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Tensor' and 'list'"):
        X + [1, 2]  # noqa: RUF005
    assert (X == [1]) is False


def test_a_failed_call_leaves_no_trace() -> None:
    """The next error of another kind is not renamed."""
    with pytest.raises(vkml.DTypeError):
        vkml.reshape(X, "a")
    with pytest.raises(vkml.ShapeError, match=r"^reshape: expected"):
        vkml.reshape(X, (3, 3))
    with pytest.raises(vkml.IndexError_, match=r"^softmax: expected dim"):
        vkml.softmax(X, 5)
