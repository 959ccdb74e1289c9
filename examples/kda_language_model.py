"""Trains a character-level model of Kimi Delta Attention blocks on Python's language reference, then writes on.

    python examples/kda_language_model.py [--device vulkan] [--steps 400] [--checkpoint kda.safetensors]

The text ships inside Python (pydoc_data.topics). The held-out loss, in nats per character, is printed after every
epoch; the curve goes to kda_loss.png. With --checkpoint the state is saved there after every epoch, and a second run
goes on from it. At the end the model writes text, one character at a time, through a cache of fixed size.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
from tqdm import tqdm

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


def read_text() -> tuple[np.ndarray, np.ndarray, str]:
    """Character numbers to train on and to hold out (every tenth topic), and the alphabet."""
    pages = [topics[name].rstrip() + "\n\n\n" for name in sorted(topics)]
    kept, held = ("".join(p for i, p in enumerate(pages) if (i % 10 == 9) == out) for out in (False, True))
    alphabet = "".join(sorted(set(kept)))
    number = {c: i for i, c in enumerate(alphabet)}
    return *(np.array([number[c] for c in text if c in number], np.int64) for text in (kept, held)), alphabet


def optimizer_of(model: nn.Module, rate: float) -> optim.Optimizer:
    still = {id(p) for m in model.modules() if isinstance(m, nn.KimiDeltaAttention) for p in m.no_weight_decay()}
    parts = [[p for p in model.parameters() if (id(p) in still) == out] for out in (False, True)]
    return optim.AdamW([{"params": parts[0], "weight_decay": 0.05}, {"params": parts[1], "weight_decay": 0.0}], lr=rate)


def loss_of(model: LanguageModel, windows: np.ndarray, device: str) -> vkml.Tensor:
    logits = model(vkml.tensor(windows[:, :-1], device=device))
    return nn.cross_entropy(logits.flatten(0, 1), vkml.tensor(windows[:, 1:].reshape(-1), device=device))


def held_out_loss(model: LanguageModel, text: np.ndarray, options: argparse.Namespace, device: str) -> float:
    count = min(len(text) // (options.length + 1), 2 * options.batch)
    windows = text[: count * (options.length + 1)].reshape(count, -1)
    with vkml.no_grad():
        parts = [loss_of(model, windows[i : i + options.batch], device).item() for i in range(0, count, options.batch)]
    return float(np.mean(parts))


def save(path: Path, model: nn.Module, optimizer: optim.Optimizer, history: list[tuple[int, float]]) -> None:
    state = optimizer.state_dict()
    tensors = {f"model.{name}": t for name, t in model.state_dict().items()}
    tensors |= {f"optimizer.{n}.{name}": t for n, named in state["state"].items() for name, t in named.items()}
    vkml.save(path, tensors, {"history": json.dumps(history), "groups": json.dumps(state["param_groups"])})


def resume(path: Path, model: nn.Module, optimizer: optim.Optimizer) -> list[tuple[int, float]]:
    found = vkml.load(path, device="cpu")
    model.load_state_dict({n.removeprefix("model."): t for n, t in found.items() if n.startswith("model.")})
    state: dict[int, dict[str, vkml.Tensor]] = {}
    for name, t in found.items():
        kind, number, rest = name.split(".", 2)
        if kind == "optimizer":
            state.setdefault(int(number), {})[rest] = t
    optimizer.load_state_dict({"state": state, "param_groups": json.loads(found.metadata["groups"])})
    return [tuple(entry) for entry in json.loads(found.metadata["history"])]


def train(
    model: LanguageModel, text: tuple[np.ndarray, np.ndarray], options: argparse.Namespace, device: str
) -> list[tuple[int, float]]:
    """(step, held-out loss) after every epoch."""
    optimizer = optimizer_of(model, options.rate)
    history: list[tuple[int, float]] = []
    if options.checkpoint and options.checkpoint.exists():
        history = resume(options.checkpoint, model, optimizer)
        print(f"going on from {options.checkpoint}, step {history[-1][0]}, held-out loss {history[-1][1]:.4f}")
    else:
        history.append((0, held_out_loss(model, text[1], options, device)))
        print(f"before training: held-out loss {history[0][1]:.4f}")
    first = history[-1][0]
    with tqdm(total=options.steps, initial=first, desc="training", unit="step") as bar:
        for step in range(first, options.steps):
            optimizer.lr = options.rate * min(1.0, (step + 1) / 20) * (0.1 + 0.9 * (1 - step / options.steps))
            rng = np.random.default_rng((options.seed, step))  # the same windows after a resumed start
            starts = rng.integers(0, len(text[0]) - options.length - 1, options.batch)
            loss = loss_of(model, np.stack([text[0][s : s + options.length + 1] for s in starts]), device)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
            optimizer.step()
            bar.update()
            if (step + 1) % options.epoch == 0 or step + 1 == options.steps:
                history.append((step + 1, held_out_loss(model, text[1], options, device)))
                bar.write(
                    f"epoch {-(-(step + 1) // options.epoch)}: training loss {loss.item():.4f}"
                    f", held-out loss {history[-1][1]:.4f}"
                )
                if options.checkpoint:
                    save(options.checkpoint, model, optimizer, history)
    return history


def generate(
    model: LanguageModel, alphabet: str, prompt: str, count: int, temperature: float, seed: int, device: str
) -> tuple[str, float]:
    """The prompt read in one go, then one character at a time. Also the seconds a character took."""
    rng, caches, written = np.random.default_rng(seed), model.new_caches(1), prompt
    tokens = [alphabet.index(c) for c in prompt]
    started = time.perf_counter()
    with vkml.no_grad():
        for _ in range(count):
            logits = model(vkml.tensor(np.array([tokens], np.int64), device=device), caches)[0, -1].numpy()
            odds = np.exp((logits - logits.max()) / temperature)
            tokens = [int(rng.choice(len(alphabet), p=odds / odds.sum()))]
            written += alphabet[tokens[0]]
    return written, (time.perf_counter() - started) / max(count, 1)


def draw(path: Path, history: list[tuple[int, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(*zip(*history, strict=True), marker="o")
    axes.set(
        xlabel="step",
        ylabel="held-out loss, nats per character",
        title="Kimi Delta Attention on Python's language reference",
    )
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", default=None, help="cpu, vulkan or vulkan:N (default: $DEVICE, else the best there is)"
    )
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--epoch", type=int, default=50, help="steps between two looks at the held-out text")
    parser.add_argument("--checkpoint", type=Path, help="a .safetensors file to go on from and to save to")
    parser.add_argument("--figure", type=Path, default=Path("kda_loss.png"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=192, help="characters of a training window")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--characters", type=int, default=400, help="how many to write at the end")
    parser.add_argument("--temperature", type=float, default=0.7)
    return parser.parse_args()


def main() -> None:
    options = parse()
    device = options.device or os.environ.get("DEVICE") or str(next(d.device for d in vkml.devices() if d.usable))
    *text, alphabet = read_text()
    vkml.manual_seed(options.seed)
    model = LanguageModel(len(alphabet), options.width, options.heads, options.depth).to(device)
    parameters = sum(p.numel() for p in model.parameters())
    name = vkml.device_info(device)["name"]
    print(
        f"device: {device} ({name}), {len(text[0])} characters to train, {len(text[1])} held out, "
        f"{parameters} parameters"
    )
    history = train(model, tuple(text), options, device)
    draw(options.figure, history)
    written, seconds = generate(model, alphabet, "The ", options.characters, options.temperature, options.seed, device)
    print(f"{written}\n\n{1e3 * seconds:.2f} ms per character, figure: {options.figure}")
    print(f"held-out loss: {history[-1][1]:.4f}")


if __name__ == "__main__":
    main()
