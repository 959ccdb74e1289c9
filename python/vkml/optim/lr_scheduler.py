"""Schedules of the learning rate: call step() once per epoch, or per step, after the optimizer's."""

from ._schedules.base import LRScheduler
from ._schedules.one_cycle import OneCycleLR
from ._schedules.plateau import ReduceLROnPlateau
from ._schedules.sequential import SequentialLR
from ._schedules.smooth import CosineAnnealingLR, LinearLR, LinearWarmup
from ._schedules.steps import ConstantLR, ExponentialLR, LambdaLR, MultiStepLR, StepLR

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "LinearWarmup",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
