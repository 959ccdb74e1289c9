"""Files: round trips, other tools, crashes, and files that lie."""

import io
import json
import os
import struct
import zipfile

import numpy as np
import pytest

import vkml

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def some(dtype, shape, device="cpu"):
    bits = {"bfloat16": "uint16"}.get(dtype, dtype)
    values = np.arange(int(np.prod(shape))).reshape(shape) % (2 if dtype == "bool" else 100)
    if dtype == "bfloat16":
        values = values.astype(np.float32).view(np.uint32) >> 16
    return vkml._core._from_buffer(np.ascontiguousarray(values.astype(bits)), shape, dtype, device)


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_round_trip(tmp_path, suffix, device):
    tensors = {f"{d}.{i}": some(d, s, device) for d in DTYPES for i, s in enumerate([(), (3,), (2, 3), (0, 2)])}
    path = tmp_path / f"all.{suffix}"
    vkml.save(path, tensors, {"step": "7", "note": "ä\n"})
    back = vkml.load(path, device=device)
    assert (
        set(back) == set(tensors)
        and back.metadata == {"step": "7", "note": "ä\n"}
        and back.version == 1
        and len(back) == len(tensors)
    )
    for name, t in tensors.items():
        assert back[name].dtype == t.dtype and back[name].shape == t.shape and back[name].device == device
        assert back[name].tolist() == t.tolist(), name


def test_strided_tensors_and_arrays(tmp_path):
    x = some("float32", (3, 4))
    vkml.save(
        tmp_path / "x.safetensors", {"t": x.T, "a": np.arange(3, dtype=np.int32), "row": x.narrow(0, 1, 1), "n": 1.5}
    )
    back = vkml.load(tmp_path / "x.safetensors")
    assert (
        back["t"].tolist() == x.T.tolist() and back["a"].dtype == vkml.int32 and back["row"].tolist() == [[4, 5, 6, 7]]
    )
    assert back["n"] == 1.5


def test_the_safetensors_library_reads_ours_and_we_read_theirs(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    ours = {"a": some("float32", (2, 3)), "b": some("int64", (4,)), "c": some("bool", (3,))}
    vkml.save(tmp_path / "ours.safetensors", ours, {"k": "v"})
    read = library.load_file(tmp_path / "ours.safetensors")
    assert {k: v.tolist() for k, v in read.items()} == {k: v.tolist() for k, v in ours.items()}
    library.save_file({k: np.array(v) for k, v in ours.items()}, tmp_path / "theirs.safetensors", {"k": "v"})
    back = vkml.load(tmp_path / "theirs.safetensors")
    assert {k: v.tolist() for k, v in back.items()} == {k: v.tolist() for k, v in ours.items()} and back.metadata == {
        "k": "v"
    }


def test_npz_is_numpys(tmp_path):
    vkml.save(tmp_path / "x.npz", {"a": some("float32", (2, 3))}, compress=True)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as archive:
        assert archive["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    np.savez(tmp_path / "y.npz", f=np.asfortranarray(np.arange(6.0).reshape(2, 3)), big=np.arange(3, dtype=">i4"))
    back = vkml.load(tmp_path / "y.npz")
    assert (
        back["f"].dtype == vkml.float64
        and back["f"].tolist() == [[0, 1, 2], [3, 4, 5]]
        and back["big"].tolist() == [0, 1, 2]
    )


def test_modules(tmp_path):
    make = lambda: vkml.nn.Sequential(vkml.nn.LayerNorm(3), vkml.nn.Identity())  # noqa: E731
    one, other = make(), make()
    with vkml.no_grad():
        one[0].weight.fill_(3)
    vkml.save_module(tmp_path / "m.safetensors", one)
    assert vkml.load_module(tmp_path / "m.safetensors", other) == ([], [])
    assert other[0].weight.tolist() == [3, 3, 3]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    vkml.save(path, {"a": some("float32", (2,))})
    before = path.read_bytes()
    for bad in (
        {"a": vkml.Tensor()},
        {1: some("float32", (2,))},
        {"a": object()},
        {"__metadata__": some("int8", (1,))},
    ):
        with pytest.raises(vkml.Error):
            vkml.save(path, bad)
    with pytest.raises(vkml.DTypeError, match="metadata: expected strings"):
        vkml.save(path, {}, {"a": 1})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.safetensors"]
    for name in ("x.pt", "x"):
        with pytest.raises(vkml.ShapeError, match="save: path: expected"):
            vkml.save(tmp_path / name, {})
        with pytest.raises(vkml.ShapeError, match="load: path: expected"):
            vkml.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        vkml.load(tmp_path / "none.safetensors")


# Files that lie -------------------------------------------------------------------------------------------------------


def written(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


EIGHT = b"\0" * 8
HOSTILE = {
    "empty": b"",
    "short": b"\1\0\0",
    "header past the end": written({}, length=1000),
    "header of 2^63": written({}, length=2**63),
    "no JSON": written(b"{nonsense"),
    "not UTF-8": written(b"\xff\xfe{}"),
    "a list": written(b"[]"),
    "deep": written(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "twins": written(b'{"a":' + json.dumps(entry()).encode() + b',"a":' + json.dumps(entry()).encode() + b"}", EIGHT),
    "no offsets": written({"a": {"dtype": "F32", "shape": [2]}}, EIGHT),
    "unknown dtype": written({"a": entry("F8_E4M3")}, EIGHT),
    "dtype of another kind": written({"a": entry(["F32"])}, EIGHT),
    "negative size": written({"a": entry(shape=(-2,))}, EIGHT),
    "size as text": written({"a": entry(shape=("2",))}, EIGHT),
    "size as bool": written({"a": entry(shape=(True, 2))}, EIGHT),
    "fractional size": written({"a": entry(shape=(2.0,))}, EIGHT),
    "rank 9": written({"a": entry(shape=(1,) * 8 + (2,))}, EIGHT),
    "overflowing sizes": written({"a": entry(shape=(2**40, 2**40))}, EIGHT),
    "huge tensor": written({"a": entry(shape=(2**40,), offsets=(0, 2**42))}, EIGHT),
    "offsets past the end": written({"a": entry(offsets=(8, 16))}, EIGHT),
    "offsets backwards": written({"a": entry(offsets=(8, 0))}, EIGHT),
    "negative offset": written({"a": entry(offsets=(-8, 0))}, EIGHT),
    "size unlike offsets": written({"a": entry(shape=(1,))}, EIGHT),
    "overlap": written({"a": entry(), "b": entry(offsets=(4, 12))}, EIGHT + EIGHT),
    "hole": written({"a": entry(), "b": entry(offsets=(12, 20))}, EIGHT * 3),
    "trailing bytes": written({"a": entry()}, EIGHT + b"x"),
    "truncated data": written({"a": entry()}, EIGHT[:5]),
    "metadata of numbers": written({"__metadata__": {"a": 1}}),
    "metadata as a list": written({"__metadata__": [1]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_safetensors(tmp_path, name):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ValueError, match=r"load: .*bad.safetensors: .*expected"):
        vkml.load(path)


def test_every_truncation_is_an_error(tmp_path):
    for suffix in ("safetensors", "npz"):
        path = tmp_path / f"x.{suffix}"
        vkml.save(path, {"a": some("float32", (4,)), "b": some("int8", (3,))}, {"k": "v"})
        whole = path.read_bytes()
        for cut in range(0, len(whole), 7):
            path.write_bytes(whole[:cut])
            with pytest.raises(ValueError, match="load: "):
                vkml.load(path)


def test_flipped_bits_never_crash(tmp_path):
    for suffix in ("safetensors", "npz"):
        path = tmp_path / f"x.{suffix}"
        vkml.save(path, {"a": some("float32", (4,))}, {"k": "v"}, compress=suffix == "npz")
        whole = bytearray(path.read_bytes())
        for at in range(len(whole)):
            for flip in (1, 0x80, 0xFF):
                changed = bytearray(whole)
                changed[at] ^= flip
                path.write_bytes(changed)
                try:
                    vkml.load(path)
                except ValueError as error:
                    assert "load: " in str(error)


def zipped(members, **kwargs):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **kwargs) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def npy(array, **kwargs):
    out = io.BytesIO()
    np.save(out, array, **kwargs)
    return out.getvalue()


BOMB = npy(np.zeros(10_000_000, np.uint8))
HOSTILE_NPZ = {
    "no zip": b"PK nonsense",
    "no npy": zipped([("a.npy", b"hello")]),
    "pickle": zipped([("a.npy", npy(np.array([{}], dtype=object), allow_pickle=True))]),
    "text": zipped([("a.npy", npy(np.array(["x"])))]),
    "fields": zipped([("a.npy", npy(np.zeros(2, [("x", "f4")])))]),
    "complex": zipped([("a.npy", npy(np.zeros(2, np.complex64)))]),
    "uint32": zipped([("a.npy", npy(np.zeros(2, np.uint32)))]),
    "rank 9": zipped([("a.npy", npy(np.zeros((1,) * 9)))]),
    "short": zipped([("a.npy", npy(np.zeros(4))[:-3])]),
    "long": zipped([("a.npy", npy(np.zeros(4)) + b"xyz")]),
    "huge shape": zipped([("a.npy", npy(np.zeros(2)).replace(b"(2,), ", b"(2**9,"))]),
    "bomb": zipped([("a.npy", BOMB)], compression=zipfile.ZIP_DEFLATED),
    "metadata": zipped([("__metadata__.npy", npy(np.frombuffer(b"[1]", np.uint8)))]),
    "version": zipped([("__metadata__.npy", npy(np.frombuffer(b'{"version": 9}', np.uint8)))]),
    "bfloat16 of floats": zipped(
        [("a.npy", npy(np.zeros(2))), ("__metadata__.npy", npy(np.frombuffer(b'{"bfloat16": ["a"]}', np.uint8)))]
    ),
}


@pytest.mark.parametrize("name", HOSTILE_NPZ)
def test_hostile_npz(tmp_path, name):
    path = tmp_path / "bad.npz"
    path.write_bytes(HOSTILE_NPZ[name])
    with pytest.raises(ValueError, match=r"load: .*bad.npz: .*expected"):
        vkml.load(path)


def test_the_expansion_limit_can_be_raised(tmp_path):
    path = tmp_path / "zeros.npz"
    vkml.save(path, {"a": vkml.zeros(1_000_000)}, compress=True)
    with pytest.raises(ValueError, match="expected an expansion of at most 100"):
        vkml.load(path)
    assert vkml.load(path, max_expansion_ratio=5000)["a"].shape == (1_000_000,)


def test_odd_bytes_are_no_bools(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(written({"a": entry("BOOL", (4,), (0, 4))}, bytes([0, 1, 2, 255])))
    assert vkml.load(path)["a"].tolist() == [False, True, True, True]
