"""The Kimi Delta Attention layer: projections, short convolutions, gates and norms around `vkml.chunk_kda`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import full, ones, zeros
from ..autograd import no_grad
from . import init
from .container import Sequential
from .layers import Linear, parameter
from .module import Module, Parameter

__all__ = ["KdaCache", "KimiDeltaAttention", "ShortConvolution"]

_L2_EPS = 1e-6


def _l2_normalized(x: Tensor) -> Tensor:
    """x / sqrt(sum of squares over the last axis + 1e-6), in float32 inside; a zero row stays zero."""
    wide = x.to(_core.float32) if x.dtype in (_core.float16, _core.bfloat16) else x
    return (wide * ((wide * wide).sum(-1, keepdim=True) + _L2_EPS).rsqrt()).to(x.dtype)


class ShortConvolution(Module):
    """Causal depthwise convolution over time, then SiLU: (B, T, channels) -> the same shape.

    Parameters
    ----------
    channels, kernel_size : int
        y[t, c] = bias[c] + sum over w of weight[c, 0, w] x[t - (kernel_size - 1) + w, c].
    bias : bool
    activation : {"silu", None}

    Examples
    --------
    >>> vkml.nn.ShortConvolution(6, 4)(vkml.ones(2, 5, 6)).shape
    (2, 5, 6)
    """

    def __init__(
        self,
        channels: int,
        kernel_size: int = 4,
        bias: bool = False,
        activation: str | None = "silu",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if kernel_size < 1:
            raise _core.ShapeError(f"ShortConvolution: kernel_size: expected at least 1, got {kernel_size}")
        if activation not in ("silu", None):
            raise _core.ShapeError(f"ShortConvolution: activation: expected 'silu' or None, got {activation!r}")
        self.channels, self.kernel_size, self.activation = channels, kernel_size, activation
        self.weight = parameter(channels, 1, kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", parameter(channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, uniform in +-1/sqrt(kernel_size)."""
        bound = 1 / math.sqrt(self.kernel_size)
        for p in (self.weight, self.bias):
            if p is not None:
                init.uniform_(p, -bound, bound)

    def _extended(self, x: Tensor, tail: Tensor | None) -> Tensor:
        """(B, kernel_size - 1 + T, channels): zeros, or `tail` (B, channels, kernel_size - 1), before x."""
        before = self.kernel_size - 1
        if before == 0:
            return x
        if tail is None:
            tail = zeros(x.shape[0], self.channels, before, dtype=x.dtype, device=x.device)
        return _core.cat([tail.transpose(1, 2), x], 1)

    def forward(self, x: Tensor, tail: Tensor | None = None) -> Tensor:
        T, extended = x.shape[1], self._extended(x, tail)
        y = _core.narrow(extended, 1, 0, T) * self.weight[:, 0, 0]
        for w in range(1, self.kernel_size):
            y = y + _core.narrow(extended, 1, w, T) * self.weight[:, 0, w]
        if self.bias is not None:
            y = y + self.bias
        return _core.silu(y) if self.activation == "silu" else y

    def next_tail(self, x: Tensor, tail: Tensor | None) -> Tensor:
        """The columns (B, channels, kernel_size - 1) that the token after x needs."""
        before = self.kernel_size - 1
        extended = self._extended(x, tail)
        return _core.narrow(extended, 1, extended.shape[1] - before, before).transpose(1, 2)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"{self.channels}, kernel_size={self.kernel_size}, bias={bias}, activation={self.activation!r}"


@dataclass(repr=False, eq=False)
class KdaCache:
    """What a KimiDeltaAttention layer remembers of the tokens so far. Its size does not depend on their number.

    Calls of the layer change it in place, so a copy, shallow or deep, has memory of its own: both go on separately.
    `vkml.save(path, {"cache": cache.state_dict()})` saves it, `KdaCache(**vkml.load(path)["cache"])` is the same again.

    Examples
    --------
    >>> layer = vkml.nn.KimiDeltaAttention(32, num_heads=2, head_dim=8)
    >>> cache = layer.new_cache(1)
    >>> _ = layer(vkml.ones(1, 5, 32), cache)
    >>> cache
    KdaCache(length=5, batch=1, heads=2, state=8x8 float32, conv_size=4, device="cpu")
    """

    conv_q: Tensor  # [B, H * K, conv_size - 1]
    conv_k: Tensor
    conv_v: Tensor  # [B, HV * V, conv_size - 1]
    state: Tensor  # [B, HV, K, V], float32
    length: int = 0

    def __repr__(self) -> str:
        batch, heads, k, v = self.state.shape
        return (
            f"KdaCache(length={self.length}, batch={batch}, heads={heads}, state={k}x{v} {self.state.dtype}, "
            f'conv_size={self.conv_q.shape[2] + 1}, device="{self.state.device}")'
        )

    def state_dict(self) -> dict[str, Any]:
        """The tensors and the length by name: what the constructor takes. The tensors are the cache's own."""
        return {name: getattr(self, name) for name in ("conv_q", "conv_k", "conv_v", "state", "length")}

    def __copy__(self) -> KdaCache:
        own: dict[str, Any] = {
            n: x.detach().clone() if isinstance(x, Tensor) else x for n, x in self.state_dict().items()
        }
        return KdaCache(**own)

    def __deepcopy__(self, memo: dict[int, Any]) -> KdaCache:
        made = memo[id(self)] = self.__copy__()
        return made


class KimiDeltaAttention(Module):
    """A token mixer whose memory is one matrix per head: (B, T, hidden_size) -> the same shape, causal.

    Parameters
    ----------
    hidden_size, num_heads, head_dim : int
    num_v_heads, head_v_dim : int, optional
        Value heads (a multiple of num_heads) and their width; num_heads and head_dim if left out.
    conv_size : int
        Tokens a short convolution sees.
    conv_bias : bool
    gate : {"softplus", "sigmoid"}
        Log decays of -exp(A_log) softplus(f + dt_bias), or gate_lower_bound sigmoid(exp(A_log) (f + dt_bias)).
    gate_lower_bound : float
        Below 0; for "sigmoid".
    beta_scale : float
        Step sizes lie in (0, beta_scale); 2 lets the state reflect.
    gate_rank : int, optional
        Width inside the two gates' low-rank projections; head_v_dim if left out.
    norm_eps : float
    precision : {"strict", "fast"}
        As for `vkml.chunk_kda`.

    A_log and dt_bias stay float32 in a 16-bit model; give them no weight decay (`no_weight_decay()` lists them).

    Examples
    --------
    >>> layer = vkml.nn.KimiDeltaAttention(32, num_heads=2, head_dim=8)
    >>> layer(vkml.ones(1, 5, 32)).shape
    (1, 5, 32)
    """

    _keep_float32 = ("A_log", "dt_bias")

    def __init__(
        self, hidden_size: int = 2048, num_heads: int = 16, head_dim: int = 128, num_v_heads: int | None = None,
        head_v_dim: int | None = None, conv_size: int = 4, conv_bias: bool = False, gate: str = "softplus",
        gate_lower_bound: float = -5.0, beta_scale: float = 1.0, gate_rank: int | None = None, norm_eps: float = 1e-5,
        precision: str = "strict", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if gate not in ("softplus", "sigmoid"):
            raise _core.ShapeError(f"KimiDeltaAttention: gate: expected 'softplus' or 'sigmoid', got {gate!r}")
        if not gate_lower_bound < 0:
            raise _core.ShapeError(
                f"KimiDeltaAttention: gate_lower_bound: expected a number below 0, got {gate_lower_bound}"
            )
        H, HV, K, V = num_heads, num_v_heads or num_heads, head_dim, head_v_dim or head_dim
        if HV % H:
            raise _core.ShapeError(f"KimiDeltaAttention: num_v_heads: expected a multiple of {H}, got {HV}")
        self.hidden_size, self.num_heads, self.head_dim, self.num_v_heads, self.head_v_dim = hidden_size, H, K, HV, V
        self.conv_size, self.gate, self.gate_lower_bound, self.beta_scale = (
            conv_size,
            gate,
            gate_lower_bound,
            beta_scale,
        )
        self.norm_eps, self.precision = norm_eps, precision
        R, made = gate_rank or V, {"device": device, "dtype": dtype}

        def linear(n: int, m: int, bias: bool = False) -> Linear:
            return Linear(n, m, bias, **made)

        self.q_proj, self.k_proj, self.v_proj = (linear(hidden_size, n) for n in (H * K, H * K, HV * V))
        self.q_conv1d, self.k_conv1d, self.v_conv1d = (
            ShortConvolution(n, conv_size, conv_bias, **made) for n in (H * K, H * K, HV * V)
        )
        self.f_proj = Sequential(linear(hidden_size, R), linear(R, HV * K))
        self.b_proj = linear(hidden_size, HV)
        self.A_log = Parameter(zeros(HV, device=device))
        self.dt_bias = Parameter(zeros(HV * K, device=device))
        self.g_proj = Sequential(linear(hidden_size, R), linear(R, HV * V, True))
        self.o_norm = Module()
        self.o_norm.weight = Parameter(ones(V, device=device, dtype=_core.float32 if dtype is None else dtype))
        self.o_proj = linear(HV * V, hidden_size)
        self.reset_decay()

    def reset_decay(self) -> None:
        """Draws A_log and dt_bias anew: log decays between -1.6 and -1e-3."""
        with no_grad():
            a = full(self.dt_bias.shape, 0.0, device=self.dt_bias.device)
            init.uniform_(a, math.log(1e-3), math.log(0.1))
            dt = a.exp()
            if self.gate == "softplus":
                init.uniform_(self.A_log, 1.0, 16.0)
                self.A_log.copy_(self.A_log.log())
                self.dt_bias.copy_(dt + (-(-dt).expm1()).log())
                return
            init.zeros_(self.A_log)
            init.uniform_(a, 1.0, 16.0)
            share = a * dt / abs(self.gate_lower_bound)
            self.dt_bias.copy_((share / (1 - share)).log())

    def no_weight_decay(self) -> list[Parameter]:
        """The parameters that weight decay would harm."""
        return [self.A_log, self.dt_bias]

    def new_cache(self, batch: int, device: Any = None) -> KdaCache:
        """An empty cache for `batch` sequences, on the layer's device unless another is named."""
        if isinstance(batch, bool) or not isinstance(batch, Integral) or batch < 0:
            kind = f"{batch}" if isinstance(batch, Integral) else type(batch).__name__
            raise _core.ShapeError(f"KimiDeltaAttention.new_cache: batch: expected a number of sequences, got {kind}")
        device = self.q_proj.weight.device if device is None else device
        before, dtype = self.conv_size - 1, self.q_proj.weight.dtype
        keys, values = self.num_heads * self.head_dim, self.num_v_heads * self.head_v_dim
        wide = _core.float64 if dtype == _core.float64 else _core.float32
        q, k, v = (zeros(batch, n, before, dtype=dtype, device=device) for n in (keys, keys, values))
        return KdaCache(
            q,
            k,
            v,
            zeros(batch, self.num_v_heads, self.head_dim, self.head_v_dim, dtype=wide, device=device),
        )

    def log_decay(self, x: Tensor) -> Tensor:
        """[B, T, HV, K], float32."""
        f = self.f_proj(x).unflatten(2, (self.num_v_heads, self.head_dim)).to(self.A_log.dtype)
        f = f + self.dt_bias.reshape(self.num_v_heads, self.head_dim)
        a = self.A_log.exp().unsqueeze(-1)
        if self.gate == "softplus":
            return -a * _core.softplus(f)
        return self.gate_lower_bound * _core.sigmoid(a * f)

    def forward(self, x: Tensor, cache: KdaCache | None = None) -> Tensor:
        """[B, T, hidden_size] to the same shape. With a cache the sequences go on from where it stands, in pieces of
        any length; gradients reach the tokens of this call only, not those that the cache came from.
        """
        self._check(x, cache)
        T = x.shape[1]
        projected = [p(x) for p in (self.q_proj, self.k_proj, self.v_proj)]
        convolutions = (self.q_conv1d, self.k_conv1d, self.v_conv1d)
        tails = [None] * 3 if cache is None else [cache.conv_q, cache.conv_k, cache.conv_v]
        q, k, v = (conv(y, tail) for conv, y, tail in zip(convolutions, projected, tails, strict=True))
        heads = (
            (q, self.num_heads, self.head_dim),
            (k, self.num_heads, self.head_dim),
            (v, self.num_v_heads, self.head_v_dim),
        )
        q, k, v = (y.unflatten(2, (n, width)) for y, n, width in heads)
        beta = self.beta_scale * _core.sigmoid(self.b_proj(x).to(self.A_log.dtype))
        inputs = [_l2_normalized(q), _l2_normalized(k), v, self.log_decay(x), beta]
        o = self._mix([y.transpose(1, 2) for y in inputs], cache, T)
        if cache is not None:
            self._advance(cache, convolutions, projected, tails, T)
        y = _core.rms_norm(o.transpose(1, 2), 1, self.norm_eps, weight=self.o_norm.weight)
        y = y * _core.sigmoid(self.g_proj(x).unflatten(2, (self.num_v_heads, self.head_v_dim)))
        return self.o_proj(y.flatten(2, 3))

    def _check(self, x: Tensor, cache: KdaCache | None) -> None:
        if x.ndim != 3 or x.shape[2] != self.hidden_size:
            raise _core.ShapeError(f"KimiDeltaAttention: x: expected shape (B, T, {self.hidden_size}), got {x.shape}")
        if cache is None:
            return
        if not isinstance(cache, KdaCache):
            raise _core.DTypeError(f"KimiDeltaAttention: cache: expected a KdaCache, got {type(cache).__name__}")
        if not isinstance(cache.length, Integral):
            raise _core.DTypeError(
                f"KimiDeltaAttention: cache: expected a length that is an int, got {type(cache.length).__name__}"
            )
        B, before = x.shape[0], self.conv_size - 1
        keys, values = self.num_heads * self.head_dim, self.num_v_heads * self.head_v_dim
        wanted = {
            "state": (B, self.num_v_heads, self.head_dim, self.head_v_dim),
            "conv_q": (B, keys, before),
            "conv_k": (B, keys, before),
            "conv_v": (B, values, before),
        }
        for name, shape in wanted.items():
            got = getattr(cache, name).shape
            if tuple(got) != shape:
                raise _core.ShapeError(f"KimiDeltaAttention: cache: expected a {name} of shape {shape}, got {got}")

    def _mix(self, inputs: list[Any], cache: KdaCache | None, T: int) -> Tensor:
        if cache is None:
            whole: Any = _core.chunk_kda(*inputs, precision=self.precision)
            return whole.output
        if T == 1 and not any(y.requires_grad for y in inputs):
            return _core.kda_decode(*[*inputs, cache.state], update_state=True)[0]
        out: Any = _core.chunk_kda(*[*inputs, cache.state], precision=self.precision)
        # A new tensor, not a write into the old one, which the graph may still need.
        cache.state = out.final_state.detach()
        return out.output

    def _advance(self, cache: KdaCache, convolutions: Any, projected: list[Tensor], tails: list[Any], T: int) -> None:
        with no_grad():
            new = [
                c.next_tail(y.detach(), tail).clone() for c, y, tail in zip(convolutions, projected, tails, strict=True)
            ]
        cache.conv_q, cache.conv_k, cache.conv_v = new
        cache.length += T

    def extra_repr(self) -> str:
        return (
            f"{self.hidden_size}, num_heads={self.num_heads}, head_dim={self.head_dim}, num_v_heads={self.num_v_heads}"
            f", head_v_dim={self.head_v_dim}, conv_size={self.conv_size}, gate={self.gate!r}"
            f", precision={self.precision!r}"
        )
