"""Nested dictionaries and lists as JSON beside a flat list of tensors: what vkml.save writes instead of a pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor

_DEEPEST = 100
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def is_tensor_like(value: Any) -> bool:
    """Tensors and the arrays of other libraries; Python numbers stay numbers, NumPy's scalars become tensors."""
    if isinstance(value, (bool, int, float, str, bytes, Mapping, list, tuple, type(None))):
        return False
    return isinstance(value, (Tensor, np.ndarray, np.generic)) or any(
        hasattr(value, name) for name in ("__dlpack__", "__array__")
    )


class _Encoder:
    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._names: dict[int, str] = {}  # of tensors that were met before

    def name(self, tensor: Any, path: str) -> str:
        found = self._names.get(id(tensor))
        if found is None:
            found, again = path, 1
            while found in self.tensors or found == "__metadata__":
                again += 1
                found = f"{path}#{again}"
            self.tensors[found] = tensor
            self._names[id(tensor)] = found
        return found

    def encode(self, value: Any, path: str, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise _core.ShapeError(f"save: {path[:80]}: expected at most {_DEEPEST} levels, got more")
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"number": str(float(value))}
        inside = f"{path}." if path else ""
        if isinstance(value, (list, tuple)):
            made = [self.encode(v, f"{inside}{i}", depth + 1) for i, v in enumerate(value)]
            return {"tuple": made} if isinstance(value, tuple) else made
        if isinstance(value, Mapping):
            pairs = [[self.key(k, path), self.encode(v, f"{inside}{k}", depth + 1)] for k, v in value.items()]
            return {"dict": pairs}
        if is_tensor_like(value):
            return {"tensor": self.name(value, path)}
        hint = ", whose state_dict() can be saved" if callable(getattr(value, "state_dict", None)) else ""
        raise _core.DTypeError(
            f"save: {path}: expected tensors, numbers, strings, dicts and lists of them, "
            f"got {type(value).__name__}{hint}"
        )

    @staticmethod
    def key(key: Any, path: str) -> Any:
        if isinstance(key, (str, int, type(None))) or (isinstance(key, float) and math.isfinite(key)):
            return key
        raise _core.DTypeError(f"save: {path}: expected keys that are strings or numbers, got {key!r:.40}")


def encode(value: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The tensors inside by name (their path, joined by dots), and JSON text for the rest."""
    encoder = _Encoder()
    return encoder.tensors, json.dumps(encoder.encode(value, ""), separators=(",", ":"), allow_nan=False)


def decode(text: str, tensors: Mapping[str, Tensor], fail: Callable[[str], Any]) -> dict[str, Any]:
    """The inverse; `fail` raises for a text that encode() did not write."""

    def value_of(node: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            return fail(f"expected a structure of at most {_DEEPEST} levels, got a deeper one")
        if isinstance(node, list):
            return [value_of(v, depth + 1) for v in node]
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items() if len(node) == 1 else [("", None)]
        if kind == "tensor" and isinstance(content, str) and content in tensors:
            return tensors[content]
        if kind == "number" and isinstance(content, str) and content in _NUMBERS:
            return _NUMBERS[content]
        if kind == "tuple" and isinstance(content, list):
            return tuple(value_of(v, depth + 1) for v in content)
        if kind == "dict" and isinstance(content, list):
            return mapping_of(content, depth)
        return fail(f"expected a structure of tensors, numbers, strings, lists and dicts, got {str(node)[:80]}")

    def mapping_of(pairs: list, depth: int) -> dict:
        out: dict[Any, Any] = {}
        for pair in pairs:
            good = isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], (list, dict))
            if not good or pair[0] in out:
                return fail(f"expected pairs of a new key and a value, got {str(pair)[:80]}")
            out[pair[0]] = value_of(pair[1], depth + 1)
        return out

    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as error:
        return fail(f"expected a structure in JSON, got {type(error).__name__}: {str(error)[:200]}")
    value = value_of(root, 0)
    if not isinstance(value, dict):
        return fail(f"expected a structure that is a dict, got a {type(value).__name__}")
    return value
