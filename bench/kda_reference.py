"""The float64 recurrence of Kimi Delta Attention and its reverse over a few heads at once: on CUDA through torch where
there is one, else in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

STRETCH = 128  # states inside a stretch are computed again on the way back


class Reference:
    def __init__(self) -> None:
        self.xp: Any = np
        self.name = "NumPy"
        self.states_before_last: dict[int, Any] = {}  # the state before the last chunk of so many tokens
        try:
            import torch
        except ImportError:
            return
        if torch.cuda.is_available():
            self.xp, self.name = torch, f"torch on {torch.cuda.get_device_name()}"

    def _given(self, slices: list[list[np.ndarray]]) -> list[Any]:
        """Per input, all heads: [n, T, ...]."""
        stacked = [np.stack(x) for x in zip(*slices, strict=True)]
        return stacked if self.xp is np else [self.xp.from_numpy(x).cuda() for x in stacked]

    def _back(self, *results: Any) -> list[np.ndarray]:
        return [x if self.xp is np else x.cpu().numpy() for x in results]

    @staticmethod
    def _step(s: Any, a: Any, k: Any, v: Any, beta: Any) -> tuple[Any, Any, Any]:
        """Faded state, residual, state after."""
        faded = a[:, :, None] * s
        residual = v - (k[:, None, :] @ faded)[:, 0]
        return faded, residual, faded + k[:, :, None] * (beta[:, None] * residual)[:, None, :]

    def forward(self, slices: list[list[np.ndarray]]) -> list[np.ndarray]:
        """Output [n, T, V] and final state [n, K, V]; q, k, v, g, beta, state of each head are given."""
        q, k, v, g, beta, s = self._given(slices)[:6]
        decay, scale, tokens = self.xp.exp(g), q.shape[2] ** -0.5, q.shape[1]
        output = self.xp.zeros_like(v)
        for t in range(tokens):
            if t == (tokens - 1) // 64 * 64:
                (self.states_before_last[64],) = self._back(s)
            _, _, s = self._step(s, decay[:, t], k[:, t], v[:, t], beta[:, t])
            output[:, t] = scale * (q[:, t][:, None, :] @ s)[:, 0]
        return self._back(output, s)

    def backward(self, slices: list[list[np.ndarray]]) -> list[np.ndarray]:
        """Gradients of q, k, v, g, beta and the state; the gradient of the output is the seventh array of a head."""
        q, k, v, g, beta, s, d_output = self._given(slices)
        decay, scale, tokens = self.xp.exp(g), q.shape[2] ** -0.5, q.shape[1]
        starts = []
        for t in range(tokens):
            if t % STRETCH == 0:
                starts.append(s)
            s = self._step(s, decay[:, t], k[:, t], v[:, t], beta[:, t])[2]
        dq, dk, dv, dg, db = (self.xp.zeros_like(x) for x in (q, k, v, g, beta))
        d = self.xp.zeros_like(s)
        for stretch in reversed(range(len(starts))):
            first, s, steps = stretch * STRETCH, starts[stretch], []
            for t in range(first, min(first + STRETCH, tokens)):
                steps.append(self._step(s, decay[:, t], k[:, t], v[:, t], beta[:, t]))
                s = steps[-1][2]
            for t in reversed(range(first, first + len(steps))):
                faded, residual, after = steps[t - first]
                b, do = beta[:, t][:, None], d_output[:, t]
                dq[:, t] = scale * (after @ do[:, :, None])[:, :, 0]
                d = d + scale * q[:, t][:, :, None] * do[:, None, :]
                du = (k[:, t][:, None, :] @ d)[:, 0]
                dr = b * du
                db[:, t], dv[:, t] = (residual * du).sum(-1), dr
                dk[:, t] = (d @ (b * residual)[:, :, None])[:, :, 0] - (faded @ dr[:, :, None])[:, :, 0]
                d = d - k[:, t][:, :, None] * dr[:, None, :]
                dg[:, t] = (d * faded).sum(-1)
                d = decay[:, t][:, :, None] * d
        return self._back(dq, dk, dv, dg, db, d)
