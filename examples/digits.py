"""Trains a classifier on the handwritten digits that ship with scikit-learn, and draws what it learned.

    python examples/digits.py [--device vulkan] [--seed 1] [--epochs 40] [--export-csv digits.csv]

The last line is the accuracy on the fifth of the images that training never saw. The figure goes to demo.png.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm
from vkml.data import ArrayDataset, DataLoader, split

import vkml
from vkml import nn, optim


def load(seed: int) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(images, labels) to train and to test with: 8 x 8 pixels in [0, 1], 80 and 20 %."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    parts = split(ArrayDataset(images, labels), 0.8, seed=seed)
    train, test = (part[np.arange(len(part))] for part in parts)
    return train, test


def best_device() -> str:
    """DEVICE if it is set, else the best device there is: a real GPU, or the CPU."""
    return os.environ.get("DEVICE") or str(next(d.device for d in vkml.devices() if d.usable))


def build(seed: int) -> nn.Module:
    vkml.manual_seed(seed)
    return nn.Sequential(
        nn.Flatten(),
        nn.Dropout(0.05),
        nn.Linear(64, 256),
        nn.GELU(),
        nn.Dropout(0.3),
        nn.Linear(256, 128),
        nn.GELU(),
        nn.Dropout(0.2),
        nn.Linear(128, 10),
    )


def train(model: nn.Module, data: tuple, device: str, epochs: int, seed: int) -> tuple[list[float], float]:
    """The loss of every epoch, and the seconds one step took."""
    loader = DataLoader(ArrayDataset(*data), 64, shuffle=True, drop_last=True, seed=seed, device=device)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    losses, started = [], time.perf_counter()
    with tqdm(total=epochs * len(loader), desc="training", unit="step") as bar:
        for _ in range(epochs):
            total = vkml.zeros((), device=device)
            for images, labels in loader:
                loss = nn.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total = total + loss.detach()  # read once per epoch: a read would make every step wait
                bar.update()
            losses.append(total.item() / len(loader))
            bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses, (time.perf_counter() - started) / (epochs * len(loader))


def predict(model: nn.Module, images: np.ndarray, device: str) -> np.ndarray:
    model.eval()
    with vkml.no_grad():
        return model(vkml.tensor(images, device=device)).argmax(-1).numpy()


def draw(path: Path, losses: list[float], images: np.ndarray, labels: np.ndarray, found: np.ndarray) -> None:
    """The loss curve, and test digits with predictions: the wrong ones first, in red."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
    axes = left.subplots()
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set(xlabel="epoch", ylabel="training loss", title="Cross entropy")
    axes.grid(alpha=0.3)
    order = np.argsort(found == labels, kind="stable")[:40]
    for cell, i in zip(right.subplots(5, 8).flat, order, strict=True):
        wrong = found[i] != labels[i]
        cell.imshow(images[i, 0], cmap="gray_r")
        cell.set_title(
            f"{found[i]} (is {labels[i]})" if wrong else f"{found[i]}",
            fontsize=8,
            color="crimson" if wrong else "black",
        )
        cell.set(xticks=[], yticks=[])
    right.suptitle(
        f"Test digits: {np.mean(found == labels):.1%} right, {np.sum(found != labels)} of {len(labels)} wrong (in red)"
    )
    figure.savefig(path, dpi=120)


def export(path: Path, train_part: tuple, test_part: tuple) -> None:
    """Rows of part (0 train, 1 test), label, 64 pixels: what examples/cpp/digits.cpp reads."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        for part, (images, labels) in enumerate((train_part, test_part)):
            for image, label in zip(images, labels, strict=True):
                writer.writerow([part, label, *(f"{x:g}" for x in image.ravel())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", default=None, help="cpu, vulkan or vulkan:N (default: $DEVICE, else the best there is)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--figure", type=Path, default=Path("demo.png"))
    parser.add_argument("--export-csv", type=Path, help="write the images for the C++ example and stop")
    options = parser.parse_args()

    train_part, test_part = load(options.seed)
    if options.export_csv:
        export(options.export_csv, train_part, test_part)
        print(f"wrote {options.export_csv}")
        return
    device = options.device or best_device()
    name = vkml.device_info(device)["name"]
    model = build(options.seed).to(device)
    size = sum(p.numel() for p in model.parameters())
    sizes = f"{len(train_part[1])} images to train, {len(test_part[1])} to test, {size} parameters"
    print(f"device: {device} ({name}), {sizes}")
    losses, seconds = train(model, train_part, device, options.epochs, options.seed)
    found = predict(model, test_part[0], device)
    draw(options.figure, losses, *test_part, found)
    print(f"time per step: {1e3 * seconds:.2f} ms, figure: {options.figure}")
    print(f"test accuracy: {np.mean(found == test_part[1]):.2f}")


if __name__ == "__main__":
    main()
