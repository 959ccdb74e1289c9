"""What both kinds of files share: names of dtypes, and the checks of what a file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor

# Names in safetensors headers, and the NumPy dtype that holds the bytes.
NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
DTYPES = {word: name for name, word in NAMES.items()}
LARGEST_HEADER = 100_000_000  # bytes, the limit of the safetensors library
METADATA = "__metadata__"
STRUCTURE = "vkml.structure"  # the metadata entry that says how tensors are nested
VERSION = 1


def bits(name: str) -> np.dtype:
    """The NumPy dtype of the bytes in a file."""
    return np.dtype(np.uint16 if name == "bfloat16" else name)


def fail(path: Any, text: str) -> Any:
    """Raises what load() raises for a file that is not as it should be."""
    raise _core.ShapeError(f"load: {path}: {text}") from None


def host_array(t: Tensor) -> np.ndarray:
    """The packed values on the host; bfloat16 as its bits."""
    return np.ascontiguousarray(_core._host_array(t)).reshape(t.shape)


def tensor_of(raw: np.ndarray, dtype: str, shape: tuple[int, ...], device: Any) -> Tensor:
    """A tensor of its own from bytes."""
    values = np.frombuffer(raw, np.uint8)
    if dtype == "bool":
        values = (values != 0).view(np.uint8)  # any other byte than 0 and 1 would be no bool
    return _core._from_buffer(values, shape, dtype, device)


def no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dict, for json.loads; refuses a name that comes twice."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("expected every name once, got one twice")
    return out


def is_count(x: Any) -> bool:
    """True for an integer that can be an extent or an offset."""
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 2**63


def header_of(path: Path, raw: bytes) -> dict[str, Any]:
    """The JSON object that the bytes hold."""
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=no_twins)
    except (ValueError, RecursionError) as error:
        return fail(path, f"expected a JSON header, got {type(error).__name__}: {str(error)[:200]}")
    if not isinstance(header, dict):
        return fail(path, f"expected a JSON object as header, got {type(header).__name__}")
    return header


def strings(path: Path, metadata: Any) -> dict[str, str]:
    """The metadata, if they are text."""
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        return fail(path, "expected metadata of strings, got something else")
    return metadata
