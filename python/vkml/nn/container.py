"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from .. import _core
from .._core import Tensor
from .module import Module, Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterList", "Sequential"]


class ModuleList(Module):
    """A list of modules whose parameters count.

    Examples
    --------
    >>> layers = vkml.nn.ModuleList([vkml.nn.Linear(2, 2), vkml.nn.ReLU()])
    >>> len(layers), layers[1]
    (2, ReLU())
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def _position(self, i: int) -> str:
        n = len(self)
        if not -n <= i < n:
            raise _core.IndexError_(f"{type(self).__name__}: expected an index in [{-n}, {n - 1}], got {i}")
        return str(i % n)

    @overload
    def __getitem__(self, i: int) -> Module: ...
    @overload
    def __getitem__(self, i: slice) -> ModuleList: ...
    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return self._of(list(self)[i])
        return self._modules[self._position(i)]

    def _of(self, modules: list[Module]) -> ModuleList:
        return ModuleList(modules)

    def __setitem__(self, i: int, module: Module) -> None:
        self._modules[self._position(i)] = module

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(list(self._modules.values()))

    def append(self, module: Module) -> ModuleList:
        """Adds one at the end. Returns the list."""
        if not isinstance(module, Module):
            raise _core.DTypeError(f"{type(self).__name__}: expected a Module, got {type(module).__name__}")
        self._modules[str(len(self))] = module
        return self

    def insert(self, i: int, module: Module) -> None:
        """Puts one before position i."""
        modules = list(self)
        modules.insert(i, module)
        self._modules.clear()
        self.extend(modules)

    def __delitem__(self, i: int | slice) -> None:
        modules = list(self)
        del modules[i]
        self._modules.clear()
        self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds several at the end. Returns the list."""
        for module in modules:
            self.append(module)
        return self


class Sequential(ModuleList):
    """Calls its layers one after the other.

    Examples
    --------
    >>> net = vkml.nn.Sequential(vkml.nn.Linear(4, 8), vkml.nn.ReLU(), vkml.nn.Linear(8, 2))
    >>> net(vkml.zeros(3, 4)).shape
    (3, 2)
    """

    def __init__(self, *layers: Any) -> None:
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            super().__init__()
            for name, module in layers[0].items():
                self.add_module(name, module)
        else:
            super().__init__(layers)

    def _position(self, i: int) -> str:
        return list(self._modules)[int(super()._position(i))]

    def _of(self, modules: list[Module]) -> Sequential:
        return Sequential(*modules)

    def forward(self, x: Any) -> Any:
        for layer in self:
            x = layer(x)
        return x


class ParameterList(Module):
    """A list of parameters; tensors become parameters.

    Examples
    --------
    >>> weights = vkml.nn.ParameterList([vkml.ones(2), vkml.zeros(3)])
    >>> len(weights), [name for name, _ in weights.named_parameters()]
    (2, ['0', '1'])
    """

    def __init__(self, parameters: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.extend(parameters)

    def _position(self, i: int) -> str:
        n = len(self)
        if not -n <= i < n:
            raise _core.IndexError_(f"ParameterList: expected an index in [{-n}, {n - 1}], got {i}")
        return str(i % n)

    def __getitem__(self, i: int) -> Parameter:
        return self._parameters[self._position(i)]

    def __setitem__(self, i: int, parameter: Tensor) -> None:
        self.register_parameter(self._position(i), parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(list(self._parameters.values()))

    def append(self, parameter: Tensor) -> ParameterList:
        """Adds one at the end. Returns the list."""
        self.register_parameter(str(len(self)), parameter)
        return self

    def extend(self, parameters: Iterable[Tensor]) -> ParameterList:
        """Adds several at the end. Returns the list."""
        for parameter in parameters:
            self.append(parameter)
        return self


class ModuleDict(Module):
    """A dictionary of modules whose parameters count.

    Examples
    --------
    >>> layers = vkml.nn.ModuleDict({"first": vkml.nn.Linear(2, 2)})
    >>> layers["first"]
    Linear(in_features=2, out_features=2, bias=True)
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds several, or replaces those of the same names."""
        for name, module in modules.items():
            self[name] = module

    def pop(self, name: str) -> Module:
        """Takes one out and returns it."""
        return self._modules.pop(name)

    def clear(self) -> None:
        """Takes all out."""
        self._modules.clear()

    def keys(self) -> Any:
        """The names, in order."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules, in order."""
        return self._modules.values()

    def items(self) -> Any:
        """Names and modules, in order."""
        return self._modules.items()
