"""What the predictions of a frame allow, and the bets on it: by hand, at the line, and below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import Measure, Ratio
from opmon.decisions._own import Own
from opmon.decisions._shortfall import Shortfall, Surplus, shortfall, standing_for
from opmon.decisions._watch import Growth
from opmon.decisions.case import Case
from opmon.decisions.measure_level import MeasureLevel
from opmon.errors import PluginError
from opmon.measures.cost import Cost
from opmon.measures.recall import Recall
from opmon.types import Draw, Estimate, Frame, Labelled, Sample
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


def errors(samples: int, worse: float, rng: np.random.Generator) -> tuple[list[tuple[Sample, Labelled]], float]:
    """Rounds of 100 draws by a variable that foretells skew errors, and the MAE of the frame."""
    size = 3000
    hard = np.exp(rng.normal(size=size))
    off = worse * hard * rng.exponential(size=size)
    frame, sampler = Frame({"risk": hard.astype(np.float32)}), plugins.make("sampler", "sups", {"variable": "risk"})
    found = []
    for _ in range(samples):
        draw = sampler.draw(frame, 100, rng)
        truth = off[draw.positions]
        rows = Labelled(np.ones(100, bool), truth, np.zeros(100))
        found.append((Sample(draw, truth**2, "regression"), rows))
    return found, float(off.mean())


def of_errors(rounds: Sequence[tuple[Sample, Labelled]], line: float, *, held_back: bool = False) -> list[Growth]:
    measure, design = plugins.make("measure", "mean_absolute_error"), plugins.make("estimator", "sups")
    nothing = Estimate(0.0, 0.0, 1.0, n=1, frame_size=1, response=1.0, method="none", quantity=measure.quantity())
    grown = []
    for sample, rows in rounds:
        with pytest.MonkeyPatch.context() as patch:
            if held_back:
                patch.setattr(MeasureLevel, "_is_mean", staticmethod(lambda *_: False))
            verdict = MeasureLevel(line).judge(Case(1, (nothing,), sample, design, measure=measure, rows=rows))
        own = Own.of(verdict.details)
        assert own is not None
        grown.append(own.growth)
    return grown


def test_a_mean_of_errors_is_bet_on_whatever_the_draws_weigh() -> None:
    """No bet grows at the line; below it the alarm comes sooner than where the heaviest draw holds bets back."""
    rng = np.random.default_rng(5)
    healthy, at = errors(300, 1.0, rng)
    values = np.exp(np.stack([each.alarm for each in of_errors(healthy, at)]))
    assert (values.mean(axis=0) <= 1 + 3.5 * values.std(axis=0, ddof=1) / math.sqrt(len(values))).all()
    lives = 200
    false = (alarms(of_errors(healthy, at), lives, 40, rng) <= 40).mean()
    assert false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / lives)
    worse, now = errors(80, 1.3, rng)
    line = now / 1.3
    late, slow = (
        float(alarms(of_errors(worse, line, held_back=back), lives, 60, rng).mean()) for back in (False, True)
    )
    assert late < 0.8 * slow
