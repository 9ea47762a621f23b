"""Sharpness: gaussian-blur, motion-blur and resolution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Perturbation
from opmon.robustness.perturbations._images import (
    averaged,
    gaussian_matrix,
    line,
    resolution_matrix,
    separable,
    side_ratio,
)
from opmon.robustness.perturbations.base import Images, Kind, parameter, require_table

_LARGE = 160


@dataclass(frozen=True)
class GaussianBlur(Perturbation):
    """Gaussian blur with σ pixels. Table: CIFAR-10-C doubled at the upper end, towards MNIST-C's 1 to 6; larger images
    blur in proportion."""

    kind: ClassVar[Kind] = "image"
    sigmas: tuple[float, ...] = (0.4, 0.6, 0.8, 1.2, 1.8)
    """Standard deviations of the blur in pixels, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("sigmas", self.sigmas, 0.01, 1000)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        sigma = parameter(self.sigmas, severity, "gaussian-blur") * max(side_ratio(inputs), 0.25)
        height, width = inputs.shape[1:3]
        if max(height, width) > _LARGE:
            from scipy.ndimage import gaussian_filter

            blurred: Images = gaussian_filter(inputs, (0, sigma, sigma, 0), mode="nearest")
            return blurred
        return separable(inputs, gaussian_matrix(height, sigma), gaussian_matrix(width, sigma))


@dataclass(frozen=True)
class MotionBlur(Perturbation):
    """Averages along a line of c pixels, at one of 16 angles in ±45° drawn for each image. Table: the visible lengths
    (2σ) of CIFAR-10-C's motion blur (radius 6 to 9, σ 1 to 2.5)."""

    kind: ClassVar[Kind] = "image"
    lengths: tuple[float, ...] = (2, 3, 4, 5, 7)
    """Lengths of the motion in pixels, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("lengths", self.lengths, 0.1, 1000)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        length = parameter(self.lengths, severity, "motion-blur") * max(side_ratio(inputs), 0.25)
        choices = rng.integers(0, 16, len(inputs))
        blurred = np.empty_like(inputs)
        for choice in np.unique(choices).tolist():
            chosen = choices == choice
            blurred[chosen] = averaged(inputs[chosen], line(length, math.pi / 4 * (2 * choice / 15 - 1)))
        return blurred


@dataclass(frozen=True)
class Resolution(Perturbation):
    """Fewer pixels: box averages onto c times the side, shown at the old size. Table: pixelate of CIFAR-10-C, extended
    to MNIST-C's lower end."""

    kind: ClassVar[Kind] = "image"
    factors: tuple[float, ...] = (0.9, 0.75, 0.6, 0.45, 0.3)
    """Sides of the smaller image, as shares of the old, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("factors", self.factors, 0.001, 1)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        factor = parameter(self.factors, severity, "resolution")
        height, width = inputs.shape[1:3]
        rows = resolution_matrix(height, max(1, round(height * factor)))
        return separable(inputs, rows, resolution_matrix(width, max(1, round(width * factor))))
