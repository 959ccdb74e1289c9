"""Loads weights that PyTorch wrote, and compares the outputs.

    python examples/load_torch_weights.py [--device vulkan] [--folder weights]

A small image classifier and a transformer layer are made in PyTorch with random weights. Their state dicts travel
three ways: as they are, through a .safetensors file that PyTorch writes, and back to PyTorch through one that vkML
writes. The figure compares the outputs, one point per number.

Needs PyTorch and safetensors beside what the other examples need: pip install torch safetensors.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

try:
    import safetensors.torch
    import torch
except ImportError as missing:
    raise SystemExit(
        f"load_torch_weights: needs PyTorch and safetensors (pip install torch safetensors): {missing}"
    ) from None
import numpy as np
from digits import best_device
from tqdm import tqdm

import vkml


def classifier(nn: object) -> object:
    """The same lines make it in torch.nn and in vkml.nn."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, stride=2, groups=2),
        nn.GroupNorm(4, 32),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def models() -> dict[str, tuple]:
    """Name -> (PyTorch's model, vkML's, an input)."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((4, 3, 32, 32), dtype=np.float32)
    words = rng.standard_normal((2, 20, 64), dtype=np.float32)
    theirs = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
    ours = vkml.nn.TransformerEncoderLayer(64, 4, 128, norm_first=True)
    return {
        "convolutions": (classifier(torch.nn), classifier(vkml.nn), images),
        "transformer layer": (theirs, ours, words),
    }


def outputs(theirs: torch.nn.Module, ours: vkml.nn.Module, data: np.ndarray, device: str) -> tuple:
    with torch.no_grad(), vkml.no_grad():
        return theirs(torch.from_numpy(data)).numpy(), ours(vkml.tensor(data, device=device)).numpy()


def travel(
    name: str, theirs: torch.nn.Module, ours: vkml.nn.Module, data: np.ndarray, options: argparse.Namespace
) -> dict:
    """Way -> (PyTorch's outputs, vkML's)."""
    found = {}
    ours.to(options.device).eval()
    theirs.eval()
    ours.load_state_dict(theirs.state_dict())
    found["state dict"] = outputs(theirs, ours, data, options.device)

    file = options.folder / f"{name.replace(' ', '_')}.safetensors"
    with torch.no_grad():
        for p in theirs.parameters():  # other weights, so that the file is what is compared
            p.mul_(1.25)
    safetensors.torch.save_file(theirs.state_dict(), file)
    vkml.load_module(file, ours)
    found["file of PyTorch"] = outputs(theirs, ours, data, options.device)

    with vkml.no_grad():
        for p in ours.parameters():
            p.assign_(p * 0.75)
    vkml.save_module(file, ours)
    theirs.load_state_dict(safetensors.torch.load_file(file))
    found["file of vkML"] = outputs(theirs, ours, data, options.device)
    return found


def draw(path: Path, found: dict[str, dict]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(5 * len(found), 4.5), layout="constrained")
    for axis, (name, ways) in zip(axes, found.items(), strict=True):
        for way, (theirs, ours) in ways.items():
            axis.scatter(theirs.ravel(), ours.ravel(), s=6, label=way, alpha=0.6)
        axis.axline((0, 0), slope=1, color="gray", linewidth=0.8)
        axis.set(xlabel="output of PyTorch", ylabel="output of vkML", title=name)
        axis.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu, vulkan or vulkan:N (default: $DEVICE, else the best there is)")
    parser.add_argument("--folder", type=Path, help="where the files stay (default: nowhere)")
    parser.add_argument("--figure", type=Path, default=Path("torch_weights.png"))
    options = parser.parse_args()
    options.device = options.device or best_device()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or Path(temporary)
        options.folder.mkdir(parents=True, exist_ok=True)
        with tqdm(models().items(), desc="models", unit="model") as bar:
            found = {name: travel(name, *model, options) for name, model in bar}
    draw(options.figure, found)
    worst = 0.0
    for name, ways in found.items():
        for way, (theirs, ours) in ways.items():
            error = float(np.abs(theirs - ours).max() / np.abs(theirs).max())
            worst = max(worst, error)
            print(f"{name}, {way}: largest difference {error:.1e} of the largest output")
    print(f"figure: {options.figure}")
    if not worst < 1e-5:
        raise SystemExit(f"the outputs differ by {worst:.1e}")
    print("outputs match")


if __name__ == "__main__":
    main()
