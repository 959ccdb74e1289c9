"""Linear, embedding and dropout."""

from __future__ import annotations

from ... import _core
from ..._core import Tensor
from ..._creation import ones

__all__ = ["bilinear", "dropout", "dropout1d", "dropout2d", "embedding", "linear"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias.

    Examples
    --------
    >>> vkml.nn.functional.linear(vkml.tensor([1.0, 2.0]), vkml.tensor([[3.0, 4.0]]), vkml.tensor([0.5]))
    tensor([11.5000])
    """
    return _core.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 @ weight[i] @ input2 for every output i, plus bias: weight is (out, in1, in2).

    Examples
    --------
    >>> vkml.nn.functional.bilinear(vkml.tensor([[1.0, 2.0]]), vkml.tensor([[3.0]]), vkml.ones(1, 2, 1))
    tensor([[9.]])
    """
    out, first, second = weight.shape
    if input1.shape[-1] != first or input2.shape[-1] != second or input1.shape[:-1] != input2.shape[:-1]:
        raise _core.ShapeError(
            f"bilinear: expected (..., {first}) and (..., {second}), got {input1.shape} and {input2.shape}"
        )
    half = _core.matmul(input1.reshape(-1, first), weight.permute(1, 0, 2).reshape(first, out * second))
    y = (half.reshape(-1, out, second) * input2.reshape(-1, 1, second)).sum(-1).reshape(*input1.shape[:-1], out)
    return y if bias is None else y + bias


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of weight: the index comes first, as in PyTorch.

    Examples
    --------
    >>> vkml.nn.functional.embedding(vkml.tensor([1, 0]), vkml.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    return _core.embedding(weight, input, padding_idx)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p); draws from the default generator.

    Examples
    --------
    >>> y = vkml.nn.functional.dropout(vkml.ones(8), 0.5)
    >>> sorted({*y.tolist(), 0.0, 2.0})
    [0.0, 2.0]
    """
    return _core.dropout(input, p, training=training)


def _drop_channels(op: str, x: Tensor, axes: int, p: float, training: bool) -> Tensor:
    if x.ndim not in (axes + 1, axes + 2):
        raise _core.ShapeError(f"{op}: expected rank {axes + 1} or {axes + 2}, got {x.shape}")
    if not training or p == 0.0:
        return _core.dropout(x, p, training=False)
    kept = _core.dropout(ones(*x.shape[:-axes], *(1,) * axes, dtype=x.dtype, device=x.device), p)
    # By selection, so that a dropped infinity is 0 too.
    return _core.where(kept == 0, 0.0, x * kept)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (N, C, L).

    Examples
    --------
    >>> y = vkml.nn.functional.dropout1d(vkml.ones(1, 4, 3), 0.5)
    >>> sorted({*y.sum(-1).flatten().tolist(), 0.0, 6.0})
    [0.0, 6.0]
    """
    return _drop_channels("dropout1d", input, 1, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (N, C, H, W).

    Examples
    --------
    >>> y = vkml.nn.functional.dropout2d(vkml.ones(1, 4, 2, 2), 0.5)
    >>> sorted({*y.sum((-2, -1)).flatten().tolist(), 0.0, 8.0})
    [0.0, 8.0]
    """
    return _drop_channels("dropout2d", input, 2, p, training)
