"""Every function of vkml.nn.functional against PyTorch's, called the same way: values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkml

functional = vkml.nn.functional

# name: (arguments as PyTorch takes them; shapes stand for random floats that get gradients, arrays for other tensors)
X, ROWS, MAPS, LINE, VOLUME = (3, 4), (4, 6), (2, 4, 6, 7), (2, 4, 9), (2, 4, 5, 4, 6)
CALLS: dict[str, list[tuple[tuple, dict[str, Any]]]] = {
    **{
        name: [((X,), {})]
        for name in (
            "relu", "relu6", "hardsigmoid", "hardswish", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish",
            "sigmoid", "logsigmoid", "tanh", "tanhshrink", "softsign", "softplus", "hardtanh", "hardshrink",
            "softshrink",
        )
    },
    **{name: [((MAPS,), {"dim": 1}), ((X, -1), {})] for name in ("softmax", "softmin", "log_softmax", "glu")},
    "prelu": [((MAPS, (4,)), {}), ((X, (1,)), {})],
    "linear": [((X, (5, 4), (5,)), {}), (((4,), (5, 4)), {})],
    "bilinear": [((X, (3, 5), (2, 4, 5), (2,)), {})],
    "embedding": [((np.array([[1, 2], [0, 1]]), (3, 4)), {"padding_idx": 1})],
    "dropout": [((X,), {"p": 0.5, "training": False}), ((X,), {"p": 0.0})],
    "dropout1d": [((LINE,), {"training": False}), ((LINE,), {"p": 0.0})],
    "dropout2d": [((MAPS,), {"training": False}), ((MAPS,), {"p": 0.0})],
    "layer_norm": [((X, (4,), (4,), (4,)), {}), ((X, (3, 4)), {"eps": 1e-2})],
    "rms_norm": [((X, (4,), (4,)), {}), ((X, (4,)), {"eps": 1e-2})],
    "group_norm": [((MAPS, 2, (4,), (4,)), {}), ((ROWS, 3), {"eps": 1e-2})],
    "batch_norm": [((MAPS, None, None, (4,), (4,)), {"training": True}),
                   ((MAPS, np.zeros(4, "f"), np.full(4, 2, "f")), {"eps": 1e-2})],
    "instance_norm": [((MAPS,), {}), ((LINE, None, None, (4,), (4,)), {"eps": 1e-2})],
    "conv1d": [((LINE, (6, 2, 3), (6,)), {"stride": 2, "padding": 1, "groups": 2}),
               ((LINE, (2, 4, 2)), {"padding": "same"})],
    "conv2d": [((MAPS, (6, 2, 3, 2), (6,)), {"stride": (2, 1), "padding": 1, "dilation": 2, "groups": 2}),
               ((MAPS, (3, 4, 3, 3)), {"padding": "same"})],
    "conv3d": [((VOLUME, (6, 2, 3, 2, 1), (6,)), {"stride": (1, 2, 1), "padding": (1, 0, 2), "groups": 2}),
               ((VOLUME, (3, 4, 2, 2, 2)), {"padding": "valid", "dilation": (2, 1, 1)})],
    "conv_transpose1d": [((LINE, (4, 3, 3), (6,)), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2})],
    "conv_transpose2d": [((MAPS, (4, 3, 3, 2), (6,)), {"stride": 2, "padding": 1, "groups": 2, "dilation": (1, 2)}),
                         (((4, 5, 5), (4, 3, 2, 2)), {})],
    "max_pool1d": [((LINE, 3), {"stride": 2, "padding": 1})],
    "max_pool2d": [((MAPS, (2, 3)), {"ceil_mode": True}), (((4, 6, 7), 2), {"stride": 1})],
    "avg_pool1d": [((LINE, 3), {"stride": 2, "padding": 1})],
    "avg_pool2d": [((MAPS, (2, 3)), {"stride": 1, "padding": 1, "count_include_pad": False}),
                   ((MAPS, 2), {"divisor_override": 5})],
    "max_pool3d": [((VOLUME, (2, 3, 2)), {"stride": 1, "padding": 1}), (((4, 5, 4, 6), 2), {"ceil_mode": True})],
    "avg_pool3d": [((VOLUME, (2, 3, 2)), {"stride": 1, "padding": 1}), ((VOLUME, 2), {"divisor_override": 5}),
                   ((VOLUME, 3), {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False})],
    "adaptive_avg_pool3d": [((VOLUME, (4, None, 3)), {}), ((VOLUME, 1), {})],
    "adaptive_max_pool3d": [((VOLUME, (4, None, 3)), {}), ((VOLUME, 1), {})],
    "adaptive_avg_pool1d": [((LINE, 4), {}), ((LINE, 3), {})],
    "adaptive_avg_pool2d": [((MAPS, (4, None)), {}), ((MAPS, 3), {}), (((4, 6, 7), (9, 2)), {})],
    "adaptive_max_pool1d": [((LINE, 4), {}), ((LINE, 3), {})],
    "adaptive_max_pool2d": [((MAPS, (4, None)), {}), (((4, 6, 7), (9, 2)), {})],
    "pad": [((X, (1, 2, 0, 3)), {}), ((X, (-1, 2)), {"value": 1.5}), ((MAPS, (2, 1, 3, 0)), {"mode": "reflect"}),
            ((MAPS, (2, 1, 3, 0)), {"mode": "replicate"}), ((MAPS, (2, 1, 3, 0)), {"mode": "circular"})],
    "unfold": [((MAPS, (3, 2)), {"stride": 2, "padding": 1, "dilation": (1, 2)})],
    "fold": [(((2, 12, 20), (5, 6), (2, 2)), {}), (((2, 18, 4), 4, 3), {"padding": 1, "stride": 3})],
    "pixel_shuffle": [((MAPS, 2), {}), (((8, 2, 3), 2), {})],
    "pixel_unshuffle": [(((2, 3, 4, 6), 2), {})],
    "threshold": [((X, 0.2, -1.5), {})],
    "interpolate": [((MAPS,), {"scale_factor": 2}), ((LINE,), {"size": 13, "mode": "nearest-exact"}),
                    ((MAPS,), {"size": (3, 11), "mode": "bilinear"}), ((MAPS,), {"scale_factor": 1.7}),
                    ((LINE,), {"scale_factor": 1.7, "mode": "linear", "align_corners": True}),
                    ((LINE,), {"scale_factor": 1.7, "mode": "linear", "recompute_scale_factor": True}),
                    ((VOLUME,), {"scale_factor": (2, 0.5, 1), "mode": "trilinear"})],
    "one_hot": [((np.array([[0, 2], [1, 1]]),), {}), ((np.array([0, 2]), 5), {})],
    "normalize": [((X,), {}), ((MAPS,), {"p": 1.0, "dim": -1})],
    "cosine_similarity": [((X, X), {}), ((MAPS, MAPS), {"dim": -1})],
    "mse_loss": [((X, X), {}), ((X, X), {"reduction": "sum"})],
    "l1_loss": [((X, X), {}), ((X, X), {"reduction": "none"})],
    "smooth_l1_loss": [((X, X), {"beta": 0.5}), ((X, X), {"beta": 0.0})],
    "huber_loss": [((X, X), {"delta": 0.5})],
    "cross_entropy": [((X, np.array([0, 3, 1])), {"label_smoothing": 0.1}),
                      ((X, np.array([0, 3, 1]), np.array([1, 2, 3, 4], "f")), {"ignore_index": 3})],
    "nll_loss": [((X, np.array([0, 3, 1]), np.array([1, 2, 3, 4], "f")), {}), ((MAPS, np.ones((2, 6, 7), int)), {})],
    "binary_cross_entropy": [((np.array([0.1, 0.7], "f"), np.array([0, 0.5], "f"), np.array([2, 3], "f")), {})],
    "binary_cross_entropy_with_logits": [((X, X), {"reduction": "sum"})],
    "kl_div": [((X, np.full((3, 4), 0.25, "f")), {"reduction": "batchmean"}), ((X, X), {"log_target": True})],
    "poisson_nll_loss": [((X, np.full((3, 4), 3, "f")), {"full": True}),
                         ((np.full((3, 4), 2, "f"), X), {"log_input": False, "reduction": "sum"})],
    "gaussian_nll_loss": [((X, X, np.full((3, 4), 0.5, "f")), {"full": True}), ((X, X, np.zeros((3, 4), "f")), {})],
    "margin_ranking_loss": [((ROWS, ROWS, np.ones((4, 6), "f")), {"margin": 0.5})],
    "hinge_embedding_loss": [((X, np.array([[1, -1, 1, -1]] * 3, "f")), {"reduction": "none"})],
    "soft_margin_loss": [((X, np.array([[1, -1, 1, -1]] * 3, "f")), {})],
    "cosine_embedding_loss": [((X, X, np.array([1, -1, 1], "f")), {"margin": 0.1})],
    "pairwise_distance": [((X, X), {}), ((X, X), {"p": 1.0, "keepdim": True})],
    "triplet_margin_loss": [((ROWS, ROWS, ROWS), {"swap": True}), ((ROWS, ROWS, ROWS), {"p": 1.0})],
    "scaled_dot_product_attention": [(((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 7)), {"scale": 0.3}),
                                     (((2, 5, 4),) * 3, {"is_causal": True})],
}  # fmt: skip


def test_every_function_is_called() -> None:
    assert set(functional.__all__) == set(CALLS)


def is_shape(a: Any, position: int, name: str) -> bool:
    """Shapes hold random tensors; the tuples after the first argument of a few functions are sizes."""
    sizes_after = {"layer_norm": {1}, "rms_norm": {1}, "max_pool2d": {1}, "avg_pool2d": {1}, "adaptive_avg_pool2d": {1},
                   "adaptive_max_pool2d": {1}, "max_pool3d": {1}, "avg_pool3d": {1}, "adaptive_avg_pool3d": {1},
                   "adaptive_max_pool3d": {1}, "pad": {1}, "unfold": {1}, "fold": {1, 2}}  # fmt: skip
    return isinstance(a, tuple) and position not in sizes_after.get(name, set())


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(CALLS))
def test_against_torch(name, device, rng):
    torch = pytest.importorskip("torch")
    for args, options in CALLS[name]:
        arrays = [rng.standard_normal(a).astype("f") if is_shape(a, i, name) else a for i, a in enumerate(args)]
        trained = [i for i, a in enumerate(args) if is_shape(a, i, name)]
        results, inputs = [], []
        for namespace, make in (
            (functional, lambda a: vkml.tensor(a, device=device)),
            (torch.nn.functional, torch.tensor),
        ):
            given = [make(a) if isinstance(a, np.ndarray) else a for a in arrays]
            for i in trained:
                given[i].requires_grad_()
            results.append(getattr(namespace, name)(*given, **options))
            inputs.append(given)
        ours, theirs = results
        assert tuple(ours.shape) == tuple(theirs.shape), (name, args, options)
        assert str(ours.dtype).removeprefix("vkml.") == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=2e-5, atol=2e-5)
        if trained:
            weight = rng.standard_normal(tuple(theirs.shape)).astype("f")
            ours.backward(vkml.tensor(weight, device=device))
            theirs.backward(torch.tensor(weight))
        for i in trained:
            a, b = inputs[0][i].grad, inputs[1][i].grad
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=2e-5 * max(1.0, float(b.abs().max())))
