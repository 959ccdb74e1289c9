"""vkML: tensors and neural networks on any GPU with Vulkan 1.3, and on the CPU.

Examples
--------
>>> x = vkml.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> x.shape, x.dtype, x.device
((2, 2), vkml.float32, device("cpu"))
"""

from __future__ import annotations

from typing import Any

from . import _core, autograd, data, nn, optim, profiler
from ._composed import (
    allclose,
    argwhere,
    bincount,
    diagonal,
    hstack,
    isclose,
    meshgrid,
    scatter,
    take_along_dim,
    unbind,
    vstack,
)
from ._core import *
from ._core import __version__
from ._creation import (
    as_tensor,
    asarray,
    empty,
    empty_like,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from ._einsum import einsum
from ._runtime import (
    LogLevel,
    Reduction,
    eager_mode,
    finfo,
    iinfo,
    is_deterministic,
    log_level,
    realize,
    set_deterministic,
    set_log_level,
)
from .autograd import enable_grad, grad, no_grad, set_grad_enabled
from .io import Checkpoint, load, load_module, save, save_module
from .kda import KdaGradients, KdaOutput, naive_recurrent_kda
from .nn.functional import scaled_dot_product_attention

_HERE = [
    "__version__ allclose argwhere as_tensor asarray autograd bincount Checkpoint data diagonal eager_mode einsum",
    "empty empty_like enable_grad finfo from_dlpack from_numpy full full_like grad has_vulkan hstack iinfo",
    "is_deterministic isclose KdaGradients KdaOutput load load_module log_level LogLevel meshgrid naive_recurrent_kda",
    "nn no_grad ones ones_like optim profiler realize Reduction save save_module scaled_dot_product_attention scatter",
    "set_deterministic set_grad_enabled set_log_level take_along_dim tensor unbind vstack zeros zeros_like",
]
__all__ = sorted({*" ".join(_HERE).split(), *(name for name in vars(_core) if not name.startswith("_"))})


def __getattr__(name: str) -> Any:
    if name == "has_vulkan":  # looked up when asked for: importing touches no device
        from ._tensor import Flag

        return Flag(_core._has_vulkan())
    raise AttributeError(f"module 'vkml' has no attribute {name!r}")
