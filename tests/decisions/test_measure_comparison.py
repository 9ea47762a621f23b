"""What is said of two versions by a measure of their own."""

from __future__ import annotations

from opmon.decisions.measure_comparison import MeasureComparison
from opmon.quantities import PASS_RATE


def test_versions_that_answered_other_inputs_are_compared_with_that_said() -> None:
    found = MeasureComparison(PASS_RATE, 0.8, 0.9, 0.1, 0.02, 0.18, labels=160, differing=None, rounds=2, alpha=0.05)
    text = found.words("v1", "v2")
    assert "The pass rate of v2 is 90 %, of v1 80 %" in text
    assert "each version answered other inputs, and those of one may have been easier" in text
    assert "v2 is better" in text
