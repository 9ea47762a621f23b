"""Draws that aim at a measure: nearer to the truth than simple random sampling, and intervals that cover."""

from __future__ import annotations

from scipy import stats

from tests.benchmarks.aiming import compared, of_rare, rare

REPETITIONS = 40


def test_recall_of_a_rare_class_is_looked_for_where_it_may_be() -> None:
    lines = {line.measure: line for line in compared(rare(12_000, 4), of_rare()[0], of_rare(), 300, REPETITIONS)}
    recall, precision, f1 = (lines[measure.quantity().name] for measure in of_rare())
    assert recall.error_ratio < 0.6
    assert f1.error_ratio < 0.65
    assert precision.error_ratio < 0.9
    least = stats.binom.ppf(0.0005, REPETITIONS, 0.93) / REPETITIONS
    assert [line for line in lines.values() if line.coverage < least] == []
