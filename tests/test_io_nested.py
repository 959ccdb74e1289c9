"""Whole checkpoints without a pickle, PyTorch's and the safetensors library's files, sharded ones, mapped memory."""

import json
import math
import os

import numpy as np
import pytest

import vkml


def plain(value):
    """Tensors as lists, for comparing."""
    if isinstance(value, vkml.Tensor):
        return ("tensor", str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    return "nan" if isinstance(value, float) and math.isnan(value) else value


NESTED = {
    "epoch": 3,
    "lr": 0.125,
    "name": "run ä\n",
    "nothing": None,
    "flags": [True, False, [], {}],
    "betas": (0.9, 0.999),
    "odd": [math.inf, -math.inf, math.nan, -0.0, 1e-310, 2**70],
    "keys": {0: "a", 1: {"x.y": 1, "x": {"y": 2}}, -7: None, 1.5: "f", None: "n", "": 0},
}


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_nested_values(tmp_path, suffix, device):
    x, y = vkml.tensor([[1.0, 2.0]], device=device), vkml.tensor([1, 2], device=device)
    saved = {**NESTED, "state": {0: {"m": x}, "w.m": [y, (x, 5)], "w": {"m": vkml.ones(2, dtype="bfloat16")}}, "w": y}
    path = tmp_path / f"run.{suffix}"
    vkml.save(path, saved, {"note": "kept"})
    back = vkml.load(path, device=device)
    assert plain(dict(back)) == plain(saved)
    assert back.metadata == {"note": "kept"} and list(back) == list(saved)
    assert {t.device for t in back.tensors.values()} == {vkml.device(device)}
    assert back["state"][0]["m"] is back["state"]["w.m"][1][0] and len(back.tensors) == 3  # one tensor, once


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_training_goes_on(tmp_path, suffix, device):
    def make():
        vkml.manual_seed(1)
        model = vkml.nn.Sequential(
            vkml.nn.Linear(3, 4), vkml.nn.BatchNorm2d(4), vkml.nn.Flatten(), vkml.nn.Linear(4, 1)
        )
        model.to(device)
        optimizer = vkml.optim.AdamW(
            [{"params": list(model[0].parameters())}, {"params": list(model[3].parameters()), "lr": 0.02}], lr=0.01
        )
        return model, optimizer, vkml.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)

    data = vkml.tensor(np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32), device=device)

    def steps(model, optimizer, schedule, n):
        for _ in range(n):
            optimizer.zero_grad()
            h = model[1](model[0](data).reshape(6, 4, 1, 1))
            (model[3](h.flatten(1)) ** 2).mean().backward()
            optimizer.step()
            schedule.step()

    run = make()
    steps(*run, 3)
    path = tmp_path / f"run.{suffix}"
    names = ("model", "optimizer", "schedule")
    vkml.save(path, {**{n: x.state_dict() for n, x in zip(names, run, strict=True)}, "epoch": 3})
    again = make()
    saved = vkml.load(path, device="cpu")
    for name, part in zip(names, again, strict=True):
        part.load_state_dict(saved[name])
    steps(*run, 4)
    steps(*again, 4)
    assert [p.tolist() for p in again[0].parameters()] == [p.tolist() for p in run[0].parameters()]
    assert again[1].param_groups[1]["lr"] == run[1].param_groups[1]["lr"]


def test_what_cannot_be_saved(tmp_path):
    deep = []
    for _ in range(300):
        deep = [deep]
    for bad in (
        {"a": 1, "b": object()},
        {"a": {b"x": 1}},
        {"a": {(1, 2): 1}},
        {1: 2},
        {"a": deep},
        {"a": 1, "b": b"bytes"},
        {"a": {1, 2}},
        [1],
    ):
        with pytest.raises(ValueError if bad == {"a": deep} else vkml.Error, match="save: "):
            vkml.save(tmp_path / "x.safetensors", bad)
    assert os.listdir(tmp_path) == []


STRUCTURES = [
    "nonsense",
    "[]",
    "1",
    '{"tensor":"w"}',
    '{"dict":[["a",{"tensor":"missing"}]]}',
    '{"dict":[["a",1],["a",2]]}',
    '{"dict":[[["a"],1]]}',
    '{"dict":[["a"]]}',
    '{"dict":{"a":1}}',
    '{"dict":[["a",{"number":"1"}]]}',
    '{"dict":[["a",{"call":"os.system"}]]}',
    '{"dict":[["a",{"tuple":1}]]}',
    '{"dict":[["a",{"tensor":["w"]}]]}',
    '{"dict":[["a",{}]]}',
    '{"dict":[["a",{"tensor":"w","number":"inf"}]]}',
    '{"dict":[["a",' + "[" * 5000 + "]" * 5000 + "]]}",
    '{"dict":[["a",' + "[" * 150 + "]" * 150 + "]]}",
    '{"dict":[["a",' + "9" * 10000 + "]]}",
]


@pytest.mark.parametrize("text", STRUCTURES, ids=lambda t: t[:40])
def test_structures_that_lie(tmp_path, text):
    header = {
        "__metadata__": {"vkml.structure": text},
        "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    raw = json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(4))
    with pytest.raises(ValueError, match=r"load: .*expected"):
        vkml.load(path)


@pytest.mark.torch
def test_torch_reads_ours_and_we_read_theirs(tmp_path, device):
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("safetensors.torch")
    theirs = {
        str(d).removeprefix("torch."): torch.tensor([[0, 1, 2], [3, 4, 5]]).to(d)
        for d in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                  torch.bfloat16, torch.float32, torch.float64)
    }  # fmt: skip
    theirs["scalar"], theirs["empty"] = torch.tensor(1.5), torch.zeros(0, 3)
    library.save_file(theirs, tmp_path / "theirs.safetensors")
    back = vkml.load(tmp_path / "theirs.safetensors", device=device)
    assert {n: (t.tolist(), t.shape) for n, t in back.items()} == {
        n: (t.tolist(), tuple(t.shape)) for n, t in theirs.items()
    }
    assert all(t.dtype == n for n, t in back.items() if n not in ("scalar", "empty"))
    vkml.save(tmp_path / "ours.safetensors", {"step": 3, "model": dict(back)})
    again = library.load_file(tmp_path / "ours.safetensors")
    assert all(torch.equal(again[f"model.{n}"], t) and again[f"model.{n}"].dtype == t.dtype for n, t in theirs.items())


def test_sharded_files(tmp_path, device):
    first, second = {"a": vkml.ones(2), "b": vkml.full((3,), 2.0)}, {"c": vkml.full((1,), 3.0), "other": vkml.ones(1)}
    vkml.save(tmp_path / "model-00001-of-00002.safetensors", first)
    vkml.save(tmp_path / "model-00002-of-00002.safetensors", second)
    places = {"c": "model-00002-of-00002.safetensors", "a": "model-00001-of-00002.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 12}, "weight_map": places}))
    back = vkml.load(index, device=device)
    assert {n: t.tolist() for n, t in back.items()} == {"c": [3], "a": [1, 1]}
    for bad in (
        "[]",
        "{}",
        '{"weight_map": {"a": 1}}',
        '{"weight_map": ["a"]}',
        '{"weight_map": {"a": "../x.safetensors"}}',
        '{"weight_map": {"a": "/etc/x.safetensors"}}',
        '{"weight_map": {"a": "model.pt"}}',
        '{"weight_map": {"missing": "model-00001-of-00002.safetensors"}}',
        '{"weight_map": {"a": "x", "a": "y"}}',
    ):
        index.write_text(bad)
        with pytest.raises(ValueError, match=r"load: .*expected"):
            vkml.load(index)


def test_mapped_tensors(tmp_path):
    """Writes stay in memory, and a replaced file leaves the old values; odd addresses are copied."""
    path = tmp_path / "x.safetensors"
    odd = {"flag": vkml.tensor([True]), "w": vkml.tensor([1.0, 2.0]), "h": vkml.tensor([3.0], dtype="float16")}
    vkml.save(path, odd)
    whole = path.read_bytes()
    back = vkml.load(path)
    copied = vkml.load(path, use_mmap=False)
    for t in (back, copied):
        assert {n: v.tolist() for n, v in t.items()} == {n: v.tolist() for n, v in odd.items()}
        t["w"].fill_(9.0)
        t["flag"].fill_(False)
    assert path.read_bytes() == whole and vkml.load(path)["w"].tolist() == [1, 2]
    vkml.save(path, {"w": vkml.zeros(2)})
    assert back["w"].tolist() == [9, 9] and back["h"].tolist() == [3]
    assert (back["w"] * 2).tolist() == [18, 18]


def test_a_model_can_be_saved_over_the_file_it_came_from(tmp_path):
    path = tmp_path / "x.safetensors"
    vkml.save(path, {"w": vkml.full((100_000,), 2.0)})
    for _ in range(3):
        vkml.save(path, dict(vkml.load(path)))
    assert vkml.load(path)["w"].sum().item() == 200_000
