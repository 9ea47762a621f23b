"""Truths that came before annotators were asked stand for themselves, annotators for all that they were asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opmon.adjudication import TRUTH, Asked
from opmon.estimators import SimpleRandomEstimator
from opmon.stages.lags import asked_for_the_rest, waits_alone
from opmon.types import Draw, Label, Sample

ASKED = datetime(2026, 3, 8, tzinfo=UTC)


def task(position: int, *said: tuple[str, int]) -> Asked:
    labels = tuple(Label(position, who, "1", ASKED + timedelta(days=days)) for who, days in said)
    return Asked(position, str(position), "1", {}, {}, position, labels)


def world() -> tuple[list[Asked], Sample]:
    """Six truths came before; of four that were asked for, two annotators and one late truth answered."""
    tasks = [task(k, (TRUTH, -1)) for k in range(6)]
    tasks += [task(6, ("ann", 1)), task(7, ("ann", 1)), task(8, (TRUTH, 2)), task(9)]
    draw = Draw("srs", 1000, np.arange(10), constants={"replacement": np.array(False)})
    outcomes = np.array([0.0] * 6 + [1.0, 1.0, 1.0, np.nan])
    return tasks, Sample(draw, outcomes, "classification")


def test_what_was_asked_for_stands_for_all_that_was() -> None:
    tasks, sample = world()
    round_: Any = SimpleNamespace(asks_at=ASKED)
    found = asked_for_the_rest(round_, tasks, sample)
    assert found is not None
    assert found.propensity.tolist() == [1.0] * 6 + [0.75] * 4
    assert SimpleRandomEstimator().estimate(found).value == pytest.approx(0.6)


def test_nothing_is_weighed_where_nobody_was_asked_or_all_is_known() -> None:
    tasks, sample = world()
    never: Any = SimpleNamespace(asks_at=None)
    asked: Any = SimpleNamespace(asks_at=ASKED)
    whole = Sample(sample.draw, np.nan_to_num(sample.outcomes), "classification")
    assert asked_for_the_rest(never, tasks, sample) is None
    assert asked_for_the_rest(asked, tasks, whole) is None
    assert waits_alone([*tasks[:6], tasks[9]])
    assert not waits_alone(tasks)
