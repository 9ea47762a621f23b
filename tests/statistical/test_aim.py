"""Draws that aim at a measure: nearer to the truth than simple random sampling, and intervals that cover."""

from __future__ import annotations

from scipy import stats

from opmon.measures.mean_absolute_error import MeanAbsoluteError
from tests.benchmarks.aim import of_costs, of_errors, simulated
from tests.benchmarks.aiming import compared, of_rare, rare

REPETITIONS = 24
LEAST = stats.binom.ppf(0.0005, REPETITIONS, 0.93) / REPETITIONS


def test_recall_of_a_rare_class_is_looked_for_where_it_may_be() -> None:
    lines = {line.measure: line for line in compared(rare(12_000, 4), of_rare()[0], of_rare(), 300, REPETITIONS)}
    recall, precision, f1 = (lines[measure.quantity().name] for measure in of_rare())
    assert recall.error_ratio < 0.65
    assert f1.error_ratio < 0.7
    assert precision.error_ratio < 1
    assert [line for line in lines.values() if line.coverage < LEAST] == []


def test_costs_and_absolute_errors_are_looked_for_where_they_vary() -> None:
    errors, classes = of_errors("told well", 1, 0.9), simulated("simulated", 1)
    for population, measure in ((errors, MeanAbsoluteError()), (classes, of_costs(classes.classes))):
        [line] = compared(population, measure, [measure], 300, REPETITIONS)
        assert line.error_ratio < 1
        assert line.coverage >= LEAST
