"""Layers and losses. Parameter names equal PyTorch's, so its state dicts load."""

from . import functional, init, utils
from .activation import GELU, LeakyReLU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh
from .attention import MultiheadAttention, PositionalEncoding, TransformerEncoderLayer
from .container import ModuleDict, ModuleList, Sequential
from .conv import AvgPool2d, Conv1d, Conv2d, ConvTranspose2d, MaxPool2d
from .functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    mse_loss,
    scaled_dot_product_attention,
)
from .kimi_delta_attention import KdaCache, KimiDeltaAttention, ShortConvolution
from .layers import Dropout, Embedding, Flatten, Identity, Linear
from .loss import BCEWithLogitsLoss, CrossEntropyLoss, HuberLoss, KLDivLoss, MSELoss
from .module import Module, Parameter
from .norm import BatchNorm2d, GroupNorm, LayerNorm, RMSNorm

__all__ = [
    "GELU",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "KdaCache",
    "KimiDeltaAttention",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "PositionalEncoding",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "ShortConvolution",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "TransformerEncoderLayer",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "functional",
    "huber_loss",
    "init",
    "kl_div",
    "mse_loss",
    "scaled_dot_product_attention",
    "utils",
]  # fmt: skip
