"""Optimizers, learning-rate schedules, loss scaling and averages of weights."""

from ..nn.utils import clip_grad_norm_, clip_grad_value_
from . import lr_scheduler
from .ema import EMA
from .grad_scaler import GradScaler
from .optimizer import Optimizer
from .optimizers import SGD, Adagrad, Adam, AdamW, Lion, NAdam, RMSprop

RMSProp = RMSprop

__all__ = [
    "EMA",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "GradScaler",
    "Lion",
    "NAdam",
    "Optimizer",
    "RMSProp",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
]
