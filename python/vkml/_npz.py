"""NumPy's `.npz` files."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor
from ._file_checks import METADATA, NAMES, VERSION, fail, header_of, host_array, is_count, strings, tensor_of


def write_npz(file: Any, tensors: Mapping[str, Tensor], metadata: dict[str, str], compress: bool) -> None:
    narrow = []
    with zipfile.ZipFile(
        file, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED, allowZip64=True
    ) as archive:

        def add(name: str, array: np.ndarray) -> None:
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)

        for name, t in tensors.items():
            array = host_array(t)
            if t.dtype == _core.bfloat16:
                narrow.append(name)
            info = zipfile.ZipInfo(name + ".npy")
            info.compress_type = archive.compression
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        about = {"version": VERSION, "metadata": metadata, "bfloat16": narrow}
        add(METADATA, np.frombuffer(json.dumps(about).encode(), dtype=np.uint8))


def _npy(path: Path, name: str, member: Any, size: int) -> tuple[np.dtype, tuple[int, ...], bool]:
    try:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member, max_header_size=10_000)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(member, max_header_size=10_000)
        else:
            return fail(path, f"{name!r}: expected .npy version 1 or 2, got {version}")
    except Exception as error:  # NumPy parses the header as Python source: many classes come out of that
        if isinstance(error, _core.Error):
            raise
        return fail(path, f"{name!r}: expected a .npy header, got {str(error)[:200]}")
    if dtype.hasobject or dtype.fields is not None or (dtype.kind not in "biuf") or len(shape) > 8:
        return fail(path, f"{name!r}: expected numbers of rank <= 8, got {dtype} of shape {shape}")
    if not all(is_count(n) for n in shape) or math.prod(shape) * dtype.itemsize != size - member.tell():
        return fail(path, f"{name!r}: expected {size - member.tell()} bytes of data, got shape {shape} of {dtype}")
    return dtype, tuple(shape), fortran


def _read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, ratio: float) -> np.ndarray:
    name = info.filename
    if info.file_size > ratio * max(1, info.compress_size):
        return fail(
            path,
            f"{name!r}: expected an expansion of at most {ratio:g}, got {info.compress_size} bytes to {info.file_size}",
        )
    if info.flag_bits & 1 or info.compress_size > path.stat().st_size:
        return fail(path, f"{name!r}: expected a plain member inside the file, got an encrypted or oversized one")
    try:
        with archive.open(info) as member:
            dtype, shape, fortran = _npy(path, name, member, info.file_size)
            raw = member.read(math.prod(shape) * dtype.itemsize)
            if member.read(1) or len(raw) != math.prod(shape) * dtype.itemsize:
                return fail(
                    path, f"{name!r}: expected {math.prod(shape) * dtype.itemsize} bytes of data, got another number"
                )
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, _zlib_error()) as error:
        if isinstance(error, _core.Error):
            raise
        return fail(path, f"{name!r}: expected a readable member, got {type(error).__name__}: {error}")
    array = np.frombuffer(raw, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _zlib_error() -> type[Exception]:
    import zlib

    return zlib.error


def read_npz(path: Path, device: Any, ratio: float) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        archive = zipfile.ZipFile(path)
    except (FileNotFoundError, PermissionError, IsADirectoryError):  # as for any other file
        raise
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        return fail(path, f"expected a zip archive, got {type(error).__name__}: {error}")
    with archive:
        infos = archive.infolist()
        if len({i.filename for i in infos}) != len(infos):
            return fail(path, "expected every name once, got one twice")
        if sum(i.compress_size for i in infos) > path.stat().st_size:
            return fail(path, "expected members that do not overlap, got more bytes than the file has")
        arrays = {i.filename.removesuffix(".npy"): _read_member(path, archive, i, ratio) for i in infos}
    about: dict[str, Any] = {}
    if METADATA in arrays:
        about = header_of(path, arrays.pop(METADATA).tobytes())
    narrow = about.get("bfloat16", [])
    if not isinstance(narrow, list) or not all(isinstance(n, str) for n in narrow):
        return fail(path, "expected a list of bfloat16 names, got something else")
    version = about.get("version", VERSION)
    if version != VERSION:
        return fail(path, f"expected version {VERSION}, got {str(version)[:40]}")
    tensors = {}
    for name, array in arrays.items():
        if name in narrow and array.dtype != np.uint16:
            return fail(path, f"{name!r}: expected bfloat16 as uint16, got {array.dtype}")
        dtype = "bfloat16" if name in narrow else array.dtype.name
        if dtype not in NAMES:
            return fail(path, f"{name!r}: expected a dtype vkML has, got {dtype}")
        native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(-1)
        tensors[name] = tensor_of(native.view(np.uint8), dtype, array.shape, device)
    return tensors, strings(path, about.get("metadata", {}))
