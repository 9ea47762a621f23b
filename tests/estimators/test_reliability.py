from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.estimators.reliability import reliability
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Draw, Labelled, Sample

RNG = np.random.default_rng(6)
SURE = RNG.uniform(0.5, 1, 600)
TRUTH = np.where(RNG.random(600) < SURE - 0.15, "a", "b")
ROWS = Labelled(np.ones(600, dtype=bool), TRUTH, np.full(600, "a"), np.column_stack((SURE, 1 - SURE)), ("a", "b"))
SAMPLE = Sample(Draw("srs", 10_000, np.arange(600), constants={"replacement": np.array(True)}), np.zeros(600))


def test_each_bin_has_its_confidence_and_its_accuracy() -> None:
    bins = reliability(SimpleRandomEstimator(), SAMPLE, ROWS)
    assert [one.begins for one in bins] == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9])
    assert sum(one.share for one in bins) == pytest.approx(1)
    assert sum(one.answers for one in bins) == 600
    for one in bins:
        inside = (one.begins <= SURE) & (one.ends > SURE)
        assert one.confidence == pytest.approx(SURE[inside].mean())
        assert one.accuracy == pytest.approx((TRUTH[inside] == "a").mean())
        assert one.low < one.accuracy < one.high
        assert one.low < one.confidence - 0.15 < one.high


def test_answers_weigh_by_how_likely_they_were() -> None:
    """Nine in ten of the unsure inputs were answered, and three in ten of the sure ones."""
    answered = RNG.random(600) < np.where(SURE < 0.75, 0.9, 0.3)
    outcomes = np.where(answered, (TRUTH != "a").astype(float), np.nan)
    propensity = np.where(SURE < 0.75, 0.9, 0.3)
    sample = Sample(SAMPLE.draw, outcomes, "classification", propensity)
    rows = Labelled(answered, np.where(answered, TRUTH, ""), ROWS.predicted, ROWS.scores, ROWS.classes)
    sure = [one.share for one in reliability(SimpleRandomEstimator(), sample, rows) if one.begins >= 0.8]
    plain = [one.share for one in reliability(SimpleRandomEstimator(), replace(sample, propensity=None), rows)][3:]
    assert sum(sure) == pytest.approx(0.4, abs=0.05)
    assert sum(plain) < 0.3


def test_scores_are_needed() -> None:
    bare = Labelled(ROWS.answered, ROWS.truth, ROWS.predicted, None, ROWS.classes)
    with pytest.raises(InputError, match="needs scores, and none of the 600 draws has any"):
        reliability(SimpleRandomEstimator(), SAMPLE, bare)
