"""Geometry: zoom, scale, translate, shear and rotate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Perturbation
from opmon.robustness.perturbations._images import affine, mapped, mapped_by, side_ratio
from opmon.robustness.perturbations.base import Images, Kind, parameter, require_table, signs


@dataclass(frozen=True)
class Zoom(Perturbation):
    """Enlarges the middle of the image by a factor. Table: the steps of DeepTest's scale (Tian et al., ICSE 2018),
    narrowed to factors that leave the object in the image."""

    kind: ClassVar[Kind] = "image"
    factors: tuple[float, ...] = (1.1, 1.2, 1.35, 1.5, 1.75)
    """Factors of enlargement, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("factors", self.factors, 1, 20)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        step = 1 / parameter(self.factors, severity, "zoom")
        height, width = inputs.shape[1:3]
        return mapped(inputs, affine(height, width, (step, 0.0, 0.0, step)))


@dataclass(frozen=True)
class Scale(Perturbation):
    """Shrinks the image onto a black ground. Table: MNIST-C (Mu and Gilmer, 2019), factors 0.9 to 0.5."""

    kind: ClassVar[Kind] = "image"
    factors: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6, 0.5)
    """Factors of shrinking, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("factors", self.factors, 0.01, 1)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        step = 1 / parameter(self.factors, severity, "scale")
        height, width = inputs.shape[1:3]
        return mapped(inputs, affine(height, width, (step, 0.0, 0.0, step)))


@dataclass(frozen=True)
class Translate(Perturbation):
    """Moves the image by c pixels down or up and right or left, black behind it. Table: MNIST-C; larger images move in
    proportion."""

    kind: ClassVar[Kind] = "image"
    pixels: tuple[float, ...] = (1, 2, 3, 4, 5)
    """Distances in pixels, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("pixels", self.pixels, 0, 10_000)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        down, right = signs(rng, len(inputs)), signs(rng, len(inputs))
        distance = max(1, round(parameter(self.pixels, severity, "translate") * max(side_ratio(inputs), 0.25)))
        height, width = inputs.shape[1:3]
        high, wide = min(distance, height), min(distance, width)
        result = np.zeros_like(inputs)
        for dy in (-1, 1):
            for dx in (-1, 1):
                chosen = np.flatnonzero((down == dy) & (right == dx))
                to_y, from_y = _overlap(dy * high, height)
                to_x, from_x = _overlap(dx * wide, width)
                result[chosen, to_y, to_x] = inputs[chosen, from_y, from_x]
        return result


@dataclass(frozen=True)
class Shear(Perturbation):
    """Shears along x by an angle (radians), to the left or right. Table: MNIST-C halved, so that severity 5 is its
    middle: the upper ones show no recognisable object."""

    kind: ClassVar[Kind] = "image"
    angles: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Angles in radians, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("angles", self.angles, 0, 1.5)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        slope = float(np.tan(parameter(self.angles, severity, "shear")))
        height, width = inputs.shape[1:3]
        operators = {sign: affine(height, width, (1.0, sign * slope, 0.0, 1.0)) for sign in (-1, 1)}
        return mapped_by(inputs, signs(rng, len(inputs)), operators)


@dataclass(frozen=True)
class Rotate(Perturbation):
    """Rotates about the middle by an angle (radians), to the left or right. Table: MNIST-C halved, 6° to 29°."""

    kind: ClassVar[Kind] = "image"
    angles: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Angles in radians, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("angles", self.angles, 0, 3.2)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        angle = parameter(self.angles, severity, "rotate")
        cosine, sine = float(np.cos(angle)), float(np.sin(angle))
        height, width = inputs.shape[1:3]
        operators = {sign: affine(height, width, (cosine, sign * sine, -sign * sine, cosine)) for sign in (-1, 1)}
        return mapped_by(inputs, signs(rng, len(inputs)), operators)


def _overlap(shift: int, size: int) -> tuple[slice, slice]:
    """The place where a moved image lands, and the part of it that does."""
    if shift >= 0:
        return slice(shift, size), slice(0, size - shift)
    return slice(0, size + shift), slice(-shift, size)
