"""Noise: gaussian-noise and shot-noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Perturbation
from opmon.robustness.perturbations._images import clipped, normals
from opmon.robustness.perturbations.base import Images, Kind, parameter, require_table


@dataclass(frozen=True)
class GaussianNoise(Perturbation):
    """x ← x + c·ε, ε standard normal. Table: ImageNet-C's and MNIST-C's first steps, from CIFAR-10-C's mildest on."""

    kind: ClassVar[Kind] = "image"
    deviations: tuple[float, ...] = (0.04, 0.08, 0.12, 0.18, 0.26)
    """Standard deviations of the noise, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("deviations", self.deviations, 0, 10)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        noise = normals(rng, inputs.shape) * np.float32(parameter(self.deviations, severity, "gaussian-noise"))
        noise += inputs
        return np.clip(noise, 0, 1, out=noise)


@dataclass(frozen=True)
class ShotNoise(Perturbation):
    """Photons counted: x ← Poisson(c·x)/c. Table: MNIST-C. The Poisson counts are drawn through their normal
    approximation √(x/c)·ε above 20 photons and exactly below, from one generator state for all severities."""

    kind: ClassVar[Kind] = "image"
    photons: tuple[float, ...] = (60, 25, 12, 5, 3)
    """Photons at full brightness, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("photons", self.photons, 0.1, 1e6)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        photons = parameter(self.photons, severity, "shot-noise")
        if photons > 20:
            noise = normals(rng, inputs.shape) * np.sqrt(np.maximum(inputs, 0) / np.float32(photons))
            noise += inputs
            return np.clip(noise, 0, 1, out=noise)
        return clipped(rng.poisson(np.maximum(inputs, 0) * photons) / photons)
