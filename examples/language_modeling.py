"""What the language-model examples share: the text, the training loop, checkpoints, the figure.

The text is Python's language reference, which ships inside Python (pydoc_data.topics); every tenth topic is held out.
A model maps tokens (batch, time) to logits (batch, time, characters).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
from tqdm import tqdm

import vkml
from vkml import nn, optim

History = list[tuple[int, float]]  # (step, held-out loss in nats per character)


def read_text() -> tuple[np.ndarray, np.ndarray, str]:
    """Character numbers to train on and to hold out, and the alphabet."""
    pages = [topics[name].rstrip() + "\n\n\n" for name in sorted(topics)]
    kept, held = ("".join(p for i, p in enumerate(pages) if (i % 10 == 9) == out) for out in (False, True))
    alphabet = "".join(sorted(set(kept)))
    number = {c: i for i, c in enumerate(alphabet)}
    return *(np.array([number[c] for c in text if c in number], np.int64) for text in (kept, held)), alphabet


def loss_of(model: nn.Module, windows: np.ndarray, device: str) -> vkml.Tensor:
    logits = model(vkml.tensor(windows[:, :-1], device=device))
    return nn.cross_entropy(logits.flatten(0, 1), vkml.tensor(windows[:, 1:].reshape(-1), device=device))


def held_out_loss(model: nn.Module, text: np.ndarray, options: argparse.Namespace, device: str) -> float:
    count = min(len(text) // (options.length + 1), 2 * options.batch)
    windows = text[: count * (options.length + 1)].reshape(count, -1)
    model.eval()
    with vkml.no_grad():
        parts = [loss_of(model, windows[i : i + options.batch], device).item() for i in range(0, count, options.batch)]
    model.train()
    return float(np.mean(parts))


def rate_at(step: int, options: argparse.Namespace) -> float:
    """Up for 20 steps, then down to a tenth."""
    return options.rate * min(1.0, (step + 1) / 20) * (0.1 + 0.9 * (1 - step / options.steps))


def train(
    model: nn.Module,
    optimizer: optim.Optimizer,
    text: tuple[np.ndarray, np.ndarray],
    options: argparse.Namespace,
    device: str,
) -> History:
    """The held-out loss after every epoch. With options.checkpoint it is saved there, and a second run goes on."""
    if options.checkpoint and options.checkpoint.exists():
        found = vkml.load(options.checkpoint, device="cpu")
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        history = found["history"]
        print(f"going on from {options.checkpoint}, step {history[-1][0]}, held-out loss {history[-1][1]:.4f}")
    else:
        history = [(0, held_out_loss(model, text[1], options, device))]
        print(f"before training: held-out loss {history[0][1]:.4f}")
    first = history[-1][0]
    with tqdm(total=options.steps, initial=first, desc="training", unit="step") as bar:
        for step in range(first, min(options.steps, options.stop_after or options.steps)):
            optimizer.lr = rate_at(step, options)
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
                epoch = -(-(step + 1) // options.epoch)
                bar.write(f"epoch {epoch}: training loss {loss.item():.4f}, held-out loss {history[-1][1]:.4f}")
                if options.checkpoint:
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "history": history}
                    vkml.save(options.checkpoint, state)
    return history


def choose(logits: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    odds = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(logits), p=odds / odds.sum()))


def draw(path: Path, history: History, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(*zip(*history, strict=True), marker="o")
    axes.set(xlabel="step", ylabel="held-out loss, nats per character", title=title)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def parser(description: str | None, figure: str, **defaults: object) -> argparse.ArgumentParser:
    """The options of both examples; `defaults` where an example has its own."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--device", help="cpu, vulkan or vulkan:N (default: $DEVICE, else the best there is)")
    made.add_argument("--steps", type=int, default=400)
    made.add_argument("--epoch", type=int, default=50, help="steps between two looks at the held-out text")
    made.add_argument("--checkpoint", type=Path, help="a .safetensors file to go on from and to save to")
    made.add_argument("--stop-after", type=int, help="stop at this step; a later run with the checkpoint goes on")
    made.add_argument("--figure", type=Path, default=Path(figure))
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--batch", type=int, default=16)
    made.add_argument("--length", type=int, default=192, help="characters of a training window")
    made.add_argument("--width", type=int, default=128)
    made.add_argument("--heads", type=int, default=4)
    made.add_argument("--depth", type=int, default=2)
    made.add_argument("--rate", type=float, default=4e-3)
    made.add_argument("--characters", type=int, default=400, help="how many to write at the end")
    made.add_argument("--temperature", type=float, default=0.7)
    made.set_defaults(**defaults)
    return made


def run(
    options: argparse.Namespace,
    build: Callable[[int, argparse.Namespace], nn.Module],
    optimizer_of: Callable[[nn.Module, float], optim.Optimizer],
    generate: Callable[[nn.Module, str, argparse.Namespace, str], tuple[str, float]],
    title: str,
) -> None:
    """Trains, draws, and writes on from "The "."""
    device = options.device or os.environ.get("DEVICE") or str(next(d.device for d in vkml.devices() if d.usable))
    *text, alphabet = read_text()
    vkml.manual_seed(options.seed)
    model = build(len(alphabet), options).to(device)
    parameters = sum(p.numel() for p in model.parameters())
    name = vkml.device_info(device)["name"]
    sizes = f"{len(text[0])} characters to train, {len(text[1])} held out, {parameters} parameters"
    print(f"device: {device} ({name}), {sizes}")
    history = train(model, optimizer_of(model, options.rate), tuple(text), options, device)
    draw(options.figure, history, title)
    written, seconds = generate(model.eval(), alphabet, options, device)
    print(f"{written}\n\n{1e3 * seconds:.2f} ms per character, figure: {options.figure}")
    print(f"held-out loss: {history[-1][1]:.4f}")
