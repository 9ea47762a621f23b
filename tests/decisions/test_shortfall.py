"""What the predictions of a frame allow, and the bets on it: by hand, at the line, and below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from opmon.abc import Measure, Ratio
from opmon.decisions._shortfall import Shortfall, Surplus, shortfall, standing_for
from opmon.decisions._watch import Growth
from opmon.decisions.measure_level import MeasureLevel
from opmon.errors import PluginError
from opmon.measures.cost import Cost
from opmon.measures.recall import Recall
from opmon.types import Draw, Labelled, Sample
from tests.benchmarks.measure_lives import COST, Population, alarms, bare, drawn, growth, searched

RECALL = Recall("fraud")
SAID = np.array(["fraud", "ok", "fraud", "ok"])
ROWS = Labelled(np.ones(4, bool), np.array(["fraud", "fraud", "ok", "ok"]), SAID, None, ("ok", "fraud"))
DRAW = Draw("srs", 100, np.arange(4), constants={"replacement": np.array(False)}).with_predicted(
    {"ok": 90, "fraud": 10}
)
EVERY = np.ones(4, dtype=np.bool_)


def over(line: float, sign: float = -1.0) -> Surplus:
    return lambda ratio: np.asarray(sign * (ratio.numerator - line * ratio.denominator))


def found(measure: Measure, of: Surplus, draw: Draw = DRAW) -> Shortfall:
    known = shortfall(measure, ROWS, draw, EVERY, of)
    assert known is not None
    return known


def test_a_recall_falls_short_by_what_is_wrongly_said_and_what_is_missed() -> None:
    known = found(RECALL, over(0.6))
    assert known.losses == pytest.approx([0, 0.6, 0.4, 0])
    assert known.line == pytest.approx(0.4 * 10 / 100)


def test_a_cost_falls_short_by_what_it_costs_beyond_the_best() -> None:
    matrix = {"fraud": {"ok": 100.0, "fraud": -7.0}, "ok": {"fraud": 5.0}}
    known = found(Cost(matrix), over(3.0, 1.0))
    assert known.losses == pytest.approx([0, 100, 12, 0])
    assert known.line == pytest.approx(3 + 7 * 10 / 100)


@pytest.mark.parametrize(
    "draw",
    [replace(DRAW, constants={}), DRAW.with_predicted({"ok": 90, "fraud": 9}), DRAW.with_predicted({"ok": 100})],
    ids=["an older draw", "not of this frame", "a class that is not there"],
)
def test_nothing_is_known_where_the_frame_is_not(draw: Draw) -> None:
    assert shortfall(RECALL, ROWS, draw, EVERY, over(0.6)) is None


class Careless(Recall):
    """A recall that says that its class is never found."""

    def possible(self, rows: Labelled) -> Sequence[Ratio]:
        return [Ratio(np.zeros(len(rows)), np.ones(len(rows)))]


def test_a_measure_that_leaves_out_a_value_is_refused() -> None:
    with pytest.raises(PluginError, match=r"possible\(\) of Careless leaves out"):
        shortfall(Careless("fraud"), ROWS, DRAW, EVERY, over(0.6))


def test_answers_stand_for_the_draws_that_are_predicted_alike() -> None:
    """Of the draws that are predicted as fraud half are answered; each answer stands for two."""
    said = np.array(["fraud"] * 4 + ["ok"] * 6)
    usable = np.array([True, False, True, False] + [True] * 6)
    sample = Sample(Draw("srs", 100, np.arange(10)), np.where(usable, 0.0, np.nan))
    standing = standing_for(sample, said, usable)
    assert standing is not None
    assert standing.propensity == pytest.approx([0.5] * 4 + [1.0] * 6)
    assert standing_for(sample, said, usable & (said == "ok")) is None


def growths(samples: Sequence[Sample], population: Population, measure: Measure, line: float) -> list[Growth]:
    return [growth(MeasureLevel(line), population, measure, each) for each in samples]


@pytest.mark.parametrize("measure", [RECALL, COST], ids=["recall", "cost"])
def test_at_the_line_no_bet_grows_and_below_it_the_alarm_is_soon(measure: Measure) -> None:
    """A recall of 0.2 of 2 % positives, or what that costs, at its own value and at the line of one that was better."""
    population = searched(0.02, 0.2, 3.0, 8000)
    at = population.true(measure)
    line = 0.6 if measure is RECALL else 0.5 * at
    rng = np.random.default_rng(11)
    samples = [drawn(population, measure, True, 300, rng) for _ in range(120)]
    healthy, now = growths(samples, population, measure, at), growths(samples, population, measure, line)
    before = growths([bare(each) for each in samples], population, measure, line)
    values = np.exp(np.stack([each.alarm for each in healthy]))
    assert (values.mean(axis=0) <= 1 + 3.5 * values.std(axis=0, ddof=1) / math.sqrt(len(values))).all()
    lives = 150
    assert (alarms(healthy, lives, 40, rng) <= 40).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / lives)
    late, slow = (float(alarms(each, lives, 40, rng).mean()) for each in (now, before))
    assert late < slow
    if measure is RECALL:
        assert late <= 2 < 5 <= slow
