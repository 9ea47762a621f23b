"""One to three answers are no census, and the smallest of them bounds nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opmon import plugins
from opmon.errors import InputError
from opmon.estimators.gbs import GradientBasedEstimator
from opmon.estimators.measured import measured
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Draw, Labelled, Sample

MEASURES: dict[str, dict[str, Any]] = {
    "auc": {},
    "brier": {},
    "log_loss": {},
    "calibration_error": {},
    "cost": {"matrix": {"a": {"b": 5.0}, "b": {"a": 1.0}}},
    "r_squared": {},
    "error_quantile": {"share": 0.9},
}
NUMBERS = ("r_squared", "error_quantile")


def srs(count: int, size: int) -> Draw:
    return Draw("srs", size, np.arange(count), constants={"replacement": np.array(False)})


def rows_of(answered: np.ndarray[Any, np.dtype[np.bool_]], of_numbers: bool, rng: np.random.Generator) -> Labelled:
    count = len(answered)
    if of_numbers:
        truth = rng.normal(size=count)
        return Labelled(answered, np.where(answered, truth, np.nan), truth + rng.normal(size=count), None, ())
    sure = rng.uniform(0.55, 1, count)
    truth = np.where(np.arange(count) % 2 == 0, "a", "b")
    return Labelled(
        answered,
        np.where(answered, truth, ""),
        np.full(count, "a"),
        np.column_stack((sure, 1 - sure)).astype(np.float32),
        ("a", "b"),
    )


@pytest.mark.parametrize("heard", [1, 2, 3])
@pytest.mark.parametrize("kind", MEASURES)
def test_an_interval_of_few_answers_has_a_width(kind: str, heard: int) -> None:
    rng, answered = np.random.default_rng(5), np.arange(20) < heard
    sample = Sample(
        srs(20, 1000), np.where(answered, 0.0, np.nan), "regression" if kind in NUMBERS else "classification"
    )
    rows, measure = rows_of(answered, kind in NUMBERS, rng), plugins.make("measure", kind, MEASURES[kind])
    try:
        found = measured(SimpleRandomEstimator(), sample, rows, measure)
    except InputError:
        return  # so few do not define it
    assert found.low < found.high


@pytest.mark.parametrize("kind", MEASURES)
def test_a_frame_that_was_drawn_whole_has_none(kind: str) -> None:
    rng, answered = np.random.default_rng(5), np.ones(40, dtype=bool)
    sample = Sample(srs(40, 40), np.zeros(40), "regression" if kind in NUMBERS else "classification")
    rows = rows_of(answered, kind in NUMBERS, rng)
    found = measured(SimpleRandomEstimator(), sample, rows, plugins.make("measure", kind, MEASURES[kind]))
    assert found.low == found.value == found.high


@pytest.mark.parametrize(("count", "share"), [(30, 0.05), (50, 0.05), (20, 0.1), (100, 0.1)])
def test_a_low_quantile_is_bounded_below_only_where_enough_answers_lie_below_it(count: int, share: float) -> None:
    """Too high a lower bound in at most one of 40 samples, within noise."""
    rng, measure = np.random.default_rng(8), plugins.make("measure", "error_quantile", {"share": share, "signed": True})
    errors = rng.normal(size=20_000)
    true, missed, notes = float(np.quantile(errors, share)), 0, set[str]()
    for _ in range(200):
        positions = rng.choice(20_000, count, replace=False)
        draw = Draw("srs", 20_000, positions, constants={"replacement": np.array(False)})
        own = errors[positions]
        rows = Labelled(np.ones(count, dtype=bool), np.zeros(count), own, None, ())
        found = measured(SimpleRandomEstimator(), Sample(draw, own**2, "regression"), rows, measure)
        missed += found.low > true
        if found.low == -np.inf:
            notes.update(found.notes)
    assert missed <= 200 / 40 + 3 * (200 * 0.025) ** 0.5
    assert count > 50 or any("begins at the least value there may be" in note for note in notes)


@pytest.mark.parametrize("others", [False, True])
def test_strata_that_were_drawn_whole_tell_what_they_hold_while_others_are_silent(others: bool) -> None:
    """An outlier has a stratum of its own; its answer may come first."""
    sizes = np.array([500, 499, 1])
    columns = {"stratum": np.array([0, 0, 1, 1, 2]), "wave": np.zeros(5, dtype=np.int64)}
    draw = Draw("gbs", 1000, np.arange(5), columns=columns, constants={"stratum_size": sizes})
    outcomes = np.array([1.0, 2.0, 1.5, np.nan, 40.0] if others else [np.nan] * 4 + [40.0])
    found = GradientBasedEstimator().estimate(Sample(draw, outcomes, "regression"))
    assert found.low <= found.value <= found.high
    assert found.response == (0.8 if others else 0.2)
    assert others or "have no answer" in " ".join(found.notes)
