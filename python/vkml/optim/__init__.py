"""Optimizers, learning-rate schedules, loss scaling and averages of weights."""

from ..nn.utils import clip_grad_norm_, clip_grad_value_
from . import lr_scheduler
from .ema import EMA
from .grad_scaler import GradScaler
from .optimizers import SGD, Adam, AdamW, Lion, Optimizer, RMSprop

RMSProp = RMSprop

__all__ = [
    "EMA",
    "SGD",
    "Adam",
    "AdamW",
    "GradScaler",
    "Lion",
    "Optimizer",
    "RMSProp",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
]
