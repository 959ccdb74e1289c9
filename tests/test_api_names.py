"""Walks the table of public names: each exists, says what it is, and shows it in an example that runs.

That the examples print what they say is tests/test_public_names.py's business.
"""

from __future__ import annotations

import doctest
import functools
import inspect

import api_names
import pytest

import vkml


def lookup(path: str):
    return functools.reduce(getattr, path.split("."), vkml)


def documented_names() -> list[str]:
    names = [name for group in api_names.FUNCTIONS.values() for name in group.split()]
    for module, text in api_names.MODULES.items():
        names += [f"{module}.{name}" for name in text.split()]
    return names


def has_example(value: object) -> bool:
    return bool(doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""))


def test_no_name_is_listed_twice() -> None:
    names = [*documented_names(), *api_names.VALUES, *api_names.TYPES]
    assert sorted(names) == sorted(set(names))
    assert len(names) > 250


@pytest.mark.parametrize("name", documented_names())
def test_is_documented_with_an_example(name: str) -> None:
    value = lookup(name)
    assert callable(value), f"vkml.{name} is {value!r}"
    assert (inspect.getdoc(value) or "").strip(), f"vkml.{name} has no docstring"
    assert has_example(value), f"vkml.{name}: its docstring has no example"


@pytest.mark.parametrize("name", api_names.VALUES)
def test_values(name: str) -> None:
    assert lookup(name) is not None
    assert name in vkml.__all__


@pytest.mark.parametrize("name", api_names.TYPES)
def test_types(name: str) -> None:
    value = lookup(name)
    assert inspect.isclass(value) and (value.__doc__ or "").strip(), f"vkml.{name} has no docstring"


@pytest.mark.parametrize("name", [*api_names.TENSOR_PROPERTIES, *api_names.TENSOR_METHODS])
def test_of_tensors(name: str) -> None:
    found = inspect.getattr_static(vkml.Tensor, name)
    assert (inspect.getdoc(getattr(vkml.Tensor, name)) or "").strip(), f"Tensor.{name} has no docstring"
    is_method = callable(found) or isinstance(found, (classmethod, staticmethod)) or inspect.isroutine(found)
    assert is_method == (name in api_names.TENSOR_METHODS), f"Tensor.{name}: method or property, which?"


def test_protocols_of_tensors() -> None:
    assert [n for n in api_names.TENSOR_PROTOCOLS if not hasattr(vkml.Tensor, n)] == []


def test_methods_of_modules_and_optimizers() -> None:
    for name in api_names.MODULE_METHODS:
        method = getattr(vkml.nn.Module, name)
        assert name == "forward" or (method.__doc__ or "").strip(), f"Module.{name} has no docstring"
    assert [n for n in api_names.OPTIMIZER_NAMES if not hasattr(vkml.optim.Optimizer, n)] == []
    assert "param_groups" in vars(vkml.optim.SGD([vkml.zeros(1, requires_grad=True)]))


def test_every_class_of_nn_has_an_example_and_types() -> None:
    """Beyond the table: all of vkml.nn, of which the type checkers also know every argument."""
    for module in (vkml.nn, vkml.nn.functional, vkml.nn.init, vkml.nn.utils):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            assert has_example(value), f"{module.__name__}.{name}: no example"
            function = value.__init__ if inspect.isclass(value) else value
            if inspect.isfunction(function):
                untyped = [
                    p.name
                    for p in inspect.signature(function).parameters.values()
                    if p.annotation is inspect.Parameter.empty and p.name != "self"
                ]
                assert not untyped, f"{module.__name__}.{name}: no types for {untyped}"
