"""A proxy learned from the labels of earlier rounds: how likely the model is wrong, from the auxiliary variables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from opmon.estimators.proxies import CHUNK, Quantiles, design_of, fitted, guessed
from opmon.types import Floats, Numbers

ENOUGH, FAILURES = 50, 5
"""With fewer labels, or fewer failures among them, nothing is learned."""


def learned(
    old: Mapping[str, Numbers], outcomes: Floats, frame: Mapping[str, Numbers], *, binary: bool
) -> Floats | None:
    """A guess for every input of a frame, by ridge regression (logistic for a classifier) on the quantiles of the
    variables of labelled inputs of rounds before; None where these are too few.

    It is fixed before this frame's draw, because it looks at none of its labels.
    """
    names = [name for name in frame if name in old and np.isfinite(old[name]).all()]
    few = len(outcomes) < ENOUGH or (outcomes > 0).sum() < FAILURES
    if few or not names:
        return None
    scales = {name: Quantiles.of(frame[name]) for name in names}
    size = len(frame[names[0]])
    everything = slice(0, len(outcomes))
    weights = fitted(design_of({name: old[name] for name in names}, scales, everything), outcomes, binary)
    guesses = np.empty(size)
    for start in range(0, size, CHUNK):
        part = slice(start, min(start + CHUNK, size))
        guesses[part] = guessed(design_of({name: frame[name] for name in names}, scales, part), weights, binary)
    return guesses
