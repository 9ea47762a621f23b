"""Reconstruction error of the model's inputs by an autoencoder (SAE, VAE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Head, Training
from opmon.scoring.graph.monitor_graph import MonitorGraph
from opmon.scoring.heads._autoencoder_training import Kind, Weights, fit_autoencoder


@dataclass(frozen=True)
class SimpleAutoencoder(Head):
    """``mean((x − x̂)²)`` over the standardised numbers of an input; x̂ by an autoencoder of one hidden layer.

    Where a number is missing, x is the mean of the training inputs.
    """

    kind: ClassVar[Kind] = "sae"

    @property
    def fitted_as(self) -> str:
        return self.kind

    def fit(self, training: Training, seed: int) -> Weights:
        return fit_autoencoder(self.kind, training.inputs, seed)

    def nodes(self, graph: MonitorGraph) -> str:
        nodes, weights = graph.nodes, graph.learned(self.kind)
        x, mean = nodes.cast(nodes.add("Flatten", [graph.input], axis=1), np.float32), nodes.constant(weights["mean"])
        x = nodes.add("Where", [nodes.add("IsNaN", [x]), mean, x])
        x = nodes.add("Div", [nodes.add("Sub", [x, mean]), nodes.constant(weights["spread"])])
        value = x
        for name in ("encode", "centre", "widen", "decode"):
            if f"{name}.weight" in weights:
                bias = weights[f"{name}.bias"]
                value = nodes.transposed_product(value, weights[f"{name}.weight"], bias)
                if name in ("encode", "widen"):
                    value = nodes.add("Relu", [value])
        error = nodes.reduce("ReduceSumSquare", nodes.add("Sub", [x, value]), [1])
        return nodes.add("Div", [error, nodes.constant(float(len(weights["mean"])), np.float32)])


@dataclass(frozen=True)
class VariationalAutoencoder(SimpleAutoencoder):
    """The reconstruction error by a variational autoencoder, which decodes the mean of its latent variables."""

    kind: ClassVar[Kind] = "vae"
