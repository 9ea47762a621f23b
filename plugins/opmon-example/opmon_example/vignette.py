"""The perturbation ``image.vignette``: darker towards the corners, as a cheap lens makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from opmon.abc import Perturbation
from opmon.errors import InputError
from opmon.types import Array


@dataclass(frozen=True)
class Vignette(Perturbation):
    """Multiplies each picture by ``1 − s·(d/d_max)²``, where d is the distance from its centre."""

    kind: ClassVar[Literal["image"]] = "image"
    strengths: tuple[float, ...] = (0.2, 0.35, 0.5, 0.7, 0.9)

    def __post_init__(self) -> None:
        if not self.strengths or not all(0 < strength <= 1 for strength in self.strengths):
            raise InputError(
                f"strengths holds numbers above 0 and at most 1, one for each severity; got {self.strengths}"
            )

    def apply(self, inputs: Array, severity: int, rng: np.random.Generator) -> Array:
        if not 1 <= severity <= len(self.strengths):
            raise InputError(f"strengths has severities 1..{len(self.strengths)}; got {severity}")
        height, width = inputs.shape[1:3]
        y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)
        shade = 1 - self.strengths[severity - 1] * (x**2 + y**2) / 2
        return (inputs * shade[None, :, :, None]).astype(inputs.dtype)
