"""Autoencoders of a model's inputs: fitted with torch, kept as plain weights, run as ONNX nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from opmon.errors import ModelError
from opmon.types import Array, Numbers

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear
Kind = Literal["sae", "vae"]
Weights = Mapping[str, Numbers]
_LATENT, _EPOCHS, _BATCH, _LARGEST = 16, 20, 128, 1 << 16


def hidden_size(width: int) -> int:
    """The neurons of the hidden layer for inputs of ``width`` numbers."""
    return int(np.clip(width // 4, 4, 256))


def fit_autoencoder(kind: Kind, inputs: Array, seed: int, epochs: int = _EPOCHS) -> Weights:
    """Weights of an autoencoder of ``inputs`` (one row each), standardised by column.

    ``sae``: one hidden layer, rectified. ``vae``: a hidden layer, 16 latent normal variables, a hidden layer; the loss
    is the squared error and the Kullback-Leibler divergence from the standard normal (Kingma and Welling, 2014).
    """
    if inputs.dtype.kind not in "fiu" or inputs.shape[1] > _LARGEST:
        raise ModelError(
            f"{kind} is for inputs of at most {_LARGEST} numbers; this model takes {inputs.shape[1]} of {inputs.dtype}"
        )
    _require_torch(kind)
    values = inputs.astype(np.float32)
    known = np.isfinite(values)
    totals = np.where(known, values, 0).sum(axis=0, dtype=np.float64)
    mean = (totals / np.maximum(known.sum(axis=0), 1)).astype(np.float32)
    values = np.where(known, values, mean)
    spread = values.std(axis=0, dtype=np.float64).astype(np.float32)
    spread = np.where(spread > 1e-6 * max(float(spread.max()), 1e-30), spread, max(float(spread.mean()), 1e-6))
    with _own_randomness(seed):
        layers = _layers(kind, values.shape[1])
        _train(kind, layers, (values - mean) / spread, epochs)
    weights = {"mean": mean, "spread": spread.astype(np.float32)}
    for name, layer in layers.items():
        if name != "variance":
            weights[f"{name}.weight"] = layer.weight.detach().cpu().numpy()
            weights[f"{name}.bias"] = layer.bias.detach().cpu().numpy()
    return weights


def _layers(kind: Kind, width: int) -> dict[str, Linear]:
    from torch.nn import Linear as linear  # noqa: N813

    hidden = hidden_size(width)
    if kind == "sae":
        return {"encode": linear(width, hidden), "decode": linear(hidden, width)}
    latent = min(_LATENT, hidden)
    return {
        "encode": linear(width, hidden),
        "centre": linear(hidden, latent),
        "variance": linear(hidden, latent),
        "widen": linear(latent, hidden),
        "decode": linear(hidden, width),
    }


def _train(kind: Kind, layers: Mapping[str, Linear], inputs: Numbers, epochs: int) -> None:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    values = torch.from_numpy(inputs).to(device)
    parameters = [parameter for layer in layers.values() for parameter in layer.to(device).parameters()]
    optimiser = torch.optim.Adam(parameters, lr=1e-3)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(values), device=device), _BATCH):
            loss = _loss(kind, layers, values[rows])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()


def _loss(kind: Kind, layers: Mapping[str, Linear], x: Tensor) -> Tensor:
    import torch

    hidden = torch.relu(layers["encode"](x))
    if kind == "sae":
        return torch.mean(((layers["decode"](hidden) - x) ** 2).sum(1))
    centre, variance = layers["centre"](hidden), layers["variance"](hidden).clamp(-20, 20)
    latent = centre + torch.randn_like(centre) * torch.exp(variance / 2)
    error = ((layers["decode"](torch.relu(layers["widen"](latent))) - x) ** 2).sum(1)
    return torch.mean(error - 0.5 * (1 + variance - centre**2 - variance.exp()).sum(1))


@contextlib.contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """Seed torch's global generator, and put it back afterwards."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _require_torch(kind: str) -> None:
    try:
        import torch  # noqa: F401
    except ImportError as exc:
        raise ModelError(
            f"{kind} is fitted with torch, which is not installed: pip install 'opmon[autoencoders]'"
        ) from exc
