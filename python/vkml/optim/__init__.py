"""Optimizers and learning-rate schedules."""

from ..nn.utils import clip_grad_norm_, clip_grad_value_
from . import lr_scheduler
from .optimizers import SGD, Adam, AdamW, Lion, Optimizer, RMSprop

RMSProp = RMSprop

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Lion",
    "Optimizer",
    "RMSProp",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
]
