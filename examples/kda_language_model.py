"""Trains a character-level model of Kimi Delta Attention blocks on Python's language reference, then writes on.

    python examples/kda_language_model.py [--device vulkan] [--steps 400] [--checkpoint kda.safetensors]

The held-out loss, in nats per character, is printed after every epoch; the curve goes to kda_loss.png. With
--checkpoint the state is saved there after every epoch, and a second run goes on from it. At the end the model writes
text, one character at a time, through a cache of fixed size.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from language_modeling import choose, parser, run

import vkml
from vkml import nn, optim


class Block(nn.Module):
    """Attention, then a gated pair of layers, each on a normalised copy of the stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.attention = nn.KimiDeltaAttention(width, num_heads=heads, head_dim=width // heads)
        self.gate, self.up, self.down = (
            nn.Linear(width, 2 * width),
            nn.Linear(width, 2 * width),
            nn.Linear(2 * width, width),
        )

    def forward(self, x: vkml.Tensor, cache: nn.KdaCache | None = None) -> vkml.Tensor:
        x = x + self.attention(self.attention_norm(x), cache)
        y = self.mlp_norm(x)
        return x + self.down(vkml.silu(self.gate(y)) * self.up(y))


class LanguageModel(nn.Module):
    def __init__(self, characters: int, width: int, heads: int, depth: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, characters)

    def forward(self, tokens: vkml.Tensor, caches: list[nn.KdaCache] | None = None) -> vkml.Tensor:
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i])
        return self.head(self.norm(x))

    def new_caches(self, batch: int) -> list[nn.KdaCache]:
        return [block.attention.new_cache(batch) for block in self.blocks]


def optimizer_of(model: nn.Module, rate: float) -> optim.Optimizer:
    still = {id(p) for m in model.modules() if isinstance(m, nn.KimiDeltaAttention) for p in m.no_weight_decay()}
    parts = [[p for p in model.parameters() if (id(p) in still) == out] for out in (False, True)]
    return optim.AdamW([{"params": parts[0], "weight_decay": 0.05}, {"params": parts[1], "weight_decay": 0.0}], lr=rate)


def build(characters: int, options: argparse.Namespace) -> LanguageModel:
    return LanguageModel(characters, options.width, options.heads, options.depth)


def generate(model: LanguageModel, alphabet: str, options: argparse.Namespace, device: str) -> tuple[str, float]:
    """The prompt read in one go, then one character at a time. Also the seconds a character took."""
    rng, caches, written = np.random.default_rng(options.seed), model.new_caches(1), "The "
    tokens = [alphabet.index(c) for c in written]
    started = time.perf_counter()
    with vkml.no_grad():
        for _ in range(options.characters):
            logits = model(vkml.tensor(np.array([tokens], np.int64), device=device), caches)[0, -1].numpy()
            tokens = [choose(logits, options.temperature, rng)]
            written += alphabet[tokens[0]]
    return written, (time.perf_counter() - started) / max(options.characters, 1)


if __name__ == "__main__":
    run(
        parser(__doc__, "kda_loss.png").parse_args(),
        build,
        optimizer_of,
        generate,
        "Kimi Delta Attention on Python's language reference",
    )
