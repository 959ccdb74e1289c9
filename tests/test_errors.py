"""Wrong arguments raise vkML's own classes and texts, and the classes are the builtins a user would catch."""

import pytest

import vkml

BUILTINS = {
    "ShapeError": ValueError,
    "DTypeError": TypeError,
    "IndexError_": IndexError,
    "DeviceError": RuntimeError,
    "NotImplementedError_": NotImplementedError,
    "OutOfMemoryError": MemoryError,
}


@pytest.mark.parametrize("name", BUILTINS)
def test_classes(name):
    error = getattr(vkml, name)
    assert issubclass(error, vkml.Error) and issubclass(error, BUILTINS[name]) and issubclass(vkml.Error, RuntimeError)
    assert error.__module__ == "vkml" and error.__doc__


CASES = {
    "dtype": (lambda: vkml.zeros(2, dtype="flot"), vkml.DTypeError, "dtype: expected one of float32, .*, got 'flot'"),
    "dtype of another kind": (lambda: vkml.full((2,), 1, dtype=3), vkml.DTypeError, "dtype: expected one of .*, got 3"),
    "device": (
        lambda: vkml.zeros(2, device="gpu"),
        vkml.DeviceError,
        r'device: expected "cpu", "vulkan" \(a GPU of any make\) or "vulkan:N", got',
    ),
    "another framework's device": (
        lambda: vkml.ones(2).to("cuda:0"),
        vkml.DeviceError,
        r'to: expected "cpu" or "vulkan", a GPU of any make \(here: cpu.*\), got "cuda:0"$',
    ),
    "another framework's device for a module": (
        lambda: vkml.nn.Linear(2, 2).to("mps"),
        vkml.DeviceError,
        r'Linear.to: expected "cpu" or "vulkan", a GPU of any make \(here: cpu.*\), got "mps"$',
    ),
    "neither device nor dtype": (
        lambda: vkml.ones(2).to("flot32"),
        vkml.DTypeError,
        r'to: expected a device \("cpu", "vulkan", "vulkan:N"\) or a dtype \(float32, .*\), got \'flot32\'$',
    ),
    "a module to neither": (
        lambda: vkml.nn.Linear(2, 2).to(3),
        vkml.DTypeError,
        "Linear.to: expected a device .* got 3$",
    ),
    "device of another kind": (lambda: vkml.memory_stats(3.5), vkml.DeviceError, "device: expected .*, got 3.5"),
    "device that is missing": (
        lambda: vkml.zeros(2, device="vulkan:63"),
        vkml.DeviceError,
        "vulkan: expected .*, got 63",
    ),
    "shape": (lambda: vkml.zeros("ab"), vkml.DTypeError, "shape: expected an int or a sequence of ints, got 'ab'"),
    "shape of floats": (lambda: vkml.full([2.5], 1), vkml.DTypeError, r"shape: expected .* ints, got \[2.5\]"),
    "shape of none": (lambda: vkml._core._empty(None, "float32", "cpu"), (vkml.ShapeError, TypeError), ""),
    "rank": (lambda: vkml.zeros([1] * 9), vkml.ShapeError, "shape: expected rank <= 8, got rank 9"),
    "extent": (lambda: vkml.zeros(-1), vkml.ShapeError, r"empty: expected extents >= 0, got \(-1,\)"),
    "huge": (lambda: vkml.empty(2**62, 4), vkml.ShapeError, ""),
    "memory": (lambda: vkml.empty(2**55), vkml.OutOfMemoryError, "allocat"),
    "axis": (lambda: vkml.zeros(2).transpose(0, 3), vkml.IndexError_, "transpose: expected .*got 3"),
    "undefined": (lambda: vkml.Tensor().shape, vkml.Error, "expected a defined tensor, got an undefined one"),
    "default dtype": (
        lambda: vkml.set_default_dtype("int8"),
        vkml.DTypeError,
        "set_default_dtype: expected a floating-point dtype",
    ),
    "log level": (lambda: vkml.set_log_level("loud"), vkml.ShapeError, "set_log_level: expected one of TRACE"),
}


@pytest.mark.parametrize("name", CASES)
def test_texts(name):
    call, error, text = CASES[name]
    with pytest.raises(error, match=text):
        call()


def test_a_refused_argument_leaks_nothing():
    import gc
    import sys

    class Odd:
        pass

    odd = Odd()
    before = sys.getrefcount(odd)
    for _ in range(100):
        with pytest.raises(vkml.DeviceError):
            vkml.zeros(1, device=odd)
        with pytest.raises(vkml.DTypeError):
            vkml.zeros(1, dtype=odd)
    gc.collect()
    assert sys.getrefcount(odd) == before


HUGE = 2**62
OVERFLOWS = {
    "narrow": lambda d: vkml.ones(3, device=d).narrow(0, 2, 2**63 - 1),
    "conv2d": lambda d: vkml.conv2d(
        vkml.ones((1, 1, 3, 3), device=d), vkml.ones((1, 1, 3, 3), device=d), dilation=HUGE
    ),
    "conv2d same": lambda d: vkml.conv2d(
        vkml.ones((1, 1, 3, 3), device=d), vkml.ones((1, 1, 3, 3), device=d), padding="same", dilation=HUGE
    ),
    "conv_transpose2d": lambda d: vkml.conv_transpose2d(
        vkml.ones((1, 1, 3, 3), device=d), vkml.ones((1, 1, 3, 3), device=d), dilation=HUGE
    ),
    "im2col": lambda d: vkml.im2col(vkml.ones((1, 1, 3, 3), device=d), 3, 1, 0, HUGE),
    "max_pool2d": lambda d: vkml.max_pool2d(vkml.ones((1, 1, 3, 3), device=d), 3, dilation=HUGE),
    "avg_pool2d": lambda d: vkml.avg_pool2d(vkml.ones((1, 1, 3, 3), device=d), HUGE),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_sizes_that_overflow_when_multiplied(device, name):
    with pytest.raises(vkml.ShapeError, match=rf"^{name.split()[0]}: .*expected .*, got") as raised:
        OVERFLOWS[name](device)
    assert "got (-" not in str(raised.value)


@pytest.mark.parametrize("device_argument", [True, False])
def test_a_capture_of_nothing_is_an_error(vulkan, device_argument):
    """As when the work is on another device than the one that is recorded."""
    x = vkml.zeros(2, device=vulkan)
    arguments = {"device": "cpu"} if device_argument else {}
    with vkml.device("cpu"), pytest.raises(vkml.Error, match=r"^capture: expected fn to compute on cpu, got no work"):
        vkml.capture(lambda: x.add_(1), **arguments)
