"""Frames with known truth, for tests and simulations of samplers and estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.types import Draw, Frame, Sample


@dataclass(frozen=True, eq=False)
class Population:
    """A frame together with the outcome of every input: what nobody knows in production."""

    frame: Frame
    outcomes: NDArray[np.float64]

    @property
    def truth(self) -> float:
        """The value that an estimate should hit: a classifier's accuracy, a regressor's mean squared error."""
        mean = float(self.outcomes.mean())
        return 1 - mean if np.isin(self.outcomes, (0.0, 1.0)).all() else mean

    def answer(self, draw: Draw, response: float = 1.0, rng: np.random.Generator | None = None) -> Sample:
        """The draw with its outcomes; a share ``1 − response`` of the inputs, chosen by ``rng``, stays silent."""
        outcomes = self.outcomes[draw.positions].copy()
        if response < 1:
            silent = (rng or np.random.default_rng(0)).random(self.frame.size) >= response
            outcomes[silent[draw.positions]] = np.nan
        return Sample(draw, outcomes)


def classifier(
    size: int = 2000, accuracy: float = 0.8, informative: float = 1.0, seed: int = 0, activations: int = 0
) -> Population:
    """A classifier right on ``accuracy`` of its inputs.

    ``confidence`` (1 − confidence of the model) is skewed towards 0, as an overconfident model's is; the log-odds of
    a failure grow with its logit by ``informative`` (0: the variable says nothing). ``dsa`` is a second, noisier
    variable. With ``activations`` there are that many neurons that follow the difficulty of the input.
    """
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=size)
    confidence = 0.9 / (1 + np.exp(-(3 * difficulty - 2.5 + rng.normal(size=size))))
    score = informative * 1.5 * difficulty + rng.logistic(size=size)
    outcomes = np.zeros(size)
    outcomes[np.argsort(-score)[: round((1 - accuracy) * size)]] = 1.0
    dsa = np.exp(0.4 * difficulty + 0.5 * rng.normal(size=size))
    neurons = difficulty[:, None] * rng.normal(size=activations) + rng.normal(size=(size, activations))
    variables = {"confidence": confidence.astype(np.float32), "dsa": (dsa / dsa.max()).astype(np.float32)}
    predictions = rng.integers(0, 10, size)
    return Population(Frame(variables, predictions=predictions, activations=neurons if activations else None), outcomes)


def regressor(size: int = 2000, seed: int = 0, activations: int = 0) -> Population:
    """A regressor whose squared errors are skewed and grow with the variable ``sae``."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=size)
    outcomes = (0.2 * np.exp(0.6 * difficulty) * rng.normal(size=size)) ** 2
    sae = np.exp(0.5 * difficulty + 0.3 * rng.normal(size=size))
    neurons = difficulty[:, None] * rng.normal(size=activations) + rng.normal(size=(size, activations))
    variables = {"sae": sae.astype(np.float32), "confidence": (sae / sae.max()).astype(np.float32)}
    return Population(Frame(variables, activations=neurons if activations else None), outcomes)
