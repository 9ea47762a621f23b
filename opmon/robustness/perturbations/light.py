"""Light: brightness, contrast, darken, exposure and light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Perturbation
from opmon.robustness.perturbations._images import clipped
from opmon.robustness.perturbations.base import Images, Kind, parameter, require_table


@dataclass(frozen=True)
class Brightness(Perturbation):
    """Adds to the value channel of HSV: V ← min(V + c, 1). Table: CIFAR-10-C (Hendrycks and Dietterich, ICLR 2019)."""

    kind: ClassVar[Kind] = "image"
    amounts: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3)
    """Amounts added to the value, which is from 0 to 1, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("amounts", self.amounts, 0, 1)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        amount = parameter(self.amounts, severity, "brightness")
        if inputs.shape[3] == 1:
            return clipped(inputs + np.float32(amount))
        value = inputs.max(axis=3, keepdims=True)
        raised = np.minimum(value + amount, 1)
        grey = value < 1e-6  # black has no hue: it becomes grey
        return clipped(np.where(grey, raised, inputs * (raised / np.where(grey, 1, value))))


@dataclass(frozen=True)
class Contrast(Perturbation):
    """Towards the mean of the image: x ← (x − x̄)·c + x̄. Table: CIFAR-10-C."""

    kind: ClassVar[Kind] = "image"
    factors: tuple[float, ...] = (0.75, 0.5, 0.4, 0.3, 0.15)
    """Factors of the contrast, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("factors", self.factors, 0, 1)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        mean = inputs.mean(axis=(1, 2), keepdims=True, dtype=np.float32)
        return clipped((inputs - mean) * np.float32(parameter(self.factors, severity, "contrast")) + mean)


@dataclass(frozen=True)
class Darken(Perturbation):
    """Less light: x ← x·c, in five steps down to a tenth, as the darkening challenge of CURE-TSD (Temel et al., 2017)
    goes from dusk to night."""

    kind: ClassVar[Kind] = "image"
    factors: tuple[float, ...] = (0.8, 0.6, 0.4, 0.25, 0.1)
    """Factors of the brightness, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("factors", self.factors, 0, 1)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        return clipped(inputs * np.float32(parameter(self.factors, severity, "darken")))


@dataclass(frozen=True)
class Exposure(Perturbation):
    """Over-exposure: x ← min(x·2^EV, 1), in half stops, as the exposure challenge of CURE-TSD (Temel et al., 2017)."""

    kind: ClassVar[Kind] = "image"
    stops: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 2.5)
    """Stops of over-exposure, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("stops", self.stops, 0, 10)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        return clipped(inputs * np.float32(2.0 ** parameter(self.stops, severity, "exposure")))


@dataclass(frozen=True)
class Light(Perturbation):
    """A spot of light somewhere on the image: x ← x + c·exp(−d²/2r²), radius r a quarter of the side. The place is
    drawn for each image and the same at all severities. Table: our own, in equal steps up to a spot that hides what is
    under it."""

    kind: ClassVar[Kind] = "image"
    amounts: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    """Brightness of the spot, from 0 to 1, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("amounts", self.amounts, 0, 10)

    def apply(self, inputs: Images, severity: int, rng: np.random.Generator) -> Images:
        n, height, width, _ = inputs.shape
        places = rng.random((2, n, 1), dtype=np.float32)
        radius = min(height, width) / 4
        down = np.exp(-0.5 * ((np.arange(height, dtype=np.float32) - places[0] * height) / radius) ** 2)
        across = np.exp(-0.5 * ((np.arange(width, dtype=np.float32) - places[1] * width) / radius) ** 2)
        spot = down[:, :, None, None] * across[:, None, :, None]
        return clipped(inputs + np.float32(parameter(self.amounts, severity, "light")) * spot)
