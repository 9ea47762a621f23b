"""Lives of a model exactly at the line whose trusted inputs seldom get an answer: the false-alarm bound holds."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.decisions._betting import log_growth
from opmon.decisions._bound import Bound
from opmon.decisions._watch import PRIOR
from opmon.decisions.draw_values import draw_values
from opmon.estimators import weighed
from opmon.plugins import make
from opmon.testing.designs import design_of
from opmon.testing.populations import classifier
from opmon.types import Draw, Sample

POPULATION = classifier(3000, accuracy=0.9, seed=102)
POOL, LIVES, ROUNDS = 240, 500, 100


def growth(sampler: str, rng: np.random.Generator) -> np.ndarray:
    """What a round of 100 draws multiplies every bet by; 0.6 of the trusted and 0.9 of the suspicious half answer."""
    frame, confidence = POPULATION.frame, POPULATION.frame.variables["confidence"]
    silent = rng.random(frame.size) >= np.where(confidence > np.median(confidence), 0.9, 0.6)

    def answer(draw: Draw) -> Sample:
        outcomes = np.where(silent[draw.positions], np.nan, POPULATION.outcomes[draw.positions])
        return Sample(draw, outcomes, "classification")

    chosen = make("sampler", sampler)
    sample = answer(chosen.draw(frame, 100, rng))
    while len(sample.draw) < 100:
        sample = answer(chosen.next_batch(frame, 100, sample, rng))
    sample = weighed(sample, {name: values[sample.draw.positions] for name, values in frame.variables.items()})
    return np.exp(log_growth(draw_values(sample, design_of(sample)), 1 - POPULATION.truth))


@pytest.mark.parametrize("sampler", ["adaptive", "srs"])
def test_false_alarms_keep_their_bound_where_the_trusted_seldom_answer(sampler: str) -> None:
    """0.57 (adaptive) and 0.88 (srs) of the lives alarmed with weights from drawn counts; the bound is 0.05."""
    rng, bound = np.random.default_rng(5), Bound(alpha=0.05)
    pool = np.stack([growth(sampler, rng) for _ in range(POOL)])
    capital, alarmed = np.zeros((LIVES, len(PRIOR))), np.zeros(LIVES, dtype=bool)
    for round_ in range(ROUNDS):
        capital = (capital + bound.weight(round_, None) * PRIOR) * pool[rng.integers(0, POOL, LIVES)]
        alarmed |= capital.sum(axis=1) >= 1
    assert alarmed.mean() < 0.2  # the pool is small: its own mean is a little off
