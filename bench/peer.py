"""PyTorch as the peer, on the CPU or on CUDA, with the same inputs in the same process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import vkml


class TorchPeer:
    """`name` is "torch" or "torch:cuda"."""

    def __init__(self, name: str) -> None:
        import torch

        self.torch = torch
        self.name = name
        self.device = name.partition(":")[2] or "cpu"
        if self.device == "cpu":
            setting = next(s for s in vkml.configuration() if s["name"] == "VKML_THREADS")
            if setting["set"]:
                torch.set_num_threads(int(setting["value"]))
        else:
            # The peer computes f32 as vkml's default does.
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        version = torch.cuda.get_device_name() if self.device != "cpu" else f"{torch.get_num_threads()} threads"
        self.description = f"PyTorch {torch.__version__} on {self.device} ({version})"

    def tensor(self, values: np.ndarray, dtype: str, requires_grad: bool = False) -> Any:
        t = self.torch.from_numpy(values)
        t = t.to(self.device, getattr(self.torch, dtype)) if values.dtype.kind == "f" else t.to(self.device)
        return t.requires_grad_() if requires_grad and values.dtype.kind == "f" else t

    def function(self, case: Any) -> Callable[..., Any] | None:
        from op_checks import torch_function

        return torch_function(self.torch, case.declared) if case.declared.torch else None

    def wait(self) -> None:
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def grad(self, outputs: list[Any], inputs: list[Any], seeds: list[Any]) -> Any:
        return self.torch.autograd.grad(outputs, inputs, seeds, retain_graph=True)
