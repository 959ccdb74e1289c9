"""DLPack with CUDA: what is missing where it cannot be had, a stand-in for CUDA on lavapipe, and PyTorch's tensors."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from test_interop_dlpack import Producer

import vkml

HERE = Path(__file__).parent


def vulkan_uuid():
    return vkml.device_info("vulkan:0")["device_uuid"]


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory):
    """A folder with a libcuda.so.1 in which CUDA's one device is lavapipe."""
    if not any(str(d.device) == "vulkan:0" and "llvmpipe" in d.name for d in vkml.devices()):
        pytest.skip("the stand-in for CUDA maps lavapipe's memory only")
    compiler = shutil.which("cc")
    if not compiler or sys.platform != "linux":
        pytest.skip("no C compiler to make the stand-in for CUDA")
    folder = tmp_path_factory.mktemp("cuda")
    command = [compiler, "-shared", "-fPIC", "-O1", str(HERE / "fake_cuda.c"), "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, check=True)
    return folder


def run(code, folder=None, **environment):
    """Runs Python in a process of its own, where that folder's libcuda is the first."""
    env = {**os.environ, **environment}
    env["PYTHONPATH"] = os.pathsep.join([str(HERE), env.get("PYTHONPATH", "")])
    if folder:
        env["LD_LIBRARY_PATH"] = os.pathsep.join([str(folder), env.get("LD_LIBRARY_PATH", "")])
    head = "import ctypes, gc\nimport numpy as np\nimport vkml\n"
    head += "from test_interop_dlpack import ALIVE, Holder, Producer, resident\n"
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fake(code, folder):
    head = "counts = (ctypes.c_int * 5)()\ndef count():\n    ctypes.CDLL('libcuda.so.1').fake_cuda_counts(counts)\n"
    head += "    return dict(zip(('imports', 'frees', 'destroys', 'copies', 'waits'), counts))\n"
    return run(head + textwrap.dedent(code), folder, FAKE_CUDA_UUID=vulkan_uuid())


def no_cuda():
    """The stand-in is not loaded into this process, so the machine's own driver decides."""
    return not any((Path(p) / "libcuda.so.1").exists() for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"))


@pytest.mark.parametrize("kind", [2, 13])
def test_memory_of_cuda_without_cuda(kind):
    if not no_cuda():
        pytest.skip("this machine has CUDA's driver")
    producer = Producer(np.ones(2, np.float32), device=(kind, 0))
    for take in (vkml.from_dlpack, vkml.tensor, vkml.as_tensor):
        with pytest.raises(
            vkml.DeviceError, match=r"got CUDA device 0 \(CUDA: .*no libcuda.so.1\); copy it to the host"
        ):
            take(producer)
    assert producer.kept == []  # no capsule was asked for


def test_pinned_memory_is_the_hosts():
    producer = Producer(np.arange(3, dtype=np.float32), device=(3, 0))
    assert vkml.from_dlpack(producer).tolist() == [0, 1, 2]


def test_export_without_cuda(vulkan):
    if not no_cuda():
        pytest.skip("this machine has CUDA's driver")
    t = vkml.tensor([1.0, 2.0], device=vulkan)
    with pytest.raises(
        BufferError, match=r"does not export to CUDA here \(CUDA: .*libcuda.so.1\); pass dl_device=\(1, 0\)"
    ):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="exports to the CPU or to CUDA on the same GPU only"):
        t.__dlpack__()


def test_what_else_may_be_missing(vulkan, fake_cuda):
    refusal = """
        for take in (lambda: vkml.from_dlpack(Producer(np.ones(2, np.float32), device=(2, {device}))),
                     lambda: vkml.ones(2, device="vulkan:0").__dlpack__(dl_device=(2, {device}))):
            try:
                take()
            except (vkml.DeviceError, BufferError) as error:
                print(error)
    """
    texts = run(refusal.format(device=0), fake_cuda, FAKE_CUDA_UUID="00" * 16)
    assert "vulkan: expected CUDA's device 0 among the" in texts and "got none with its UUID" in texts
    texts = run(refusal.format(device=0), fake_cuda, FAKE_CUDA_FAILS="1").splitlines()
    assert len(texts) == 2 and all("cuInit: expected CUDA_SUCCESS, got CUDA_ERROR_NO_DEVICE" in t for t in texts)
    texts = run(refusal.format(device=3), fake_cuda, FAKE_CUDA_UUID=vulkan_uuid()).splitlines()
    assert "CUDA: expected a device below 1, got 3" in texts[0] and "expected dl_device (2, 0)" in texts[1]


def test_import_from_a_stand_in(vulkan, fake_cuda):
    fake(
        """
        for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
            values = (np.arange(24) % 7).reshape(4, 6).astype(dtype)
            t = vkml.from_dlpack(Producer(values, device=(2, 0), flags=0))
            assert str(t.device) == "vulkan:0" and str(t.dtype) == dtype and t.tolist() == values.tolist()
            if dtype.startswith("float"):
                assert (t * 2).tolist() == (values * 2).tolist()
        values = np.arange(24, dtype=np.int32).reshape(4, 6)
        def strided(a, **more):
            return vkml.from_dlpack(Producer(a, strides=[s // 4 for s in a.strides], device=(2, 0), **more))
        wide = np.broadcast_to(values[0], (3, 6))
        for view in (values.T, values[1:, ::2], values[:, 1], values[2:3], wide, values[::3]):
            t = strided(view)
            assert t.tolist() == view.tolist() and (t + 1).tolist() == (view + 1).tolist()
        assert strided(values[::3]).is_contiguous and strided(values.T).stride() == (1, 6)
        assert strided(values[2:], byte_offset=8).tolist() == values[2:].tolist()
        assert vkml.from_dlpack(Producer(np.array(5.0), device=(2, 0))).item() == 5
        empty = vkml.from_dlpack(Producer(np.zeros((0, 3), np.float32), device=(13, 0)))
        assert empty.shape == (0, 3) and str(empty.device) == "vulkan:0"
        try:
            strided(values[:, ::-1])
        except vkml.ShapeError as error:
            assert "expected strides >= 0" in str(error)
        else:
            raise AssertionError
        producer = Producer(values.astype(np.float32), device=(2, 0), flags=1)  # read-only: it is copied anyway
        t = vkml.from_dlpack(producer)
        assert len(producer.deleted) == 1
        producer.values[:] = 0
        assert t.sum().item() == 276
        x = vkml.tensor(Producer(values.astype(np.float64), device=(2, 0)), device="cpu")
        assert str(x.device) == "cpu" and x.dtype == vkml.float32 and x.sum().item() == 276
        """,
        fake_cuda,
    )


def test_freed_memory_is_taken_again_in_order(vulkan, fake_cuda):
    fake(
        """
        def take(value):
            producer = Producer(np.full(1 << 16, value, np.float32), device=(2, 0))
            t = vkml.from_dlpack(producer)
            assert len(producer.deleted) == 1
            ALIVE.clear()
            return t
        take(0)
        made = count()
        before, live = None, vkml.memory_stats("vulkan:0")["live_allocations"]
        for i in range(1000):
            t = take(i)
            pending = t * 2 + 1  # not waited for when the memory is let go
            del t
            if i % 100 == 0:
                assert (pending == 2 * i + 1).all().item()
            if i == 50:
                gc.collect()
                before = resident()
        del pending
        gc.collect()
        assert resident() - before < 16 << 20
        assert vkml.memory_stats("vulkan:0")["live_allocations"] == live
        now = count()
        assert now["imports"] == made["imports"] == 1 and now["copies"] == made["copies"] + 1000
        vkml.empty_cache("vulkan:0")
        vkml.synchronize()
        take(1)
        now = count()
        assert now["imports"] == 2 and now["frees"] == now["destroys"] == 1
        """,
        fake_cuda,
    )


def test_export_to_a_stand_in(vulkan, fake_cuda):
    fake(
        """
        assert vkml.ones(2, device="vulkan:0").__dlpack_device__() == (2, 0)
        assert vkml.ones(2).__dlpack_device__() == (1, 0)
        class Device(Holder):
            def __dlpack_device__(self):
                return (2, 0)
        def through(t, **options):
            return vkml.from_dlpack(Device(t.__dlpack__(dl_device=(2, 0), **options)))
        x = vkml.arange(24, dtype="float32", device="vulkan:0").reshape(4, 6)
        for version in (None, (1, 0)):
            views = (x, x.T, x[1:, ::2], x[2, 3], x[:0])
            for t in (*views, (x + 1).to("float64"), x > 3, x.to("bfloat16"), x.to("int16")):
                back = through(t, stream=1, max_version=version)
                assert back.dtype == t.dtype and back.shape == t.shape and back.tolist() == t.tolist()
        assert vkml.from_dlpack(Device(x.__dlpack__(stream=1))).tolist() == x.tolist()  # as PyTorch asks for it
        # memory that came from CUDA is shared, other memory is copied
        taken = vkml.from_dlpack(Producer(np.ones((4, 6), np.float32), device=(2, 0)))
        def first(capsule):
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            data = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_void_p))[0]
            return ctypes.cast(data, ctypes.POINTER(ctypes.c_float))
        shared = taken[1, 2:4].__dlpack__(dl_device=(2, 0), copy=False)
        first(shared)[1] = 7
        assert taken[1, 3].item() == 7 and taken.sum().item() == 30
        taken.fill_(3)
        vkml.synchronize()
        assert first(shared)[0] == 3
        copied = taken.__dlpack__(dl_device=(2, 0), copy=True)
        first(copied)[0] = 9
        assert taken[0, 0].item() == 3
        for t in (x, x[0]):
            try:
                t.__dlpack__(dl_device=(2, 0), copy=False)
            except BufferError as error:
                assert "copy=False is impossible" in str(error)
            else:
                raise AssertionError
        # the capsule keeps the memory, and CUDA is waited for before it is used again
        del taken
        assert first(shared)[0] == 3
        waits, live = count()["waits"], vkml.memory_stats("vulkan:0")["live_allocations"]
        del shared, copied
        assert count()["waits"] == waits + 2 and vkml.memory_stats("vulkan:0")["live_allocations"] == live - 2
        for i in range(50):
            x.__dlpack__(dl_device=(2, 0))
        live, before = vkml.memory_stats("vulkan:0")["live_allocations"], resident()
        for i in range(1000):
            x.__dlpack__(dl_device=(2, 0))
        assert vkml.memory_stats("vulkan:0")["live_allocations"] == live and resident() - before < 16 << 20
        alive = x.__dlpack__(dl_device=(2, 0))  # and at exit nothing crashes
        """,
        fake_cuda,
    )


def test_no_exchange_in_a_capture(vulkan, fake_cuda):
    fake(
        """
        producer = Producer(np.ones(4, np.float32), device=(2, 0))
        try:
            vkml.capture(lambda: vkml.from_dlpack(producer) * vkml.ones(4, device="vulkan:0"), device="vulkan:0")
        except vkml.Error as error:
            assert "capture: expected device work only, got an exchange with CUDA" in str(error)
        else:
            raise AssertionError
        """,
        fake_cuda,
    )


# PyTorch's CUDA tensors, where there are any ----------------------------------------------------------------------

REAL = Path(__file__).with_name("cuda_exchange.py")


@pytest.mark.parametrize("part", ["values", "layouts", "order", "export", "memory"])
def test_with_torch(part):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA device here")
    done = subprocess.run(
        [sys.executable, str(REAL), part], capture_output=True, text=True, timeout=300, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
