"""Files of tensors: `.safetensors` and `.npz`. Nothing is pickled; every number in a file is checked first."""

from __future__ import annotations

import json
import math
import mmap
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor
from ._creation import as_tensor
from ._file_checks import (
    DTYPES,
    LARGEST_HEADER,
    METADATA,
    NAMES,
    STRUCTURE,
    VERSION,
    bits,
    fail,
    header_of,
    host_array,
    is_count,
    strings,
    tensor_of,
)
from ._npz import read_npz, write_npz
from ._structure import decode, encode, is_tensor_like

__all__ = ["Checkpoint", "load", "load_module", "save", "save_module"]


class Checkpoint(Mapping):
    """What load() returns: a mapping from names to what was saved; `.tensors` holds all tensors by name.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> vkml.save(path, {"w": vkml.ones(2), "step": 7}, {"made by": "me"})
    >>> checkpoint = vkml.load(path)
    >>> checkpoint["step"], list(checkpoint.tensors), checkpoint.metadata
    (7, ['w'], {'made by': 'me'})
    """

    def __init__(
        self,
        tensors: dict[str, Tensor],
        metadata: dict[str, str],
        version: int = VERSION,
        value: dict[str, Any] | None = None,
    ) -> None:
        self.tensors, self.metadata, self.version = tensors, metadata, version
        self._value = tensors if value is None else value

    def __getitem__(self, name: str) -> Any:
        return self._value[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __repr__(self) -> str:
        return f"Checkpoint({len(self.tensors)} tensors, metadata={self.metadata!r})"


def _checkpoint(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> Checkpoint:
    structure = metadata.pop(STRUCTURE, None)
    value = None if structure is None else decode(structure, tensors, lambda text: fail(path, text))
    return Checkpoint(tensors, metadata, value=value)


# Saving ---------------------------------------------------------------------------------------------------------------


def _check_text(where: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _core.ShapeError(f"{where}: expected text that UTF-8 can hold, got {text!a:.200}") from None


def _tensors(given: Mapping[str, Any]) -> dict[str, Tensor]:
    out = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise _core.DTypeError(f"save: expected names that are strings, got {name!r}")
        _check_text("save", name)
        if name == METADATA:
            raise _core.ShapeError(f"save: expected a name other than {METADATA}")
        out[name] = value if isinstance(value, Tensor) else as_tensor(value, device="cpu")
        _ = out[name].dtype  # an undefined tensor says so here
    return out


def _check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    out = dict(metadata or {})
    for key, value in out.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise _core.DTypeError(f"save: metadata: expected strings, got {key!r}: {value!r}")
        _check_text("save: metadata", key)
        _check_text("save: metadata", value)
        if key == STRUCTURE:
            raise _core.ShapeError(f"save: metadata: expected a name other than {STRUCTURE}")
    return out


def _write_safetensors(file: Any, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    header: dict[str, Any] = {METADATA: metadata} if metadata else {}
    offset = 0
    for name, t in tensors.items():
        header[name] = {
            "dtype": NAMES[str(t.dtype)],
            "shape": list(t.shape),
            "data_offsets": [offset, offset + t.nbytes],
        }
        offset += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data start aligned
    file.write(len(text).to_bytes(8, "little") + text)
    for t in tensors.values():  # one at a time: those of a device need no more host memory than the largest
        file.write(host_array(t).reshape(-1).view(np.uint8).data)


def save(
    path: str | os.PathLike,
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    compress: bool = False,
) -> None:
    """Writes a dict to `.safetensors` (whose tensors other tools read) or `.npz`; a crash leaves an older file whole.

    Parameters
    ----------
    tensors : mapping from names to tensors, or to arrays
        Also to numbers, strings, None, and dicts, lists and tuples of all these: whole checkpoints. Tensors are then
        named by their path (`optimizer.state.0.exp_avg`), and the structure is kept as JSON in the metadata.
    metadata : mapping from strings to strings, optional
    compress : bool
        For `.npz` only.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> model = vkml.nn.Linear(2, 1)
    >>> optimizer = vkml.optim.Adam(model.parameters())
    >>> vkml.save(path, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
    >>> checkpoint = vkml.load(path)
    >>> checkpoint["epoch"], sorted(checkpoint.tensors)
    (3, ['model.bias', 'model.weight'])
    >>> optimizer.load_state_dict(checkpoint["optimizer"])
    """
    if not isinstance(path, (str, os.PathLike)):
        raise _core.DTypeError(f"save: path: expected a path as the first argument, got {type(path).__name__}")
    target = Path(path)
    if target.suffix not in (".safetensors", ".npz"):
        raise _core.ShapeError(f"save: path: expected a name that ends in .safetensors or .npz, got {target.name}")
    if compress and target.suffix != ".npz":
        raise _core.ShapeError("save: compress: expected False, for .safetensors files are not compressed")
    if not isinstance(tensors, Mapping):
        raise _core.DTypeError(f"save: expected a mapping from names to tensors, got {type(tensors).__name__}")
    about = _check_metadata(metadata)
    if not all(isinstance(name, str) for name in tensors):
        raise _core.DTypeError(
            f"save: expected names that are strings, got {next(n for n in tensors if not isinstance(n, str))!r}"
        )
    if not all(is_tensor_like(value) for value in tensors.values()):
        tensors, about[STRUCTURE] = encode(tensors)
    named = _tensors(tensors)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(beside, "xb") as file:
            if target.suffix == ".npz":
                write_npz(file, named, about, compress)
            else:
                _write_safetensors(file, named, about)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


# Loading --------------------------------------------------------------------------------------------------------------


def _entry(path: Path, name: str, entry: Any, room: int) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return fail(path, f"{name!r}: expected dtype, shape and data_offsets, got {str(entry)[:80]}")
    word, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(word, str) or word not in DTYPES:
        return fail(path, f"{name!r}: expected a dtype of {', '.join(DTYPES)}, got {str(word)[:40]}")
    if not isinstance(shape, list) or len(shape) > 8 or not all(is_count(n) for n in shape):
        return fail(path, f"{name!r}: expected a shape of at most 8 sizes, got {str(shape)[:80]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(is_count(n) for n in offsets):
        return fail(path, f"{name!r}: expected two offsets, got {str(offsets)[:80]}")
    begin, end = offsets
    dtype = DTYPES[word]
    size = math.prod(shape) * bits(dtype).itemsize
    if not begin <= end <= room or end - begin != size:
        return fail(
            path, f"{name!r}: expected {size} bytes inside the {room} of the file, got offsets {begin} to {end}"
        )
    return dtype, tuple(shape), begin, end


def _read_safetensors(path: Path, device: Any, use_mmap: bool) -> Checkpoint:
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > size - 8:
            return fail(path, f"expected a header inside the file of {size} bytes, got one of {length}")
        if length > LARGEST_HEADER:
            return fail(path, f"expected a header of at most {LARGEST_HEADER} bytes, got {length}")
        header = header_of(path, file.read(length))
    metadata = strings(path, header.pop(METADATA, {}))
    room = size - 8 - length
    entries = {name: _entry(path, name, entry, room) for name, entry in header.items()}
    end = 0
    for name, (_, _, first, last) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if first != end:
            return fail(
                path, f"{name!r}: expected data from offset {end} on, got {first} (tensors overlap, or leave a hole)"
            )
        end = last
    if end != room:
        return fail(path, f"expected {end} bytes of data, got {room}")
    with open(path, "rb") as file:
        shared = _map(file, entries, 8 + length, room) if use_mmap and device.is_cpu else None
        tensors = {}
        for name, (dtype, shape, begin, end) in entries.items():
            tensor = None if shared is None else _borrow(shared[begin:end], dtype, shape)
            if tensor is None:
                file.seek(8 + length + begin)
                tensor = _read(path, file, end - begin, dtype, shape, device)
            tensors[name] = tensor
    return _checkpoint(path, tensors, metadata)


def _map(file: Any, entries: Mapping[str, Any], start: int, room: int) -> np.ndarray | None:
    """The data as memory that is read from the file when it is looked at; writes stay in memory."""
    if room == 0:
        return None
    return np.frombuffer(mmap.mmap(file.fileno(), start + room, access=mmap.ACCESS_COPY), np.uint8)[start:]


def _borrow(raw: np.ndarray, dtype: str, shape: tuple[int, ...]) -> Tensor | None:
    """A tensor in mapped memory; None where its address is not aligned, or the bytes are not what a bool holds."""
    if dtype == "bool" and raw.max(initial=0) > 1:
        return None
    return _core._borrow_buffer(raw, shape, dtype)


_PIECE = 64 << 20  # bytes


def _read(path: Path, file: Any, size: int, dtype: str, shape: tuple[int, ...], device: Any) -> Tensor:
    """A tensor with memory of its own; host memory for a tensor of a device is a piece at a time."""
    if device.is_cpu or size <= _PIECE:
        raw = np.empty(size, np.uint8)
        _read_into(path, file, raw)
        shared = _core._borrow_buffer(raw, shape, dtype) if device.is_cpu and dtype != "bool" else None
        return tensor_of(raw, dtype, shape, device) if shared is None else shared
    out = _core._empty((math.prod(shape),), dtype, device)
    width = bits(dtype).itemsize
    buffer = np.empty(_PIECE, np.uint8)
    for begin in range(0, size, _PIECE):
        raw = buffer[: min(_PIECE, size - begin)]
        _read_into(path, file, raw)
        piece = tensor_of(raw, dtype, (len(raw) // width,), device)
        out.narrow(0, begin // width, piece.numel()).assign_(piece)
    return out.reshape(shape)


def _read_into(path: Path, file: Any, raw: np.ndarray) -> None:
    if file.readinto(raw.data) != raw.nbytes:
        fail(path, f"expected {raw.nbytes} more bytes, got the end of the file")


def _read_index(path: Path, device: Any, use_mmap: bool) -> Checkpoint:
    """The tensors of the files that a `.safetensors.index.json` names, which lie beside it."""
    if path.stat().st_size > LARGEST_HEADER:
        return fail(path, f"expected an index of at most {LARGEST_HEADER} bytes, got {path.stat().st_size}")
    places = header_of(path, path.read_bytes()).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        return fail(path, "expected a weight_map from names to files, got something else")
    tensors: dict[str, Tensor] = {}
    for file in sorted(set(places.values())):
        if not file.endswith(".safetensors") or Path(file).name != file:
            return fail(path, f"expected a .safetensors file beside the index, got {file[:80]!r}")
        part = _read_safetensors(path.with_name(file), device, use_mmap).tensors
        for name in (n for n, where in places.items() if where == file):
            if name not in part:
                return fail(path, f"{name!r}: expected it in {file}, got no such tensor")
            tensors[name] = part[name]
    return Checkpoint({name: tensors[name] for name in places}, {})


def load(
    path: str | os.PathLike, *, device: Any = None, max_expansion_ratio: float = 100.0, use_mmap: bool = True
) -> Checkpoint:
    """Reads a `.safetensors` or `.npz` file; every size and offset is checked before memory is taken.

    A `.safetensors.index.json` file gives the tensors of all the files it names.

    Parameters
    ----------
    device : device or str, optional
        Where the tensors are made.
    max_expansion_ratio : float
        How much larger than in the file a compressed member may be.
    use_mmap : bool
        Tensors of a `.safetensors` file on the CPU are read from the file when they are first used (writing to them
        leaves the file alone). False reads all at once: for a file that another program shortens or overwrites in
        place while the tensors live. `save` does not: it replaces the file.

    Raises
    ------
    ShapeError
        A damaged, truncated or hostile file (a ValueError); the text says what is wrong.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> vkml.save(path, {"w": vkml.ones(2)})
    >>> vkml.load(path)["w"]
    tensor([1., 1.])
    """
    source = Path(path)
    where = _core.get_default_device() if device is None else _core.device(device)
    if source.suffix == ".safetensors":
        return _read_safetensors(source, where, use_mmap)
    if source.name.endswith(".safetensors.index.json"):
        return _read_index(source, where, use_mmap)
    if source.suffix == ".npz":
        return _checkpoint(source, *read_npz(source, where, max_expansion_ratio))
    raise _core.ShapeError(f"load: path: expected a name that ends in .safetensors or .npz, got {source.name}")


def save_module(path: str | os.PathLike, module: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a module's state dict.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> vkml.save_module(path, vkml.nn.Linear(2, 1))
    >>> sorted(vkml.load(path))
    ['bias', 'weight']
    """
    save(path, module.state_dict(), metadata)


def load_module(path: str | os.PathLike, module: Any, strict: bool = True) -> Any:
    """Reads a file into a module. Returns what load_state_dict returns.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> one, other = vkml.nn.Linear(2, 1), vkml.nn.Linear(2, 1)
    >>> vkml.save_module(path, one)
    >>> len(vkml.load_module(path, other).missing_keys), other.weight.tolist() == one.weight.tolist()
    (0, True)
    """
    return module.load_state_dict(load(path, device="cpu").tensors, strict)
