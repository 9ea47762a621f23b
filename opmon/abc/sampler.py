"""The contract of samplers, which choose the inputs worth a label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from opmon.abc.plugin import Plugin
from opmon.types import Draw, Frame, Sample


class Sampler(Plugin, ABC):
    """Chooses the inputs worth a label. Pure: the same frame, budget and generator state give the same draw.

    ``draw.design`` names the estimator that understands its draws.
    """

    design: ClassVar[str | None] = None
    """The design of its draws; None where it is the name that the sampler is registered under."""

    @property
    def activation_levels(self) -> int | None:
        """In how many equal levels (2 to 256) of its range over the frame each neuron of the monitor's layer is wanted
        as ``frame.activations``, one byte per neuron and input; None where the sampler looks at no activations."""
        return None

    looks_at_predictions: ClassVar[bool] = False
    """Whether it wants ``frame.predictions``: only what a sampler looks at is read from disk."""

    @property
    def reserves(self) -> bool:
        """Whether it draws as many inputs of parts of the frame as ``frame.reserved`` asks for, at least, and its
        estimator knows with which probability."""
        return False

    aims: ClassVar[bool] = False
    """Whether it looks at ``frame.foreseen``, and so aims at the main measure; others draw as they always do."""

    def drawn_by(self) -> tuple[str, ...]:
        """The auxiliary variables that it names; empty where it takes those that the frame has, or none."""
        return ()

    @abstractmethod
    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        """Draw ``budget`` times (fewer where the frame is smaller), in order; of one that looks at labels before it
        goes on, the first wave."""

    def next_batch(self, frame: Frame, budget: int, sample: Sample, rng: np.random.Generator) -> Draw:
        """The draw of ``sample`` followed by the next wave; unchanged where the budget is spent or no wave follows."""
        return sample.draw

    def at_once(self) -> Self:
        """The same sampler with all draws in its first wave, for labels of which some may never come; one that draws
        in waves gives another, as the next wave would wait for them."""
        return self
