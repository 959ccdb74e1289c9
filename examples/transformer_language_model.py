"""Trains a small character-level transformer on Python's language reference, then writes on.

    python examples/transformer_language_model.py [--device vulkan] [--steps 400] [--checkpoint model.safetensors]

The held-out loss, in nats per character, is printed after every epoch; the curve goes to transformer_loss.png. With
--checkpoint the state is saved there after every epoch, and a second run goes on from it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from language_modeling import choose, parser, run

import vkml
from vkml import nn, optim


class LanguageModel(nn.Module):
    """Characters with their positions, a stack of causal encoder layers, logits."""

    def __init__(self, characters: int, width: int, heads: int, depth: int, longest: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.PositionalEncoding(width, max_len=longest)
        self.layers = nn.ModuleList(
            [
                nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", norm_first=True)
                for _ in range(depth)
            ]
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)
        self.longest = longest

    def forward(self, tokens: vkml.Tensor) -> vkml.Tensor:
        x = self.position(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x, is_causal=True)
        return self.head(self.norm(x))


def build(characters: int, options: argparse.Namespace) -> LanguageModel:
    return LanguageModel(characters, options.width, options.heads, options.depth, options.length)


def optimizer_of(model: nn.Module, rate: float) -> optim.Optimizer:
    """Matrices decay; biases, norms and embeddings do not."""
    decays = {id(p) for m in model.modules() if isinstance(m, (nn.Linear, nn.MultiheadAttention))
              for p in m.parameters() if p.ndim == 2}  # fmt: skip
    parts = [[p for p in model.parameters() if (id(p) in decays) == wanted] for wanted in (True, False)]
    return optim.AdamW([{"params": parts[0], "weight_decay": 0.05}, {"params": parts[1], "weight_decay": 0.0}], lr=rate)


def generate(model: LanguageModel, alphabet: str, options: argparse.Namespace, device: str) -> tuple[str, float]:
    """One character at a time, each from as many before it as the model saw in training. Also the seconds one took."""
    rng, written = np.random.default_rng(options.seed), "The "
    tokens = [alphabet.index(c) for c in written]
    started = time.perf_counter()
    with vkml.no_grad():
        for _ in range(options.characters):
            seen = np.array([tokens[-model.longest :]], np.int64)
            tokens.append(choose(model(vkml.tensor(seen, device=device))[0, -1].numpy(), options.temperature, rng))
            written += alphabet[tokens[-1]]
    return written, (time.perf_counter() - started) / max(options.characters, 1)


if __name__ == "__main__":
    run(
        parser(__doc__, "transformer_loss.png", length=128, rate=2e-3).parse_args(),
        build,
        optimizer_of,
        generate,
        "A transformer on Python's language reference",
    )
