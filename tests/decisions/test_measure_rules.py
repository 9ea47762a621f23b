"""Rules on any measure: which side of the line is worse, and the bound that betting on a ratio keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import numpy as np
import pytest

from opmon.config import Settings
from opmon.decisions.case import Case
from opmon.decisions.measure_level import MeasureLevel
from opmon.decisions.measure_worse import MeasureWorse
from opmon.errors import ConfigError
from opmon.estimators.measured import measured
from opmon.measures.cost import Cost
from opmon.measures.recall import Recall
from opmon.measures.root_mean_squared_error import RootMeanSquaredError
from opmon.plugins import make
from opmon.quantities import MAE, MAPE, RECALL, Quantity
from opmon.testing.rules import check_rule
from opmon.types import Estimate, Frame, Labelled, Sample, Verdict

BIAS = Quantity("bias", "days", better="zero")
OF_FRAUD = RECALL.of("fraud")


def estimate(low: float, value: float, high: float, quantity: Quantity) -> Estimate:
    return Estimate(value, low, high, n=200, frame_size=5000, response=1.0, method="srs", quantity=quantity)


@pytest.mark.parametrize(
    ("line", "one", "state"),
    [
        (0.7, estimate(0.5, 0.6, 0.68, OF_FRAUD), "alarm"),
        (0.7, estimate(0.5, 0.6, 0.72, OF_FRAUD), "ok"),
        (3.5, estimate(3.6, 4.1, 4.8, MAE), "alarm"),
        (3.5, estimate(3.4, 4.1, 4.8, MAE), "ok"),
        (3.5, estimate(1.0, 1.2, 1.5, MAE), "ok"),
        (0.5, estimate(0.6, 0.9, 1.2, BIAS), "alarm"),
        (0.5, estimate(-1.2, -0.9, -0.6, BIAS), "alarm"),
        (0.5, estimate(-0.4, 0.9, 1.2, BIAS), "ok"),
    ],
    ids=lambda value: f"{value.quantity.name} {value.low}" if isinstance(value, Estimate) else str(value),
)
def test_the_worse_side_is_that_of_the_quantity(line: float, one: Estimate, state: str) -> None:
    verdict = MeasureWorse(line).decide([one])
    assert verdict.state == state
    assert one.quantity.text(line if one.low > -1 or one.quantity.name != "bias" else -line) in verdict.message


@pytest.mark.parametrize(
    ("one", "distance", "words"),
    [
        (estimate(-1.2, -0.9, -0.6, BIAS), 0.4, "1 round running"),
        (estimate(-1.2, -0.9, 0.1, BIAS), 0.4, "the estimate is beyond the line, but more labels are needed"),
        (estimate(-0.6, -0.2, 0.1, BIAS), -0.3, "the interval still holds the line"),
        (estimate(-0.3, -0.2, 0.1, BIAS), -0.3, "0.50 days below the line of 0.5 days"),
    ],
)
def test_how_far_a_bias_is_from_the_line_is_how_much_farther_from_0(one: Estimate, distance: float, words: str) -> None:
    verdict = MeasureWorse(0.5).decide([one])
    assert verdict.details["distance"] == pytest.approx(distance)
    assert words in verdict.message


def test_an_error_above_the_line_is_told_in_its_unit() -> None:
    told = MeasureWorse(3.5).decide([estimate(3.6, 4.1, 4.8, MAE.measured_in("days"))]).message
    assert told.startswith("MAE 4.1 days (95 % interval 3.6 to 4.8")
    assert "the interval's lower end is 0.1 days above the line of 3.5 days, 1 round running" in told


def test_how_far_it_is_from_the_line_has_as_many_digits_as_the_interval() -> None:
    told = MeasureWorse(5.0).decide([estimate(3.1036, 4.4, 5.5, MAE.measured_in("days"))]).message
    assert "interval 3.1 to 5.5" in told
    assert "the interval's lower end is 1.9 days below the line of 5 days" in told
    near = MeasureWorse(3.1).decide([estimate(3.1036, 4.4, 5.5, MAE.measured_in("days"))]).message
    assert "the interval's lower end is 0.0036 days above the line" in near


COST = Cost({"fraud": {"ok": 100.0}, "ok": {"fraud": 5.0}}, unit="EUR")
RARE, BUDGET, INPUTS = 0.1, 150, 5000
SRS, SUPS = {"type": "srs"}, {"type": "sups", "variable": "guess"}


def life(measure: Any, caught: float, rounds: int, seed: int, sampler: dict[str, str] = SRS) -> Iterator[Case]:
    """Rounds of a model that finds so many of the fraudulent inputs; of the samplers one follows a guess of them."""
    parameters = {name: value for name, value in sampler.items() if name != "type"}
    chosen, design = make("sampler", sampler["type"], parameters), cast(Any, make("estimator", sampler["type"]))
    rng = np.random.default_rng(seed)
    for number in range(1, rounds + 1):
        truth = np.where(rng.random(INPUTS) < RARE, "fraud", "ok")
        said = np.where((truth == "fraud") & (rng.random(INPUTS) < caught), "fraud", "ok")
        guess = np.where(truth == "fraud", 3.0, 1.0) * rng.uniform(0.5, 1.5, INPUTS)
        draw = chosen.draw(Frame({"guess": guess}), BUDGET, rng)
        at = draw.positions
        sample = Sample(draw, (truth != said)[at].astype(float), "classification")
        rows = Labelled(np.ones(BUDGET, bool), truth[at], said[at], None, ("ok", "fraud"))
        one = measured(design, sample, rows, measure)
        yield Case(number, (one,), sample, design, elapsed=timedelta(hours=1), measure=measure, rows=rows)


def judged(rule: MeasureLevel, cases: Iterator[Case]) -> list[Verdict]:
    found: list[Verdict] = []
    for case in cases:
        before = json.loads(json.dumps(dict(found[-1].details))) if found else {}
        found.append(rule.judge(replace(case, before=before)))
    return found


@pytest.mark.parametrize(
    ("rule", "measure", "good", "bad"),
    [
        (MeasureLevel(0.7), Recall("fraud"), 0.8, 0.4),
        (MeasureLevel(3.0), COST, 0.75, 0.3),  # a miss costs 100: with 10 % fraud a cost of 2.5, and of 7
    ],
    ids=["recall", "cost"],
)
def test_an_alarm_is_for_what_is_worse_and_ends_by_evidence(
    rule: MeasureLevel, measure: Any, good: float, bad: float
) -> None:
    assert {verdict.state for verdict in judged(rule, life(measure, good, 8, 1))} == {"ok"}
    cases = [*life(measure, bad, 8, 2), *(replace(case, number=case.number + 8) for case in life(measure, 1.0, 25, 3))]
    states = [verdict.state for verdict in judged(rule, iter(cases))]
    assert states[7] == "alarm"
    assert states[-1] == "ok"


def days(rmse: float, rounds: int, seed: int) -> Iterator[Case]:
    """Rounds of a forecaster that is off by so many days, in the root of the mean square."""
    rng = np.random.default_rng(seed)
    design = cast(Any, make("estimator", "srs"))
    for number in range(1, rounds + 1):
        truth = rng.normal(10, 5, INPUTS)
        said = truth + rng.normal(0, rmse, INPUTS)
        draw = make("sampler", "srs").draw(Frame({"guess": np.ones(INPUTS)}), BUDGET, rng)
        at = draw.positions
        sample = Sample(draw, (truth - said)[at] ** 2, "regression")
        rows = Labelled(np.ones(BUDGET, bool), truth[at], said[at], None, ())
        one = measured(design, sample, rows, RootMeanSquaredError(), "days")
        yield Case(
            number, (one,), sample, design, elapsed=timedelta(hours=1), measure=RootMeanSquaredError(), rows=rows
        )


def test_a_line_of_a_root_mean_squared_error_is_held_against_the_root() -> None:
    """Off by 5 days is 25 days²: it is better than a line of 9 days, and 12 days is worse."""
    rule = MeasureLevel(9.0)
    assert {verdict.state for verdict in judged(rule, days(5.0, 6, 1))} == {"ok"}
    assert judged(rule, days(12.0, 6, 2))[-1].state == "alarm"


def test_how_far_percentages_are_from_a_line_are_points() -> None:
    told = MeasureWorse(10.0).decide([estimate(12.0, 16.0, 21.0, MAPE)]).message
    assert "the interval's lower end is 2 points above the line of 10 %" in told


@pytest.mark.parametrize("sampler", [SRS, SUPS], ids=lambda each: each["type"])
def test_a_model_at_the_line_alarms_as_seldom_as_is_promised(sampler: dict[str, str]) -> None:
    lives = 50
    rule = MeasureLevel(0.7, alpha=0.2)
    alarmed = sum(
        any(verdict.state == "alarm" for verdict in judged(rule, life(Recall("fraud"), 0.7, 5, 1000 + one, sampler)))
        for one in range(lives)
    )
    assert alarmed <= 0.2 * lives + 3 * math.sqrt(0.2 * 0.8 * lives)


def test_what_a_rule_keeps_is_read_with_its_quantity() -> None:
    rule = MeasureLevel(3.0)
    (case,) = life(COST, 0.5, 1, 5)
    first = rule.judge(case)
    again = rule.restate({}, json.loads(json.dumps(dict(first.details))))
    assert again is not None
    assert again.message == first.message
    assert "EUR" in first.message


@pytest.mark.parametrize("kind", ["measure_level", "measure_worse"])
def test_they_keep_the_contract_of_rules(kind: str) -> None:
    check_rule(make("rule", kind, {"threshold": 0.9}))


RULES = [{"recall": {"class": "fraud"}}, {"auc": {"class": "fraud"}}, "confusion_matrix"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rules": [{"type": "measure_level", "threshold": 0.7, "of": "auc"}]}, r"is no ratio .* use measure_worse"),
        (
            {"rules": [{"type": "measure_worse", "threshold": 0.7, "of": "f1"}]},
            r"watches 'f1'.*is none of the measures",
        ),
        ({"rules": [{"type": "measure_worse", "threshold": 0.7, "of": "confusion_matrix"}]}, r"needs one number"),
        ({"rules": [{"type": "measure_level", "threshold": 1.4, "of": "recall"}]}, r"must lie between 0 and 1"),
        (
            {"main": "recall", "rules": [{"type": "accuracy_level", "threshold": 0.9}]},
            r"accuracy_level watches 'accuracy'.*they are: recall\[fraud\].*measure_level and measure_worse watch the",
        ),
    ],
    ids=["no ratio", "not measured", "a table", "no such line", "accuracy is not measured"],
)
def test_rules_that_cannot_watch_are_refused_when_read(changes: dict[str, Any], words: str) -> None:
    base = {"model": "models:/m/1", "source": {"path": "in/"}, "classes": ["ok", "fraud"], "measures": RULES}
    with pytest.raises(ConfigError, match=words):
        Settings.from_mapping({"monitors": {"m": base | changes}}, "/watch")


SHARES = [
    {"recall": {"class": "fraud"}},
    {"auc": {"class": "fraud"}},
    "calibration_error",
    {"f1": {"average": "macro"}},
]
ERRORS = ["mean_absolute_error", "bias", "r_squared", {"within_tolerance": {"tolerance": 2}}, "root_mean_squared_error"]


@pytest.mark.parametrize(
    ("of", "line", "words"),
    [
        ("recall", 90, r"must lie between 0 and 1, as recall\[fraud\] does; got 90: 90 % is 0.9"),
        ("recall", -1, r"must lie between 0 and 1"),
        ("auc", 1.5, r"must lie between 0 and 1, as AUC\[fraud\] does; got 1.5$"),
        ("calibration_error", 5, r"5 % is 0.05"),
        ("f1", 70, r"70 % is 0.7"),
        ("r_squared", 90, r"must be 1 or less, as R² is; got 90"),
        ("mean_absolute_error", -2, r"must be 0 or more, as MAE is; got -2"),
        ("root_mean_squared_error", -2, r"must be 0 or more, as RMSE is"),
        ("bias", -2, r"how far bias may be from 0, on either side, so at least 0; got -2"),
        ("within_tolerance", 95, r"share within 2 days does; got 95: 95 % is 0.95"),
    ],
)
def test_a_line_that_a_measure_never_crosses_or_always_is_refused(of: str, line: float, words: str) -> None:
    """It would alarm for ever, or never."""
    base = {"model": "models:/m/1", "source": {"path": "in/"}, "classes": ["ok", "fraud"], "measures": SHARES}
    numbers = any(of in each for each in ERRORS)
    if numbers:
        base |= {"classes": None, "problem": "regression", "unit": "days", "sampler": {"type": "srs"}}
        base |= {"measures": ERRORS}
    rule = {"type": "measure_worse", "threshold": line, "of": of}
    with pytest.raises(ConfigError, match=words):
        Settings.from_mapping({"monitors": {"m": base | {"rules": [rule]}}}, "/watch")


def test_an_end_that_is_the_line_is_on_it() -> None:
    told = MeasureWorse(0.7).decide([estimate(0.5, 0.6, 0.7, OF_FRAUD)]).message
    assert "the interval's upper end is on the line of 70 %" in told
    near = MeasureWorse(0.7, certainty="estimate").decide([estimate(0.5, 0.7 + 1e-15, 0.8, OF_FRAUD)]).message
    assert "the estimate is on the line of 70 %" in near
    just = MeasureWorse(0.7).decide([estimate(0.5, 0.6, 0.70004, OF_FRAUD)]).message
    assert "the interval's upper end is 0.004 points above the line" in just


def test_one_is_counted_as_one() -> None:
    single = replace(estimate(0.0, 1.0, 1.0, OF_FRAUD), n=1, frame_size=1)
    assert "from 1 draw of 1 input, 100 % answered" in MeasureWorse(0.7).decide([single]).message
