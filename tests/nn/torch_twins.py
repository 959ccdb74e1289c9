"""The layers of vkml.nn that PyTorch does not have, written in PyTorch from their formulas."""

from __future__ import annotations

from typing import Any


def twin(name: str) -> Any:
    """The PyTorch class that stands for a vkML one; torch is imported only when asked for."""
    return _classes()[name]


def _classes() -> dict[str, Any]:
    import torch

    class PositionalEncoding(torch.nn.Module):
        def __init__(self, d_model, max_len):
            super().__init__()
            angle = torch.arange(max_len, dtype=torch.float64)[:, None] / 10000 ** (
                torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
            )
            self.register_buffer("pe", torch.stack([angle.sin(), angle.cos()], -1).reshape(max_len, d_model).float())

        def forward(self, x):
            return x + self.pe[: x.shape[-2]]

    class ShortConvolution(torch.nn.Module):
        def __init__(self, channels, kernel_size, bias=False):
            super().__init__()
            made = torch.nn.Conv1d(channels, channels, kernel_size, groups=channels, bias=bias)
            self.weight, self.bias = made.weight, made.bias

        def forward(self, x):
            padded = torch.nn.functional.pad(x.transpose(1, 2), (self.weight.shape[-1] - 1, 0))
            y = torch.nn.functional.conv1d(padded, self.weight, self.bias, groups=self.weight.shape[0])
            return torch.nn.functional.silu(y).transpose(1, 2)

    class KimiDeltaAttention(torch.nn.Module):
        def __init__(self, hidden_size, num_heads, head_dim):
            super().__init__()
            self.heads, self.width = num_heads, head_dim
            inner = num_heads * head_dim

            def linear(n, m, bias=False):
                return torch.nn.Linear(n, m, bias)

            self.q_proj, self.k_proj, self.v_proj = (linear(hidden_size, inner) for _ in range(3))
            self.q_conv1d, self.k_conv1d, self.v_conv1d = (ShortConvolution(inner, 4) for _ in range(3))
            self.f_proj = torch.nn.Sequential(linear(hidden_size, head_dim), linear(head_dim, inner))
            self.b_proj = linear(hidden_size, num_heads)
            self.A_log = torch.nn.Parameter(torch.rand(num_heads) + 0.5)
            self.dt_bias = torch.nn.Parameter(torch.rand(inner) - 3)
            self.g_proj = torch.nn.Sequential(linear(hidden_size, head_dim), linear(head_dim, inner, True))
            self.o_norm = torch.nn.RMSNorm(head_dim, eps=1e-5)
            self.o_proj = linear(inner, hidden_size)

        def forward(self, x):
            batch, steps, _ = x.shape

            def heads(y):
                return y.reshape(batch, steps, self.heads, self.width)

            q, k, v = (heads(getattr(self, f"{n}_conv1d")(getattr(self, f"{n}_proj")(x))) for n in ("q", "k", "v"))
            q, k = (y * (y.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for y in (q, k))
            f = heads(self.f_proj(x) + self.dt_bias)
            decay = (-self.A_log.exp()[:, None] * torch.nn.functional.softplus(f)).exp()
            beta = self.b_proj(x).sigmoid()
            state = x.new_zeros(batch, self.heads, self.width, self.width)
            rows = []
            for t in range(steps):
                state = state * decay[:, t, :, :, None]
                seen = torch.einsum("bhk,bhkv->bhv", k[:, t], state)
                change = beta[:, t, :, None] * (v[:, t] - seen)
                state = state + k[:, t, :, :, None] * change[:, :, None, :]
                rows.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state) * self.width**-0.5)
            y = self.o_norm(torch.stack(rows, 1)) * heads(self.g_proj(x)).sigmoid()
            return self.o_proj(y.flatten(2))

    found = (PositionalEncoding, ShortConvolution, KimiDeltaAttention)
    return {c.__name__: c for c in found}
