"""Recurrent layers. Keys, shapes and the order of the gates are PyTorch's."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import _core
from .._core import Tensor
from .._creation import zeros
from . import functional as F
from . import init
from .layers import parameter
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


class _Weights(Module):
    """Named weights of one kind of cell, and the call that runs them over a sequence."""

    _kind: ClassVar[str]  # of the operator
    _gates: ClassVar[int]

    input_size: int
    hidden_size: int

    def _add_weights(self, suffix: str, inputs: int, bias: bool, kind: dict) -> None:
        rows = self._gates * self.hidden_size
        self.register_parameter(f"weight_ih{suffix}", parameter(rows, inputs, **kind))
        self.register_parameter(f"weight_hh{suffix}", parameter(rows, self.hidden_size, **kind))
        for side in ("ih", "hh"):
            self.register_parameter(f"bias_{side}{suffix}", parameter(rows, **kind) if bias else None)

    def reset_parameters(self) -> None:
        """Draws all weights anew, uniform in +-1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _run(self, suffix: str, x: Tensor, state: tuple[Tensor, ...], reverse: bool = False) -> tuple[Tensor, Any]:
        """(N, T, inputs) to the hidden states (N, T, H), and the cell states where there are some."""
        w_ih, w_hh, b_ih, b_hh = (
            getattr(self, f"{name}{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        if self._kind != "gru" and b_ih is not None:  # only a GRU needs the second bias apart
            b_ih, b_hh = b_ih + b_hh, None
        gates = F.linear(x, w_ih, b_ih)  # of all steps at once
        hidden, cell = state if len(state) == 2 else (state[0], None)
        return _core._recurrent(self._kind_of_cell(), gates, w_hh, b_hh, hidden, cell, reverse)

    def _kind_of_cell(self) -> str:
        return self._kind

    def _state_count(self) -> int:
        return 2 if self._kind == "lstm" else 1

    def _given(self, state: Any) -> tuple[Tensor, ...]:
        """The states as a tuple, whatever they came as."""
        given = tuple(state) if isinstance(state, (tuple, list)) else (state,)
        if len(given) != self._state_count():
            name = type(self).__name__
            raise _core.ShapeError(f"{name}: hx: expected {self._state_count()} tensors, got {len(given)}")
        return given

    def _check_width(self, x: Tensor) -> None:
        if x.shape[-1] != self.input_size:
            raise _core.ShapeError(
                f"{type(self).__name__}: expected {self.input_size} features on the last axis, got {x.shape}"
            )


class _Recurrent(_Weights):
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if hidden_size < 1 or num_layers < 1:
            raise _core.ShapeError(
                f"{name}: expected hidden_size and num_layers of at least 1, got {hidden_size} and {num_layers}"
            )
        if not 0.0 <= dropout <= 1.0:
            raise _core.ShapeError(f"{name}: dropout: expected a number in [0, 1], got {dropout}")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                inputs = input_size if layer == 0 else hidden_size * directions
                self._add_weights(suffix, inputs, bias, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def flatten_parameters(self) -> None:
        """Nothing to do here; programs written for PyTorch call it."""

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"] if self.bidirectional else [f"_l{layer}"]

    def _initial(self, x: Tensor, state: Any) -> tuple[Tensor, ...]:
        """The states before the first step, (layers * directions, N, H)."""
        shape = (self.num_layers * (2 if self.bidirectional else 1), x.shape[0], self.hidden_size)
        if state is None:
            return (zeros(shape, dtype=x.dtype, device=x.device),) * self._state_count()
        for s in state:
            if s.shape != shape:
                raise _core.ShapeError(f"{type(self).__name__}: hx: expected shape {shape}, got {s.shape}")
        return state

    def forward(self, x: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        """The last layer's hidden states at every step, and the last state of every layer and direction."""
        if x.ndim not in (2, 3):
            raise _core.ShapeError(f"{type(self).__name__}: expected rank 2 or 3, got {x.shape}")
        self._check_width(x)
        given = None if hx is None else self._given(hx)
        single = x.ndim == 2
        if single:
            x = x.unsqueeze(0)
            given = None if given is None else tuple(s.unsqueeze(1) for s in given)
        elif not self.batch_first:
            x = x.transpose(0, 1)
        y, last = self._layers(x, self._initial(x, given))
        if single:
            y, last = y.squeeze(0), tuple(s.squeeze(1) for s in last)
        elif not self.batch_first:
            y = y.transpose(0, 1)
        return y, last if len(last) == 2 else last[0]

    def _layers(self, x: Tensor, initial: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        ends: list[list[Tensor]] = [[] for _ in initial]
        i = 0
        for layer in range(self.num_layers):
            if layer > 0 and self.training and self.dropout > 0:
                x = F.dropout(x, self.dropout)
            sides = []
            for suffix in self._suffixes(layer):
                reverse = suffix.endswith("_reverse")
                hidden, cell = self._run(suffix, x, tuple(s[i] for s in initial), reverse)
                sides.append(hidden)
                for end, states in zip(ends, (hidden, cell), strict=False):
                    end.append(states.select(1, 0 if reverse else -1))
                i += 1
            x = sides[0] if len(sides) == 1 else _core.cat(sides, -1)
        return x, tuple(_core.stack(end) for end in ends)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"num_layers": 1, "bias": True, "batch_first": True, "dropout": 0.0, "bidirectional": False}
        changed = [f"{k}={getattr(self, k)}" for k, v in defaults.items() if getattr(self, k) != v]
        return ", ".join([text, *changed])


class LSTM(_Recurrent):
    """Long short-term memory over (N, T, input_size); batch_first is True, unlike PyTorch's default.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    bias, batch_first, bidirectional : bool
    dropout : float
        Between layers, in training.

    `forward(x, (h_0, c_0))` gives the hidden states (N, T, H), or (N, T, 2 H) of both directions, and (h_n, c_n), each
    (num_layers * directions, N, H). States left out are 0. An x of rank 2 is one sequence.

    Examples
    --------
    >>> layer = vkml.nn.LSTM(3, 5, num_layers=2)
    >>> y, (h, c) = layer(vkml.randn((4, 7, 3)))
    >>> y.shape, h.shape, c.shape
    ((4, 7, 5), (2, 4, 5), (2, 4, 5))
    """

    _kind, _gates = "lstm", 4


class GRU(_Recurrent):
    """Gated recurrent units over (N, T, input_size); batch_first is True, unlike PyTorch's default.

    Parameters and results as LSTM's, but with one state: `forward(x, h_0)` gives the hidden states and h_n.

    Examples
    --------
    >>> y, h = vkml.nn.GRU(3, 5, bidirectional=True)(vkml.randn((4, 7, 3)))
    >>> y.shape, h.shape
    ((4, 7, 10), (2, 4, 5))
    """

    _kind, _gates = "gru", 3


class RNN(_Recurrent):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) over (N, T, input_size), or with relu; batch_first is True.

    Parameters and results as GRU's, and `nonlinearity`, "tanh" or "relu".

    Examples
    --------
    >>> y, h = vkml.nn.RNN(3, 5)(vkml.randn((4, 7, 3)))
    >>> y.shape, h.shape
    ((4, 7, 5), (1, 4, 5))
    """

    _kind, _gates = "rnn", 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        self.nonlinearity = _checked_nonlinearity("RNN", nonlinearity)

    def _kind_of_cell(self) -> str:
        return self.nonlinearity


def _checked_nonlinearity(name: str, word: str) -> str:
    if word not in ("tanh", "relu"):
        raise _core.ShapeError(f"{name}: nonlinearity: expected tanh or relu, got {word!r}")
    return word


class _Cell(_Weights):
    """One step: (N, input_size) or (input_size)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self._add_weights("", input_size, bias, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def forward(self, x: Tensor, hx: Any = None) -> Any:
        """The state after the step."""
        if x.ndim not in (1, 2):
            raise _core.ShapeError(f"{type(self).__name__}: expected rank 1 or 2, got {x.shape}")
        self._check_width(x)
        rows = x.reshape(-1, self.input_size)
        shape = (rows.shape[0], self.hidden_size)
        if hx is None:
            given = (zeros(shape, dtype=x.dtype, device=x.device),) * self._state_count()
        else:
            given = tuple(s.unsqueeze(0) if x.ndim == 1 else s for s in self._given(hx))
        new = self._run("", rows.unsqueeze(1), given)[: self._state_count()]
        out = tuple(s.squeeze(1) if x.ndim == 2 else s.reshape(-1) for s in new)
        return out if len(out) == 2 else out[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class LSTMCell(_Cell):
    """One step of an LSTM: `forward(x, (h, c))` gives (h', c').

    Examples
    --------
    >>> h, c = vkml.nn.LSTMCell(3, 5)(vkml.randn((4, 3)))
    >>> h.shape, c.shape
    ((4, 5), (4, 5))
    """

    _kind, _gates = "lstm", 4


class GRUCell(_Cell):
    """One step of a GRU: `forward(x, h)` gives h'.

    Examples
    --------
    >>> vkml.nn.GRUCell(3, 5)(vkml.randn((4, 3))).shape
    (4, 5)
    """

    _kind, _gates = "gru", 3


class RNNCell(_Cell):
    """One step of an RNN: `forward(x, h)` gives h'.

    Examples
    --------
    >>> vkml.nn.RNNCell(3, 5, nonlinearity="relu")(vkml.randn((4, 3))).shape
    (4, 5)
    """

    _kind, _gates = "rnn", 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = _checked_nonlinearity("RNNCell", nonlinearity)

    def _kind_of_cell(self) -> str:
        return self.nonlinearity
