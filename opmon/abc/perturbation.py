"""The contract of perturbations, which change inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, Self

import numpy as np

from opmon.abc.plugin import Plugin
from opmon.types import Array


class Perturbation(Plugin, ABC):
    """Changes a batch of inputs at a severity 1..m; severity 0 is the identity and never reaches it.

    It is deterministic given the generator, and keeps shape, dtype and range. Where it draws random numbers it draws
    the same ones whatever the severity, so that a higher severity is more of the same change to the same input: this is
    what makes differences between tests precise (common random numbers).

    Images come as float32, inputs × height × width × channels in [0, 1]; texts as an array of str objects; tables as
    inputs × columns; any other kind as the model takes it.
    """

    kind: ClassVar[Literal["image", "text", "table", "any"]] = "any"

    def fitted(self, inputs: Array) -> Self:
        """Return the perturbation with what it must know of all inputs, such as the spread of a table's columns."""
        return self

    @abstractmethod
    def apply(self, inputs: Array, severity: int, rng: np.random.Generator) -> Array:
        """The changed inputs; ``inputs`` are left as they are."""
