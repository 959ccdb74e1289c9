"""Exchanges with PyTorch's CUDA tensors; `python cuda_exchange.py PART` in a process of its own."""

import gc
import sys
from pathlib import Path

import torch

import vkml

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def made(shape, dtype):
    torch.manual_seed(3)
    return (torch.rand(shape, device="cuda") * 200 - 60).to(getattr(torch, dtype))


def same(t, x):
    assert str(t.device).startswith("vulkan") and str(t.dtype) == str(x.dtype).split(".")[1]
    assert tuple(t.shape) == tuple(x.shape)
    assert torch.equal(torch.from_dlpack(t.cpu()), x.cpu())


def values():
    for dtype in DTYPES:
        for shape in [(), (1,), (7,), (33, 65), (0, 3), (1000, 1003)]:
            x = made(shape, dtype)
            same(vkml.from_dlpack(x), x)
    x = made((64, 64), "float32")
    assert (vkml.from_dlpack(x) * 2).sum().item() == (vkml.tensor(x.cpu()) * 2).sum().item()
    on_vulkan = vkml.tensor(made((9,), "float64"), device="vulkan:0")
    assert on_vulkan.dtype == vkml.float32
    on_cpu = vkml.tensor(made((9,), "int32"), device="cpu")
    assert on_cpu.tolist() == made((9,), "int32").tolist()


def layouts():
    x = made((40, 60), "float32")
    for view in [x.T, x[3:, ::7], x[:, 5], x[11:12], x[::9], x[2].expand(5, 60), x.reshape(10, 4, 60).permute(2, 0, 1)]:
        t = vkml.from_dlpack(view)
        same(t, view)
        same(t + 1, view + 1)
    h = made((5000,), "float16")
    for offset in (1, 3, 130):
        same(vkml.from_dlpack(h[offset:]), h[offset:])
    big = made((64 << 20,), "float32")  # 256 MiB, memory of its own
    t = vkml.from_dlpack(big)
    del big
    gc.collect()
    torch.cuda.empty_cache()
    again = made((64 << 20,), "float32")
    same(t, again)


def order():
    """The copy comes after the producer's pending work, on its current stream and on another."""
    a = made((4096, 4096), "float32")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        for i in range(5):
            with torch.cuda.stream(stream):
                x = a
                for _ in range(20):
                    x = torch.relu(x @ a * 1e-5 + i)
                t = vkml.from_dlpack(x)
                x_then = x.clone()
                x.zero_()
            torch.cuda.synchronize()
            same(t, x_then)
    # and a freed block is not overwritten while Vulkan reads it
    kept = []
    for i in range(50):
        t = vkml.from_dlpack(torch.full((1 << 20,), float(i), device="cuda"))
        for _ in range(10):
            t = t + 1
        kept.append(t[:5].clone())
        del t
    assert [k.tolist() for k in kept] == [[i + 10.0] * 5 for i in range(50)]


def export():
    for dtype in DTYPES:
        for shape in [(), (7,), (0, 3), (100, 103)]:
            x = made(shape, dtype)
            v = vkml.tensor(x.cpu().double() if dtype == "float64" else x.cpu(), dtype=dtype, device="vulkan:0")
            back = torch.from_dlpack(v.__dlpack__(dl_device=(2, 0), max_version=(1, 0)))
            assert back.is_cuda and back.dtype == x.dtype and torch.equal(back, x)
    x = vkml.tensor(made((40, 60), "float32").cpu(), device="vulkan:0")
    for view in (x.T, x[3:, ::7], x[:, 5]):
        y = view * 1.5
        for _ in range(30):
            y = y + 1
        got = torch.from_dlpack(y.__dlpack__(dl_device=(2, 0), stream=torch.cuda.current_stream().cuda_stream or 1))
        assert torch.allclose(got.cpu(), torch.from_dlpack(y.cpu()))
    assert x.__dlpack_device__() == (2, 0)
    for got in (torch.from_dlpack(x), torch.from_dlpack(x, device="cuda:0")):
        assert got.is_cuda and torch.equal(got.cpu(), torch.from_dlpack(x.cpu()))
    taken = vkml.from_dlpack(torch.ones(8, device="cuda"))
    shared = torch.from_dlpack(taken.__dlpack__(dl_device=(2, 0), copy=False))
    shared += 4
    torch.cuda.synchronize()
    assert taken.tolist() == [5] * 8
    taken.fill_(2)
    vkml.synchronize()
    assert shared.tolist() == [2] * 8
    del taken
    gc.collect()
    assert (shared * 3).tolist() == [6] * 8
    # freed while CUDA still computes: the memory is not given to Vulkan before
    for _ in range(20):
        v = vkml.full((1 << 22,), 1.0, device="vulkan:0")
        g = torch.from_dlpack(v.__dlpack__(dl_device=(2, 0)))
        y = g
        for _ in range(20):
            y = g + y * 0
        del g
        vkml.from_dlpack(torch.full((1 << 22,), 9.0, device="cuda"))
        assert (y == 1).all().item()


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def memory():
    x = made((1 << 16,), "float32")
    v = vkml.from_dlpack(x)
    for way in (
        lambda: vkml.from_dlpack(x) + 1,
        lambda: torch.from_dlpack(v.__dlpack__(dl_device=(2, 0), copy=True)) + 1,
    ):
        for _ in range(50):
            way()
        gc.collect()
        torch.cuda.synchronize()
        before, live = resident(), vkml.memory_stats("vulkan:0")
        free = torch.cuda.mem_get_info()[0]
        for _ in range(1000):
            way()
        gc.collect()
        torch.cuda.synchronize()
        now = vkml.memory_stats("vulkan:0")
        assert now["live_allocations"] == live["live_allocations"], (now, live)
        assert now["device_allocations"] == live["device_allocations"], (now, live)
        grown = resident() - before, free - torch.cuda.mem_get_info()[0]
        print("grown over 1,000 exchanges: host, device bytes", grown)
        assert grown[0] < 16 << 20 and grown[1] < 16 << 20
    for _ in range(20):
        vkml.empty_cache("vulkan:0")
        vkml.from_dlpack(x)
    assert torch.equal(torch.from_dlpack(v.cpu()), x.cpu())


if __name__ == "__main__":
    {"values": values, "layouts": layouts, "order": order, "export": export, "memory": memory}[sys.argv[1]]()
    print(sys.argv[1], "done")
