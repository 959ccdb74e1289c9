"""Trains a convolutional network on the handwritten digits that ship with scikit-learn, and draws what it gets wrong.

    python examples/digits_cnn.py [--device vulkan] [--seed 0] [--epochs 30]

Training images are shifted by up to a pixel at random, on a thread that prepares batches ahead; the weights that are
tested are a running average. The last line is the accuracy on the fifth of the images that training never saw.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from digits import best_device, draw, load, predict
from tqdm import tqdm
from vkml.data import ArrayDataset, DataLoader, RandomCrop

import vkml
from vkml import nn, optim


def build(seed: int, width: int) -> nn.Module:
    vkml.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(8 * width, 10),
    )


def train(model: nn.Module, data: tuple, options: argparse.Namespace, device: str) -> tuple[list[float], float]:
    """The loss of every epoch, and the seconds one step took. Leaves the averaged weights in the model."""
    loader = DataLoader(
        ArrayDataset(*data), 64, shuffle=True, drop_last=True, seed=options.seed, device=device,
        transform=RandomCrop(8, padding=1), prefetch=2,
    )  # fmt: skip
    steps = options.epochs * len(loader)
    optimizer = optim.AdamW(model.parameters(), weight_decay=1e-2)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps, cycle_momentum=False)
    average = optim.EMA(model, decay=0.98)
    losses, started = [], time.perf_counter()
    with tqdm(total=steps, desc="training", unit="step") as bar:
        for _ in range(options.epochs):
            total = vkml.zeros((), device=device)
            for images, labels in loader:
                loss = nn.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                average.update()
                total = total + loss.detach()  # read once per epoch: a read would make every step wait
                bar.update()
            losses.append(total.item() / len(loader))
            bar.set_postfix(loss=f"{losses[-1]:.4f}")
    average.copy_to()
    return losses, (time.perf_counter() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu, vulkan or vulkan:N (default: $DEVICE, else the best there is)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--width", type=int, default=32, help="channels of the first layer")
    parser.add_argument("--figure", type=Path, default=Path("digits_cnn.png"))
    options = parser.parse_args()

    train_part, test_part = load(options.seed)
    device = options.device or best_device()
    model = build(options.seed, options.width).to(device)
    size = sum(p.numel() for p in model.parameters())
    sizes = f"{len(train_part[1])} images to train, {len(test_part[1])} to test, {size} parameters"
    print(f"device: {device} ({vkml.device_info(device)['name']}), {sizes}")
    losses, seconds = train(model, train_part, options, device)
    found = predict(model, test_part[0], device)
    draw(options.figure, losses, *test_part, found)
    print(f"time per step: {1e3 * seconds:.2f} ms, figure: {options.figure}")
    print(f"test accuracy: {np.mean(found == test_part[1]):.4f}")


if __name__ == "__main__":
    main()
