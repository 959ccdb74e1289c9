"""The public names, and that each of them says what it is."""

import doctest
import inspect
import re
import subprocess
import sys
import types

import numpy as np
import pytest

import vkml

# All but the operators, which join by themselves (the functions of vkml._core). A missing name breaks programs.
PINNED = """
    __version__ allclose argwhere as_tensor asarray assign autograd backward bfloat16 bincount bool_ capture Capture
    Checkpoint configuration cpu data decisions decisions_published device device_info DeviceError DeviceRecord
    devices diagonal dispatch_count dtype DTypeError eager_mode einsum empty empty_cache empty_like enable_grad
    Error finfo float16 float32 float64 from_dlpack from_numpy full full_like get_default_device get_default_dtype
    grad GradFn has_vulkan HookHandle hstack iinfo IndexError_ int16 int32 int64 int8 is_deterministic is_eager
    is_grad_enabled isclose KdaGradients KdaOutput load load_module log_level LogLevel manual_seed memory_snapshot
    memory_stats meshgrid naive_recurrent_kda nn no_grad NotImplementedError_ ones ones_like optim OutOfMemoryError
    profiler realize record_decisions Reduction reset_peak_memory save save_module scaled_dot_product_attention
    scatter set_default_device set_default_dtype set_deterministic set_eager set_grad_enabled set_log_level
    ShapeError stop_recording_decisions synchronize take_along_dim tensor Tensor uint8 unbind vstack zeros zeros_like
""".split()  # noqa: SIM905
NN = """
    CELU ELU GELU GLU GRU LSTM RNN SELU AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d
    AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss BatchNorm1d
    BatchNorm2d BatchNorm3d Bilinear ConstantPad1d ConstantPad2d Conv1d Conv2d Conv3d ConvTranspose1d
    ConvTranspose2d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss Dropout Dropout1d Dropout2d Embedding
    Flatten GRUCell GaussianNLLLoss GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss
    HuberLoss Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d KLDivLoss KdaCache KimiDeltaAttention L1Loss
    LSTMCell LayerNorm LeakyReLU Linear LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d MaxPool2d
    MaxPool3d Mish Module ModuleDict ModuleList MultiheadAttention NLLLoss PReLU Parameter ParameterList
    PixelShuffle PixelUnshuffle PoissonNLLLoss PositionalEncoding RMSNorm RNNCell ReLU ReLU6 ReflectionPad1d
    ReflectionPad2d ReplicationPad1d ReplicationPad2d Sequential ShortConvolution SiLU Sigmoid SmoothL1Loss
    SoftMarginLoss Softmax Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold TransformerDecoder
    TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer TripletMarginLoss Unflatten Upsample
    ZeroPad1d ZeroPad2d binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy
    functional gaussian_nll_loss hinge_embedding_loss huber_loss init kl_div l1_loss margin_ranking_loss mse_loss
    nll_loss poisson_nll_loss scaled_dot_product_attention smooth_l1_loss soft_margin_loss triplet_margin_loss
    utils
""".split()  # noqa: SIM905
OPTIM = """
    EMA SGD Adagrad Adam AdamW GradScaler Lion NAdam Optimizer RMSProp RMSprop clip_grad_norm_ clip_grad_value_
    lr_scheduler
""".split()  # noqa: SIM905
DATA = """
    ArrayDataset Compose DataLoader Dataset RandomCrop RandomHorizontalFlip Subset TensorDataset default_collate
    random_split split
""".split()  # noqa: SIM905


def test_all_is_pinned():
    operators = set(vkml.__all__) - set(PINNED)
    assert set(PINNED) <= set(vkml.__all__)
    odd = [
        n
        for n in operators
        if not (callable(getattr(vkml._core, n, None)) and not isinstance(getattr(vkml._core, n), type))
    ]
    assert odd == []
    assert [n for n in vkml.__all__ if not hasattr(vkml, n)] == []
    assert sorted(vkml.__all__) == vkml.__all__ and not any(
        n.startswith("_") for n in vkml.__all__ if n != "__version__"
    )


@pytest.mark.parametrize(("module", "names"), [("nn", NN), ("optim", OPTIM), ("data", DATA)])
def test_sub_modules_are_pinned(module, names):
    assert sorted(getattr(vkml, module).__all__) == sorted(names)
    assert all(hasattr(getattr(vkml, module), n) for n in names)


class Numbers(doctest.OutputChecker):
    """Floats agree within 4 units in the last place of float32; everything else to the letter."""

    number = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?")

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        texts = [
            re.sub(r"\s+", " ", self.number.sub("#", text)).replace("# ", "#").replace("[ ", "[").strip()
            for text in (want, got)
        ]
        values = [[float(x) for x in self.number.findall(text)] for text in (want, got)]
        return texts[0] == texts[1] and np.allclose(*values, rtol=4 * 2.0**-23, atol=0)


def documented():
    for module in (
        vkml,
        vkml.nn,
        vkml.optim,
        vkml.data,
        vkml.autograd,
        vkml.profiler,
        vkml.io,
        vkml.nn.functional,
        vkml.nn.init,
        vkml.nn.utils,
        vkml.optim.lr_scheduler,
    ):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, (type, types.FunctionType)) or type(value).__name__ == "nb_func":
                yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(("name", "value"), [pytest.param(n, v, id=n) for n, v in documented() if inspect.getdoc(v)])
def test_examples(name, value):
    """The examples in docstrings print what they say."""
    for found in doctest.DocTestFinder(recurse=False).find(value, name, globs={"vkml": vkml, "np": np}) or [
        doctest.DocTestParser().get_doctest(value.__doc__ or "", {"vkml": vkml, "np": np}, name, None, 0)
    ]:
        out = []
        doctest.DocTestRunner(Numbers(), optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=out.append)
        assert not out, "".join(out)


# Classes that are made by vkML alone, or that only name something.
NO_EXAMPLE = """
    Capture Checkpoint DTypeError DeviceError DeviceRecord Error GradFn HookHandle IndexError_ KdaGradients KdaOutput
    LogLevel NotImplementedError_ OutOfMemoryError ShapeError Tensor has_vulkan
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", [n for n in vkml.__all__ if n not in NO_EXAMPLE])
def test_every_public_name_has_an_example(name):
    """An operator joins by itself, and its example with it: one that runs, and shows what comes out."""
    value = getattr(vkml, name)
    if not callable(value) or isinstance(value, types.ModuleType):
        return
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")
    assert examples, f"vkml.{name} has no example"
    assert any(name in e.source for e in examples), f"the example of vkml.{name} does not call it"


@pytest.mark.parametrize("name", [n for n in PINNED if n not in ("__version__", "has_vulkan", "cpu")])
def test_every_pinned_name_is_documented(name):
    value = getattr(vkml, name)
    if isinstance(value, (type, types.FunctionType, types.ModuleType)) or type(value).__name__ == "nb_func":
        assert value.__doc__ and value.__doc__.strip(), f"vkml.{name} has no docstring"


def python(code, **env):
    import os

    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **env}
    )


def test_import_prints_nothing_and_opens_no_device():
    done = python("import vkml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_a_vulkan_driver():
    code = """
import vkml
assert not vkml.has_vulkan
records = vkml.devices()
assert [str(r.device) for r in records if r.usable] == ["cpu"], records
assert any(not r.usable and r.why for r in records), records
assert vkml.ones(2).tolist() == [1, 1]
try:
    vkml.ones(2, device="vulkan")
except vkml.DeviceError as error:
    print(error)
"""
    done = python(code, VK_ICD_FILENAMES="/nonexistent.json", VK_DRIVER_FILES="/nonexistent.json")
    assert done.returncode == 0, done.stderr
    assert "Vulkan" in done.stdout


def test_module_report():
    import json

    done = subprocess.run([sys.executable, "-m", "vkml", "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["version"] == vkml.__version__ and all(e["self_test"] == "ok" for e in found["devices"] if e["usable"])
    assert {"VKML_DEVICE", "VKML_LOG"} <= {s["name"] for s in found["configuration"]}
    text = subprocess.run([sys.executable, "-m", "vkml"], capture_output=True, text=True, timeout=300).stdout
    assert "cpu:" in text and "self-test ok" in text
