"""Files of tensors: `.safetensors` and `.npz`. Nothing is pickled; every number in a file is checked first."""

from __future__ import annotations

import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor
from ._creation import as_tensor

__all__ = ["Checkpoint", "load", "load_module", "save", "save_module"]

# Names in safetensors headers, and the NumPy dtype that holds the bytes.
_NAMES = {
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
_DTYPES = {word: name for name, word in _NAMES.items()}
_LARGEST_HEADER = 100_000_000  # bytes, the limit of the safetensors library
_METADATA = "__metadata__"
_VERSION = 1


class Checkpoint(Mapping):
    """What load() returns: a mapping from names to tensors, with `.metadata` and `.version`."""

    def __init__(self, tensors: dict[str, Tensor], metadata: dict[str, str], version: int = _VERSION) -> None:
        self.tensors, self.metadata, self.version = tensors, metadata, version

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self) -> str:
        return f"Checkpoint({len(self)} tensors, metadata={self.metadata!r})"


def _bits(name: str) -> np.dtype:
    return np.dtype(np.uint16 if name == "bfloat16" else name)


def _fail(path: Any, text: str) -> Any:
    raise _core.ShapeError(f"load: {path}: {text}") from None


# Saving ---------------------------------------------------------------------------------------------------------------


def _host(name: Any, value: Any) -> tuple[np.ndarray, str]:
    if not isinstance(name, str):
        raise _core.DTypeError(f"save: expected names that are strings, got {name!r}")
    t = value if isinstance(value, Tensor) else as_tensor(value, device="cpu")
    return np.ascontiguousarray(_core._host_array(t)).reshape(t.shape), str(t.dtype)


def _check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    out = dict(metadata or {})
    for key, value in out.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise _core.DTypeError(f"save: metadata: expected strings, got {key!r}: {value!r}")
    return out


def _write_safetensors(file: Any, tensors: Mapping[str, Any], metadata: dict[str, str]) -> None:
    header: dict[str, Any] = {_METADATA: metadata} if metadata else {}
    arrays, offset = [], 0
    for name, value in tensors.items():
        if name == _METADATA:
            raise _core.ShapeError(f"save: expected a name other than {_METADATA}")
        array, dtype = _host(name, value)
        header[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
        arrays.append(array)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data start aligned
    file.write(len(text).to_bytes(8, "little") + text)
    for array in arrays:
        file.write(array.reshape(-1).view(np.uint8).data)


def _write_npz(file: Any, tensors: Mapping[str, Any], metadata: dict[str, str], compress: bool) -> None:
    narrow = []
    with zipfile.ZipFile(
        file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED, allowZip64=True
    ) as archive:

        def add(name: str, array: np.ndarray) -> None:
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)

        for name, value in tensors.items():
            array, dtype = _host(name, value)
            if dtype == "bfloat16":
                narrow.append(name)
            info = zipfile.ZipInfo(name + ".npy")
            info.compress_type = archive.compression
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        about = {"version": _VERSION, "metadata": metadata, "bfloat16": narrow}
        add(_METADATA, np.frombuffer(json.dumps(about).encode(), dtype=np.uint8))


def save(
    path: str | os.PathLike,
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    compress: bool = False,
) -> None:
    """Writes named tensors to `.safetensors` (which other tools read) or `.npz`; a crash leaves an older file whole.

    Parameters
    ----------
    tensors : mapping from names to tensors (arrays, numbers)
    metadata : mapping from strings to strings, optional
    compress : bool
        For `.npz` only.

    Examples
    --------
    >>> vkml.save("weights.safetensors", {"w": vkml.ones(2)}, {"step": "7"})  # doctest: +SKIP
    """
    target = Path(path)
    if target.suffix not in (".safetensors", ".npz"):
        raise _core.ShapeError(f"save: path: expected a name that ends in .safetensors or .npz, got {target.name}")
    if compress and target.suffix != ".npz":
        raise _core.ShapeError("save: compress: expected False, for .safetensors files are not compressed")
    if not isinstance(tensors, Mapping):
        raise _core.DTypeError(f"save: expected a mapping from names to tensors, got {type(tensors).__name__}")
    about = _check_metadata(metadata)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(beside, "xb") as file:
            if target.suffix == ".npz":
                _write_npz(file, tensors, about, compress)
            else:
                _write_safetensors(file, tensors, about)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


# Loading --------------------------------------------------------------------------------------------------------------


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("expected every name once, got one twice")
    return out


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def _header(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        return _fail(path, f"expected a JSON header, got {type(error).__name__}: {str(error)[:200]}")
    if not isinstance(header, dict):
        return _fail(path, f"expected a JSON object as header, got {type(header).__name__}")
    return header


def _strings(path: Path, metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        return _fail(path, "expected metadata of strings, got something else")
    return metadata


def _entry(path: Path, name: str, entry: Any, room: int) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return _fail(path, f"{name!r}: expected dtype, shape and data_offsets, got {str(entry)[:80]}")
    word, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(word, str) or word not in _DTYPES:
        return _fail(path, f"{name!r}: expected a dtype of {', '.join(_DTYPES)}, got {str(word)[:40]}")
    if not isinstance(shape, list) or len(shape) > 8 or not all(_is_count(n) for n in shape):
        return _fail(path, f"{name!r}: expected a shape of at most 8 sizes, got {str(shape)[:80]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_count(n) for n in offsets):
        return _fail(path, f"{name!r}: expected two offsets, got {str(offsets)[:80]}")
    begin, end = offsets
    dtype = _DTYPES[word]
    size = math.prod(shape) * _bits(dtype).itemsize
    if not begin <= end <= room or end - begin != size:
        return _fail(
            path, f"{name!r}: expected {size} bytes inside the {room} of the file, got offsets {begin} to {end}"
        )
    return dtype, tuple(shape), begin, end


def _read_safetensors(path: Path, device: Any) -> Checkpoint:
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > size - 8:
            return _fail(path, f"expected a header inside the file of {size} bytes, got one of {length}")
        if length > _LARGEST_HEADER:
            return _fail(path, f"expected a header of at most {_LARGEST_HEADER} bytes, got {length}")
        header = _header(path, file.read(length))
    metadata = _strings(path, header.pop(_METADATA, {}))
    room = size - 8 - length
    entries = {name: _entry(path, name, entry, room) for name, entry in header.items()}
    end = 0
    for name, (_, _, first, last) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if first != end:
            return _fail(
                path, f"{name!r}: expected data from offset {end} on, got {first} (tensors overlap, or leave a hole)"
            )
        end = last
    if end != room:
        return _fail(path, f"expected {end} bytes of data, got {room}")
    data = np.memmap(path, np.uint8, "r", 8 + length) if room else np.empty(0, np.uint8)
    return Checkpoint({name: _tensor(data[b:e], d, s, device) for name, (d, s, b, e) in entries.items()}, metadata)


def _tensor(raw: np.ndarray, dtype: str, shape: tuple[int, ...], device: Any) -> Tensor:
    values = np.frombuffer(raw, np.uint8)
    if dtype == "bool":
        values = (values != 0).view(np.uint8)  # any other byte than 0 and 1 would be no bool
    return _core._from_buffer(values, shape, dtype, device)


def _npy(path: Path, name: str, member: Any, size: int) -> tuple[np.dtype, tuple[int, ...], bool]:
    try:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member, max_header_size=10_000)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(member, max_header_size=10_000)
        else:
            return _fail(path, f"{name!r}: expected .npy version 1 or 2, got {version}")
    except Exception as error:  # NumPy parses the header as Python source: many classes come out of that
        if isinstance(error, _core.Error):
            raise
        return _fail(path, f"{name!r}: expected a .npy header, got {str(error)[:200]}")
    if dtype.hasobject or dtype.fields is not None or (dtype.kind not in "biuf") or len(shape) > 8:
        return _fail(path, f"{name!r}: expected numbers of rank <= 8, got {dtype} of shape {shape}")
    if not all(_is_count(n) for n in shape) or math.prod(shape) * dtype.itemsize != size - member.tell():
        return _fail(path, f"{name!r}: expected {size - member.tell()} bytes of data, got shape {shape} of {dtype}")
    return dtype, tuple(shape), fortran


def _read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, ratio: float) -> np.ndarray:
    name = info.filename
    if info.file_size > ratio * max(1, info.compress_size):
        return _fail(
            path,
            f"{name!r}: expected an expansion of at most {ratio:g}, got {info.compress_size} bytes to {info.file_size}",
        )
    if info.flag_bits & 1 or info.compress_size > path.stat().st_size:
        return _fail(path, f"{name!r}: expected a plain member inside the file, got an encrypted or oversized one")
    try:
        with archive.open(info) as member:
            dtype, shape, fortran = _npy(path, name, member, info.file_size)
            raw = member.read(math.prod(shape) * dtype.itemsize)
            if member.read(1) or len(raw) != math.prod(shape) * dtype.itemsize:
                return _fail(
                    path, f"{name!r}: expected {math.prod(shape) * dtype.itemsize} bytes of data, got another number"
                )
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, _zlib_error()) as error:
        if isinstance(error, _core.Error):
            raise
        return _fail(path, f"{name!r}: expected a readable member, got {type(error).__name__}: {error}")
    array = np.frombuffer(raw, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _zlib_error() -> type[Exception]:
    import zlib

    return zlib.error


def _read_npz(path: Path, device: Any, ratio: float) -> Checkpoint:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        return _fail(path, f"expected a zip archive, got {type(error).__name__}: {error}")
    with archive:
        infos = archive.infolist()
        if len({i.filename for i in infos}) != len(infos):
            return _fail(path, "expected every name once, got one twice")
        if sum(i.compress_size for i in infos) > path.stat().st_size:
            return _fail(path, "expected members that do not overlap, got more bytes than the file has")
        arrays = {i.filename.removesuffix(".npy"): _read_member(path, archive, i, ratio) for i in infos}
    about: dict[str, Any] = {}
    if _METADATA in arrays:
        about = _header(path, arrays.pop(_METADATA).tobytes())
    narrow = about.get("bfloat16", [])
    if not isinstance(narrow, list) or not all(isinstance(n, str) for n in narrow):
        return _fail(path, "expected a list of bfloat16 names, got something else")
    version = about.get("version", _VERSION)
    if version != _VERSION:
        return _fail(path, f"expected version {_VERSION}, got {str(version)[:40]}")
    tensors = {}
    for name, array in arrays.items():
        if name in narrow and array.dtype != np.uint16:
            return _fail(path, f"{name!r}: expected bfloat16 as uint16, got {array.dtype}")
        dtype = "bfloat16" if name in narrow else array.dtype.name
        if dtype not in _NAMES:
            return _fail(path, f"{name!r}: expected a dtype vkML has, got {dtype}")
        native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(-1)
        tensors[name] = _tensor(native.view(np.uint8), dtype, array.shape, device)
    return Checkpoint(tensors, _strings(path, about.get("metadata", {})))


def load(path: str | os.PathLike, *, device: Any = None, max_expansion_ratio: float = 100.0) -> Checkpoint:
    """Reads a `.safetensors` or `.npz` file; every size and offset is checked before memory is taken.

    Parameters
    ----------
    device : device or str, optional
        Where the tensors are made.
    max_expansion_ratio : float
        How much larger than in the file a compressed member may be.

    Raises
    ------
    ShapeError
        A damaged, truncated or hostile file (a ValueError); the text says what is wrong.

    Examples
    --------
    >>> vkml.load("weights.safetensors")["w"].shape  # doctest: +SKIP
    (2,)
    """
    source = Path(path)
    where = _core.get_default_device() if device is None else _core.device(device)
    if source.suffix == ".safetensors":
        return _read_safetensors(source, where)
    if source.suffix == ".npz":
        return _read_npz(source, where, max_expansion_ratio)
    raise _core.ShapeError(f"load: path: expected a name that ends in .safetensors or .npz, got {source.name}")


def save_module(path: str | os.PathLike, module: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a module's state dict."""
    save(path, module.state_dict(), metadata)


def load_module(path: str | os.PathLike, module: Any, strict: bool = True) -> Any:
    """Reads a file into a module. Returns what load_state_dict returns."""
    return module.load_state_dict(load(path, device="cpu").tensors, strict)
