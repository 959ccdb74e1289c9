"""Cases of every class of vkml.nn: how it is built, called and fed, for vkml and for PyTorch alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch_twins import twin

Arrays = list[np.ndarray]


def _call(module: Any, *inputs: Any) -> Any:
    return module(*inputs)


@dataclass(frozen=True)
class Case:
    """A class with arguments. `inputs` are shapes of float inputs, which are trained too; `fixed` makes the others."""

    name: str
    args: tuple = ()
    options: dict = field(default_factory=dict)
    inputs: tuple[tuple[int, ...], ...] = ()
    fixed: Callable[[np.random.Generator], Arrays] = lambda rng: []
    call: Callable[..., Any] = _call
    make: Callable[[Any], Any] | None = None  # of a namespace, vkml.nn or torch.nn
    prepare: Callable[[np.ndarray], np.ndarray] = lambda x: x  # what an input must look like
    train: bool = True
    rate: float = 0.05
    note: str = ""

    def build(self, nn: Any) -> Any:
        made = self.make(nn) if self.make else getattr(nn, self.name, None)
        if made is None:
            made = twin(self.name)
        module = made if self.make else made(*self.args, **self.options)
        return module.train(self.train)

    def arrays(self, rng: np.random.Generator) -> tuple[Arrays, Arrays]:
        floats = [self.prepare(rng.standard_normal(s)).astype(np.float32) for s in self.inputs]
        return floats, self.fixed(rng)

    def __str__(self) -> str:
        return f"{self.name}-{self.note}" if self.note else self.name


def plain(names: str, shape: tuple[int, ...] = (3, 4, 6), *args: Any, **options: Any) -> list[Case]:
    return [Case(name, args, options, (shape,)) for name in names.split()]


def classes(n: int, *shape: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.integers(0, n, shape)]


def like(*shape: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.standard_normal(shape).astype(np.float32)]


def shares(*shape: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [(x := rng.uniform(0.1, 1, shape).astype(np.float32)) / x.sum(-1, keepdims=True)]


def signs(*shape: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [np.where(rng.uniform(size=shape) < 0.5, -1, 1).astype(np.float32)]


def inside(x: np.ndarray) -> np.ndarray:
    """Away from 0 and 1, where a logarithm runs away."""
    return 0.5 + 0.3 * np.tanh(x)


ACTIVATIONS = [
    *plain("ReLU ReLU6 SELU SiLU Mish Hardsigmoid Hardswish Tanh Tanhshrink Sigmoid LogSigmoid Softsign GELU"),
    *plain("LeakyReLU PReLU ELU CELU Hardtanh Softplus GLU Hardshrink Softshrink"),
    Case("Threshold", (0.2, -1.5), {}, ((3, 4, 6),)),
    Case("GELU", options={"approximate": "tanh"}, inputs=((3, 4, 6),), note="tanh"),
    Case("PReLU", (4,), {}, ((3, 4, 6),), note="channels"),
    Case("LeakyReLU", (0.2,), {}, ((3, 4),), note="slope"),
    Case("ELU", (1.5,), {}, ((3, 4),), note="alpha"),
    Case("CELU", (1.5,), {}, ((3, 4),), note="alpha"),
    Case("Softplus", (2.0, 1.0), {}, ((3, 4),), note="threshold"),
    Case("Hardtanh", (-0.5, 0.75), {}, ((3, 4),), note="bounds"),
    *plain("Softmax Softmin LogSoftmax", (3, 4, 6), 1),
]

LAYERS = [
    Case("Linear", (5, 3), {}, ((4, 5),)),
    Case("Linear", (5, 3), {"bias": False}, ((2, 4, 5),), note="no-bias"),
    Case("Bilinear", (5, 4, 3), {}, ((6, 5), (6, 4))),
    Case("Embedding", (7, 3), {"padding_idx": 2}, (), classes(7, 4, 5)),
    Case("Dropout", (0.5,), {}, ((4, 5),), train=False),
    Case("Dropout1d", (0.5,), {}, ((4, 5, 6),), train=False),
    Case("Dropout2d", (0.5,), {}, ((4, 5, 6, 2),), train=False),
    *plain("Flatten Identity", (3, 4, 6)),
    Case("Unflatten", (1, (2, 3)), {}, ((4, 6),)),
    Case("PixelShuffle", (2,), {}, ((2, 8, 3, 4),)),
    Case("PixelUnshuffle", (2,), {}, ((2, 3, 4, 6),)),
    *plain("ZeroPad1d ReflectionPad1d ReplicationPad1d", (2, 3, 5), (2, 1)),
    *plain("ZeroPad2d ReflectionPad2d ReplicationPad2d", (2, 3, 4, 5), (1, 2, 0, 3)),
    *plain("ConstantPad1d", (2, 3, 5), (2, -1), 1.5),
    *plain("ConstantPad2d", (2, 3, 4, 5), (1, 2, 0, 3), 1.5),
    Case("Upsample", (), {"scale_factor": 2}, ((2, 3, 4, 5),)),
    Case("Upsample", ((7, 4),), {"mode": "bilinear", "align_corners": True}, ((2, 3, 4, 5),), note="bilinear"),
    Case("CosineSimilarity", (), {}, ((4, 5), (4, 5))),
]

CONVOLUTIONS = [
    Case("Conv1d", (4, 6, 3), {"padding": 1, "stride": 2, "groups": 2}, ((2, 4, 9),)),
    Case("Conv1d", (3, 4, 4), {"padding": "same", "dilation": 2}, ((2, 3, 9),), note="same"),
    Case("Conv2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, ((2, 4, 7, 6),)),
    Case("Conv2d", (3, 4, (2, 3)), {"padding": "same", "bias": False}, ((2, 3, 5, 6),), note="same"),
    Case("Conv2d", (3, 4, 3), {"dilation": (1, 2)}, ((3, 5, 6),), note="unbatched"),
    Case("Conv3d", (4, 6, (3, 2, 3)), {"stride": (2, 1, 1), "padding": (1, 0, 1), "groups": 2}, ((2, 4, 5, 4, 6),)),
    Case("Conv3d", (2, 3, (2, 3, 3)), {"padding": "same", "dilation": (2, 1, 1)}, ((2, 2, 4, 4, 5),), note="same"),
    Case("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1, "groups": 2}, ((2, 4, 5),)),
    Case("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}, ((2, 4, 5, 4),)),
    Case("ConvTranspose2d", (3, 4, (2, 3)), {"dilation": 2, "bias": False}, ((2, 3, 4, 5),), note="dilation"),
]

POOLS = [
    Case("MaxPool1d", (3,), {"stride": 2, "padding": 1}, ((2, 3, 9),)),
    Case("MaxPool2d", (2,), {}, ((2, 3, 6, 7),)),
    Case("MaxPool2d", ((3, 2),), {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "ceil_mode": True},
         ((2, 3, 8, 7),), note="options"),
    Case("AvgPool1d", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}, ((2, 3, 9),)),
    Case("AvgPool2d", ((3, 2),), {"stride": 2, "padding": 1, "ceil_mode": True}, ((2, 3, 8, 7),)),
    Case("AvgPool2d", (2,), {"divisor_override": 3}, ((3, 8, 7),), note="divisor-unbatched"),
    Case("MaxPool3d", ((2, 3, 2),), {"stride": (1, 2, 2), "padding": 1, "dilation": (2, 1, 1)}, ((2, 2, 5, 6, 5),)),
    Case("AvgPool3d", ((2, 3, 2),), {"stride": (1, 2, 2), "padding": 1, "ceil_mode": True}, ((2, 2, 4, 6, 5),)),
    Case("AvgPool3d", (2,), {"padding": 1, "count_include_pad": False}, ((2, 4, 6, 5),), note="inner-unbatched"),
    Case("AvgPool3d", (2,), {"divisor_override": 3}, ((2, 2, 4, 6, 5),), note="divisor"),
    Case("AdaptiveAvgPool3d", ((3, 2, None),), {}, ((2, 2, 5, 6, 3),)),
    Case("AdaptiveMaxPool3d", ((3, 2, 2),), {}, ((2, 2, 5, 6, 4),)),
    Case("AdaptiveAvgPool1d", (4,), {}, ((2, 3, 9),)),
    Case("AdaptiveAvgPool2d", ((3, 2),), {}, ((2, 3, 7, 6),)),
    Case("AdaptiveAvgPool2d", ((None, 7),), {}, ((2, 3, 3, 5),), note="larger"),
    Case("AdaptiveAvgPool2d", (1,), {}, ((2, 3, 4, 6),), note="global"),
    Case("AdaptiveMaxPool1d", (4,), {}, ((2, 3, 9),)),
    Case("AdaptiveMaxPool2d", ((3, 2),), {}, ((2, 3, 7, 6),)),
]  # fmt: skip

NORMS = [
    Case("LayerNorm", (6,), {}, ((3, 4, 6),)),
    Case("LayerNorm", ((4, 6),), {"eps": 1e-3, "bias": False}, ((3, 4, 6),), note="two-axes"),
    Case("RMSNorm", (6,), {}, ((3, 4, 6),)),
    Case("GroupNorm", (2, 4), {}, ((3, 4, 5),)),
    Case("BatchNorm1d", (5,), {}, ((6, 5),)),
    Case("BatchNorm1d", (5,), {"momentum": None}, ((4, 5, 3),), note="cumulative"),
    Case("BatchNorm1d", (5,), {}, ((6, 5),), train=False, note="eval"),
    Case("BatchNorm2d", (3,), {}, ((4, 3, 2, 3),)),
    Case("BatchNorm2d", (3,), {"affine": False, "track_running_stats": False}, ((4, 3, 2, 3),), note="bare"),
    Case("BatchNorm3d", (3,), {}, ((2, 3, 2, 3, 2),)),
    Case("InstanceNorm1d", (3,), {"affine": True}, ((4, 3, 5),)),
    Case("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, ((4, 3, 5, 2),)),
    Case("InstanceNorm2d", (3,), {"track_running_stats": True}, ((4, 3, 5, 2),), train=False, note="eval"),
    Case("InstanceNorm3d", (3,), {}, ((2, 3, 2, 3, 2),)),
]


def recurrent(name: str, states: int, note: str = "", **options: Any) -> Case:
    rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    batch_first = options.get("batch_first", True)
    shape = (3, 7, 4) if batch_first else (7, 3, 4)

    def call(module: Any, x: Any, *state: Any) -> Any:
        y, last = module(x, state if len(state) == 2 else state[0])
        return [y, *last] if isinstance(last, tuple) else [y, last]

    return Case(name, (4, 5), {"batch_first": batch_first, **options}, (shape, *((rows, 3, 5),) * states),
                call=call, note=note)  # fmt: skip


RECURRENT = [
    recurrent("LSTM", 2),
    recurrent("LSTM", 2, "deep-both-ways", num_layers=2, bidirectional=True),
    recurrent("LSTM", 2, "time-first", batch_first=False, bias=False),
    recurrent("GRU", 1),
    recurrent("GRU", 1, "deep-both-ways", num_layers=2, bidirectional=True),
    recurrent("GRU", 1, "no-bias", bias=False),
    recurrent("RNN", 1),
    recurrent("RNN", 1, "relu-both-ways", nonlinearity="relu", bidirectional=True),
    Case("LSTM", (4, 5), {"batch_first": True}, ((7, 4),), call=lambda m, x: [m(x)[0], *m(x)[1]], note="one-sequence"),
    Case("GRU", (4, 5), {"batch_first": True}, ((2, 7, 4),), call=lambda m, x: list(m(x)), note="no-state"),
    Case("LSTMCell", (4, 5), {}, ((3, 4), (3, 5), (3, 5)), call=lambda m, x, h, c: list(m(x, (h, c)))),
    Case("GRUCell", (4, 5), {}, ((3, 4), (3, 5))),
    Case("RNNCell", (4, 5), {"nonlinearity": "relu"}, ((3, 4), (3, 5))),
    Case("RNNCell", (4, 5), {}, ((4,), (5,)), note="one"),
]


def attend(module: Any, *inputs: Any) -> Any:
    y = module(*inputs)
    return y[0] if isinstance(y, tuple) else y  # PyTorch adds the weights


def encoder(nn: Any) -> Any:
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8))


def decoder(nn: Any) -> Any:
    layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, dropout=0.0, batch_first=True)
    return nn.TransformerDecoder(layer, 2)


_ENCODER = {"dim_feedforward": 16, "dropout": 0.0, "batch_first": True}
ATTENTION = [
    Case("MultiheadAttention", (8, 2), {"batch_first": True}, ((2, 5, 8), (2, 4, 8), (2, 4, 8)), call=attend),
    Case("MultiheadAttention", (8, 2), {"batch_first": True, "bias": False}, ((5, 8),) * 3, call=attend, note="plain"),
    Case("MultiheadAttention", (8, 2), {"batch_first": False}, ((5, 2, 8),), call=lambda m, x: attend(m, x, x, x),
         note="time-first-self"),
    Case("MultiheadAttention", (8, 2), {"batch_first": True}, ((2, 5, 8),), lambda rng: [np.tri(5, k=1) == 0],
         call=lambda m, x, mask: attend(lambda *q: m(*q, attn_mask=mask), x, x, x), note="bool-mask"),
    Case("MultiheadAttention", (8, 2), {"batch_first": True}, ((2, 5, 8),), like(4, 5, 5),
         call=lambda m, x, mask: attend(lambda *q: m(*q, attn_mask=mask), x, x, x), note="float-mask-per-head"),
    Case("TransformerEncoderLayer", (8, 2), _ENCODER, ((2, 5, 8),)),
    Case("TransformerEncoderLayer", (8, 2), {**_ENCODER, "norm_first": True, "activation": "gelu"}, ((2, 5, 8),),
         note="norm-first"),
    Case("TransformerEncoder", inputs=((2, 5, 8),), make=encoder),
    Case("TransformerDecoderLayer", (8, 2), _ENCODER, ((2, 5, 8), (2, 4, 8))),
    Case("TransformerDecoderLayer", (8, 2), {**_ENCODER, "norm_first": True, "activation": "gelu"},
         ((2, 5, 8), (2, 4, 8)), note="norm-first"),
    Case("TransformerDecoder", inputs=((2, 5, 8), (2, 4, 8)), make=decoder),
    Case("PositionalEncoding", (6,), {"max_len": 9}, ((2, 5, 6),)),
    Case("ShortConvolution", (6, 4), {"bias": True}, ((2, 5, 6),)),
    Case("KimiDeltaAttention", (12,), {"num_heads": 2, "head_dim": 4}, ((2, 6, 12),)),
]  # fmt: skip


def in_list(nn: Any) -> Any:
    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(5, 4), nn.Tanh()])
            self.layers.append(nn.Linear(4, 3))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    return Chain()


def in_dict(nn: Any) -> Any:
    class Fork(nn.Module):
        def __init__(self):
            super().__init__()
            self.branches = nn.ModuleDict({"left": nn.Linear(5, 3), "right": nn.Linear(5, 3)})

        def forward(self, x):
            return self.branches["left"](x) * self.branches["right"](x)

    return Fork()


def of_parameters(nn: Any) -> Any:
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            layers = [nn.Linear(5, 3), nn.Linear(5, 3)]
            self.weights = nn.ParameterList([layer.weight for layer in layers])

        def forward(self, x):
            return sum(x @ w.T for w in self.weights)

    return Sum()


CONTAINERS = [
    Case("Sequential", inputs=((4, 5),), make=lambda nn: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))),
    Case("ModuleList", inputs=((4, 5),), make=in_list),
    Case("ModuleDict", inputs=((4, 5),), make=in_dict),
    Case("ParameterList", inputs=((4, 5),), make=of_parameters),
]

LOSSES = [
    Case("MSELoss", (), {}, ((4, 5),), like(4, 5)),
    Case("L1Loss", (), {"reduction": "sum"}, ((4, 5),), like(4, 5)),
    Case("SmoothL1Loss", (), {"beta": 0.5}, ((4, 5),), like(4, 5)),
    Case("HuberLoss", (), {"delta": 0.5, "reduction": "none"}, ((4, 5),), like(4, 5)),
    Case("CrossEntropyLoss", (), {"label_smoothing": 0.1}, ((4, 5, 3),), classes(5, 4, 3)),
    Case("CrossEntropyLoss", (), {}, ((4, 5),), shares(4, 5), note="probabilities"),
    Case("NLLLoss", (), {"ignore_index": 1}, ((4, 5),), lambda rng: [np.array([0, 1, 4, 2])]),
    Case("BCELoss", (), {}, ((4, 5),), lambda rng: [rng.uniform(0, 1, (4, 5)).astype(np.float32)], prepare=inside,
         rate=0.005),
    Case("BCEWithLogitsLoss", (), {}, ((4, 5),), lambda rng: [rng.uniform(0, 1, (4, 5)).astype(np.float32)]),
    Case("KLDivLoss", (), {"reduction": "batchmean"}, ((4, 5),), shares(4, 5)),
    Case("PoissonNLLLoss", (), {"full": True}, ((4, 5),), lambda rng: [rng.integers(0, 5, (4, 5)).astype(np.float32)]),
    Case("GaussianNLLLoss", (), {"full": True}, ((4, 5), (4, 5)), like(4, 5),
         call=lambda m, x, var, target: m(x, target, var * var + 0.5)),
    Case("SoftMarginLoss", (), {}, ((4, 5),), signs(4, 5)),
    Case("HingeEmbeddingLoss", (0.7,), {}, ((4, 5),), signs(4, 5)),
    Case("MarginRankingLoss", (0.3,), {}, ((6,), (6,)), signs(6)),
    Case("CosineEmbeddingLoss", (0.1,), {}, ((6, 5), (6, 5)), signs(6)),
    Case("TripletMarginLoss", (), {"swap": True}, ((6, 5),) * 3),
]  # fmt: skip

CASES = [
    *ACTIVATIONS, *LAYERS, *CONVOLUTIONS, *POOLS, *NORMS, *RECURRENT, *ATTENTION, *CONTAINERS, *LOSSES,
]  # fmt: skip
