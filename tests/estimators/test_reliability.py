from __future__ import annotations

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


def test_scores_are_needed() -> None:
    bare = Labelled(ROWS.answered, ROWS.truth, ROWS.predicted, None, ROWS.classes)
    with pytest.raises(InputError, match="needs scores, and none of the 600 draws has any"):
        reliability(SimpleRandomEstimator(), SAMPLE, bare)
