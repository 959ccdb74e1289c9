"""The examples run, at a small size, draw their figure and reach what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, tmp_path, *arguments, timeout=600):
    """What the example printed. It must leave a picture."""
    env = os.environ | {"PYTHONPATH": str(EXAMPLES.parent / "python"), "MPLCONFIGDIR": str(tmp_path / "matplotlib")}
    figure = tmp_path / f"{name}.png"
    command = [sys.executable, EXAMPLES / f"{name}.py", "--figure", figure, *map(str, arguments)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert figure.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and figure.stat().st_size > 5000
    assert "it/s" in done.stderr or "/s]" in done.stderr, "expected a progress bar on stderr"
    return done.stdout


def number(pattern, text):
    """Every number that follows the words."""
    found = re.findall(pattern + r":?\s+([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", text)
    assert found, text
    return [float(x) for x in found]


@pytest.fixture(autouse=True)
def needs_drawing():
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")


def test_digits(tmp_path):
    pytest.importorskip("sklearn")
    assert number("test accuracy", run("digits", tmp_path, "--device", "cpu", "--epochs", 6))[0] >= 0.9


def test_digits_cnn(tmp_path):
    pytest.importorskip("sklearn")
    assert number("test accuracy", run("digits_cnn", tmp_path, "--device", "cpu", "--epochs", 8))[0] >= 0.95


def test_digits_cnn_on_vulkan(tmp_path, vulkan):
    pytest.importorskip("sklearn")
    options = ("--device", vulkan, "--epochs", 3, "--width", 8)
    assert number("test accuracy", run("digits_cnn", tmp_path, *options))[0] >= 0.3


SMALL = ("--width", 32, "--heads", 2, "--depth", 1, "--length", 48, "--batch", 8, "--characters", 20)


@pytest.mark.parametrize("name", ["transformer_language_model", "kda_language_model"])
def test_language_models(tmp_path, device, name):
    steps = 60 if device == "cpu" else 16
    options = ("--device", device, "--steps", steps, "--epoch", steps // 2, *SMALL)
    losses = number("held-out loss", run(name, tmp_path, *options))
    # 4.6 is the loss of guessing among about 100 characters.
    assert losses[0] > 4.0 and losses[-1] < losses[0] - (0.8 if device == "cpu" else 0.1)


@pytest.mark.parametrize("name", ["transformer_language_model", "kda_language_model"])
def test_language_models_go_on_from_a_checkpoint(tmp_path, name):
    """A run that was stopped after its first epoch ends with the loss of one that was not."""
    options = ("--device", "cpu", "--steps", 20, "--epoch", 10, *SMALL)
    whole = run(name, tmp_path, *options)
    stopped = (*options, "--checkpoint", "model.safetensors", "--stop-after", 10)
    assert len(number("held-out loss", run(name, tmp_path, *stopped))) < len(number("held-out loss", whole))
    again = run(name, tmp_path, *options, "--checkpoint", "model.safetensors")
    assert "going on from model.safetensors, step 10" in again
    assert number("held-out loss", whole)[-1] == number("held-out loss", again)[-1]


@pytest.mark.parametrize("name", ["torch", "safetensors"])
def test_load_torch_weights_says_what_it_needs(tmp_path, name):
    """With a package of that name that cannot be imported."""
    (tmp_path / f"{name}.py").write_text("raise ImportError('none here')\n")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(EXAMPLES.parent / "python")])}
    command = [
        sys.executable,
        "-c",
        f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); "
        f"runpy.run_path({str(EXAMPLES / 'load_torch_weights.py')!r}, run_name='__main__')",
    ]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "load_torch_weights: needs PyTorch and safetensors (pip install torch safetensors)" in done.stderr


def test_the_program_of_the_readme_is_the_example():
    """tests/cmake_consumer builds and runs it."""
    readme = (EXAMPLES.parent / "README.md").read_text()
    (program,) = re.findall(r"```cpp\n(.*?)```", readme, re.S)
    example = (EXAMPLES / "cpp" / "fit_a_line.cpp").read_text()
    assert program == example.split("\n\n", 1)[1] and program.startswith("#include")
    consumer = (EXAMPLES.parent / "tests" / "cmake_consumer" / "CMakeLists.txt").read_text()
    for line in re.findall(r"```cmake\n(.*?)```", readme, re.S)[0].splitlines():
        assert line.replace(" fit_a_line.cpp", " ${EXAMPLE}") in consumer, line


@pytest.mark.torch
def test_load_torch_weights(tmp_path, device):
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    out = run("load_torch_weights", tmp_path, "--device", device)
    assert "outputs match" in out and len(number("largest difference", out)) == 6
