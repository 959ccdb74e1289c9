"""Module: a tree of parameters, buffers and sub-modules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .. import _core
from .._core import Tensor
from .._creation import as_tensor
from .._tensor import target
from ..autograd import no_grad

__all__ = ["Module", "Parameter"]


class Parameter(Tensor):
    """A tensor that a Module counts among its parameters; it requires grad unless told otherwise.

    Examples
    --------
    >>> vkml.nn.Parameter(vkml.zeros(2)).requires_grad
    True
    """

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(as_tensor(data).detach())
        if requires_grad:
            self.requires_grad_()


def _parameter(value: Tensor) -> Parameter:
    """Another name of the same tensor, so that a graph through it stays whole."""
    if isinstance(value, Parameter):
        return value
    made = Parameter.__new__(Parameter)
    Tensor.__init__(made, value)
    if value.is_leaf and value.is_floating_point() and not value.requires_grad:
        made.requires_grad_()
    return made


class LoadResult(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


_hook_ids = itertools.count()


class _HookHandle:
    """Takes a hook away again: by remove(), or at the end of a `with`."""

    def __init__(self, hooks: dict[int, Any], hook: Any, prepend: bool) -> None:
        self._hooks, self._id = hooks, next(_hook_ids)
        others = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[self._id] = hook
        hooks.update(others)

    def remove(self) -> None:
        self._hooks.pop(self._id, None)

    def __enter__(self) -> _HookHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class Module:
    """Base of all layers: assign Parameters and Modules as attributes and define `forward`.

    A Tensor attribute becomes a parameter; `register_buffer` keeps a tensor that is saved but not trained.

    Examples
    --------
    >>> class Scale(vkml.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = vkml.nn.Parameter(vkml.ones(1))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    training: bool

    def __init__(self) -> None:
        for name in ("_parameters", "_buffers", "_modules", "_pre_hooks", "_hooks"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_transient", set())
        object.__setattr__(self, "training", True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected a forward() method, got none")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._pre_hooks and not self._hooks:
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._pre_hooks.values()):
            given = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if given is not None and with_kwargs:
                args, kwargs = given
            elif given is not None:
                args = given if isinstance(given, tuple) else (given,)
        result = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._hooks.values()):
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            result = result if changed is None else changed
        return result

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> _HookHandle:
        """Calls hook(module, args) before every forward; what it returns, if not None, replaces the arguments.

        With `with_kwargs`, hook(module, args, kwargs), which returns None or (args, kwargs). The handle's remove()
        takes the hook away.
        """
        return _HookHandle(self._pre_hooks, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> _HookHandle:
        """Calls hook(module, args, result) after every forward; what it returns, if not None, replaces the result.

        With `with_kwargs`, hook(module, args, kwargs, result). The handle's remove() takes the hook away.
        """
        return _HookHandle(self._hooks, (hook, with_kwargs), prepend)

    # Attributes -------------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            if isinstance(value, (Tensor, Module)):
                raise _core.Error(
                    f"{type(self).__name__}: expected super().__init__() before the first attribute {name!r}"
                )
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Module):
            self._forget(name)
            self._modules[name] = value
        elif isinstance(value, Tensor) and name in self._buffers:
            self._buffers[name] = value
        elif isinstance(value, Tensor):
            self._forget(name)
            self._parameters[name] = _parameter(value)
        elif value is None and name in {**self._parameters, **self._buffers}:
            (self._parameters if name in self._parameters else self._buffers)[name] = None
        else:
            self._forget(name)
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _forget(self, name: str) -> bool:
        self.__dict__.pop(name, None)
        found = [table.pop(name, self) is not self for table in (self._parameters, self._buffers, self._modules)]
        return any(found)

    def register_parameter(self, name: str, parameter: Tensor | None) -> None:
        """Adds a parameter; None keeps the name without one."""
        self._check_name(name)
        self._parameters[name] = None if parameter is None else _parameter(parameter)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is no parameter; `persistent` ones are part of the state dict."""
        self._check_name(name)
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)

    def _check_name(self, name: str) -> None:
        if not name or "." in name or (hasattr(self, name) and name not in {**self._parameters, **self._buffers}):
            raise _core.ShapeError(f"{type(self).__name__}: expected a new name without a dot, got {name!r}")

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a sub-module under a name."""
        if module is not None and not isinstance(module, Module):
            raise _core.DTypeError(f"{type(self).__name__}: {name}: expected a Module, got {type(module).__name__}")
        if name not in self._modules:
            self._check_name(name)
        self._modules[name] = module

    register_module = add_module

    def get_submodule(self, target: str) -> Module:
        """The module below this one that a dotted name means; "" is this one."""
        module = self
        for name in target.split(".") if target else []:
            found = module._modules.get(name)
            if found is None:
                raise AttributeError(f"{type(self).__name__}: expected the name of a sub-module, got {target!r}")
            module = found
        return module

    def _get(self, table: str, target: str) -> Tensor:
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), table).get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__}: expected a name of its {table[1:]}, got {target!r}")
        return found

    def get_parameter(self, target: str) -> Tensor:
        """The parameter that a dotted name means."""
        return self._get("_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer that a dotted name means."""
        return self._get("_buffers", target)

    # The tree ---------------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Direct sub-modules with their names."""
        return ((name, m) for name, m in self._modules.items() if m is not None)

    def children(self) -> Iterator[Module]:
        """Direct sub-modules."""
        return (m for _, m in self.named_children())

    def named_modules(self, prefix: str = "", memo: set | None = None) -> Iterator[tuple[str, Module]]:
        """This module and all below it, each once, with dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name, memo)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (m for _, m in self.named_modules())

    def _named(self, table: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen = set()
        for path, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, t in getattr(module, table).items():
                if t is not None and id(t) not in seen:
                    seen.add(id(t))
                    yield (f"{path}.{name}" if path else name), t

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Parameters with dotted names, each once."""
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters, each once: what an optimizer takes."""
        return (p for _, p in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Buffers with dotted names."""
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers."""
        return (b for _, b in self.named_buffers("", recurse))

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Calls fn on every module below this one, then on this one. Returns the module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # Modes ------------------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Training mode for the whole tree. Returns the module."""
        for module in self.modules():
            object.__setattr__(module, "training", bool(mode))
        return self

    def eval(self) -> Module:
        """Evaluation mode. Returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Asks for the gradients of all parameters, or no longer. Returns the module."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or fills them with 0."""
        for p in self.parameters():
            if set_to_none or p.grad is None:
                p.grad = None
            else:
                p.grad = _core.full(p.shape, 0, dtype=p.dtype, device=p.device)

    def to(self, *args: Any, dtype: Any = None, device: Any = None) -> Module:
        """Moves parameters and buffers to a device, or floating-point ones to a dtype. Returns the module."""
        device, dtype = target(f"{type(self).__name__}.to", args, dtype, device)
        if dtype is not None and not _core.dtype(dtype).is_floating_point:
            raise _core.DTypeError(
                f"{type(self).__name__}.to: expected a floating-point dtype, got {_core.dtype(dtype)}"
            )
        narrow = dtype is not None and _core.dtype(dtype).itemsize < 4

        def convert(t: Tensor) -> Tensor:
            return t.to(device=device, dtype=dtype if t.is_floating_point() else None)

        def convert_kept(t: Tensor) -> Tensor:
            return t.to(device=device) if narrow else convert(t)

        return self._replace(convert, convert_kept)

    # Parameters of a module that stay float32 when the others become 16-bit.
    _keep_float32: tuple[str, ...] = ()

    def _replace(
        self, convert: Callable[[Tensor], Tensor], convert_kept: Callable[[Tensor], Tensor] | None = None
    ) -> Module:
        changed: dict[int, Tensor] = {}  # a shared parameter stays shared
        for module in self.modules():
            for table in (module._parameters, module._buffers):
                for name, t in table.items():
                    if t is not None:
                        if id(t) not in changed:
                            chosen = convert_kept if convert_kept and name in module._keep_float32 else convert
                            changed[id(t)] = self._converted(t, chosen)
                        table[name] = changed[id(t)]
        return self

    @staticmethod
    def _converted(t: Tensor, convert: Any) -> Tensor:
        with no_grad():
            made = convert(t.detach())
        if made.data_ptr() == t.data_ptr() and made.dtype == t.dtype and made.device == t.device:
            return t
        if not isinstance(t, Parameter):
            return made
        # The object the optimizer holds must go on meaning the parameter: it takes the new tensor over.
        gradient = None if t.grad is None else convert(t.grad.detach())
        wanted = t.requires_grad
        _core._rebind(t, made)
        t.requires_grad_(wanted)
        t.grad = gradient
        return t

    def cpu(self) -> Module:
        """To the CPU. Returns the module."""
        return self.to(device="cpu")

    def vulkan(self, index: int | None = None) -> Module:
        """To a Vulkan device. Returns the module."""
        return self.to(device="vulkan" if index is None else f"vulkan:{index}")

    def float(self) -> Module:
        """Floating-point parameters and buffers to float32."""
        return self.to(dtype=_core.float32)

    def half(self) -> Module:
        """Floating-point parameters and buffers to float16."""
        return self.to(dtype=_core.float16)

    def bfloat16(self) -> Module:
        """Floating-point parameters and buffers to bfloat16."""
        return self.to(dtype=_core.bfloat16)

    def double(self) -> Module:
        """Floating-point parameters and buffers to float64."""
        return self.to(dtype=_core.float64)

    # State ------------------------------------------------------------------------------------------------------------

    def state_dict(self, prefix: str = "") -> dict[str, Tensor]:
        """Parameters and persistent buffers by dotted name, sharing memory with the module."""
        out: dict[str, Tensor] = {}
        for name, p in self._parameters.items():
            if p is not None:
                out[prefix + name] = p.detach()
        for name, b in self._buffers.items():
            if b is not None and name not in self._transient:
                out[prefix + name] = b.detach()
        for name, child in self.named_children():
            out.update(child.state_dict(f"{prefix}{name}."))
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Copies values in: tensors, NumPy arrays or PyTorch tensors. Everything is checked before anything is written.

        Raises
        ------
        ShapeError
            A value of another shape; with `strict` also missing or unexpected names.
        """
        own = self.state_dict()
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        if strict and (missing or unexpected):
            raise _core.ShapeError(
                f"load_state_dict: expected the module's names, got missing {missing} and unexpected {unexpected}"
            )
        values = {}
        for name in own:
            if name in state_dict:
                try:
                    value = as_tensor(state_dict[name]).detach()
                except (TypeError, ValueError, _core.Error):  # as_tensor would speak of itself
                    raise _core.DTypeError(
                        f"load_state_dict: {name}: expected a tensor of shape {own[name].shape}, "
                        f"got {type(state_dict[name]).__name__}"
                    ) from None
                if value.shape != own[name].shape:
                    raise _core.ShapeError(
                        f"load_state_dict: {name}: expected shape {own[name].shape}, got {value.shape}"
                    )
                values[name] = value
        with no_grad():
            for name, value in values.items():
                own[name].copy_(value)
        return LoadResult(missing, unexpected)

    # Text -------------------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        lines = []
        for name, child in self._modules.items():
            lines.append(f"({name}): " + repr(child).replace("\n", "\n  "))
        head = f"{type(self).__name__}({self.extra_repr()}"
        if not lines:
            return head + ")"
        return head + "\n  " + "\n  ".join(lines) + "\n)"
