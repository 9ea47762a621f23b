"""A log that is a sample of the traffic: what is taken on of it speaks of all."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opmon.errors import SourceError
from opmon.jobs.thinning import Thinning, accepted, probabilities
from opmon.store import rounds
from opmon.types import Slice
from tests.conftest import Workbench

PIECE = Slice("a.parquet", "0", "9", 100_000, datetime(2026, 3, 1, tzinfo=UTC))


def test_the_lot_is_the_same_however_rows_are_read() -> None:
    given = np.random.default_rng(3).choice([0.1, 0.5, 1.0], 1000)
    whole = accepted(given, 0.1, PIECE, 0)
    cuts = [0, 1, 7, 100, 101, 640, 1000]
    pieces = [accepted(given[a:b], 0.1, PIECE, a) for a, b in itertools.pairwise(cuts)]
    assert np.concatenate(pieces).tolist() == whole.tolist()
    other = Slice("b.parquet", "0", "9", 1000, PIECE.arrived_at)
    assert accepted(given, 0.1, other, 0).tolist() != whole.tolist()


def test_every_input_of_the_traffic_has_the_same_chance() -> None:
    rng = np.random.default_rng(5)
    wrong = rng.random(100_000) < 0.1
    logged_with = np.where(wrong, 0.9, 0.15)  # what the model is unsure of is logged more often
    logged = rng.random(100_000) < logged_with
    taken = accepted(logged_with[logged], 0.15, PIECE, 0)
    share = wrong[logged][taken].mean()
    assert wrong[logged].mean() > 0.35, "as it is logged it misleads"
    assert abs(share - wrong.mean()) < 4 * np.sqrt(0.09 / taken.sum())
    assert abs(taken.sum() - 15_000) < 4 * np.sqrt(15_000)


def test_rows_that_were_logged_alike_are_all_taken() -> None:
    assert accepted(np.full(10, 0.2), 0.2, PIECE, 3).all()
    rows = pa.RecordBatch.from_pydict({"x": [1, 2]})
    all_fit = np.ones(2, bool)
    assert (
        Thinning("inclusion", 0.5).mask(rows, PIECE, 0, all_fit).tolist()
        == accepted(np.ones(2), 0.5, PIECE, 0).tolist()
    )


@pytest.mark.parametrize("values", [[0.5, 0.0], [0.5, 1.5], [float("nan"), 0.5], [-1.0, 0.5], ["often", None]])
def test_what_is_no_probability_is_told(values: list[Any]) -> None:
    with pytest.raises(SourceError, match="probability"):
        probabilities(pa.RecordBatch.from_pydict({"p": values}), "p", np.ones(2, bool))


def test_rows_that_are_no_inputs_may_say_what_is_no_probability() -> None:
    rows = pa.RecordBatch.from_pydict({"p": [0.5, 0.0, float("nan"), 1.0]})
    fits = np.array([True, False, False, True])
    assert probabilities(rows, "p", fits).tolist() == [0.5, 1, 1, 1]
    assert not Thinning("p", 0.5).mask(rows, PIECE, 0, fits)[1:3].any()


def test_a_round_of_a_sampled_log_is_of_the_traffic(workbench: Workbench, database: str) -> None:
    given = [0.25 if k % 2 else 1.0 for k in range(400)]
    workbench.write_window(400, kept_with=given)
    limits = {"min_inputs": 100, "max_inputs": 400, "max_age": "3650d"}
    columns = {"id": "input_id", "timestamp": "at", "inclusion": "kept_with"}
    monitor = workbench.monitor(database, round=limits, columns=columns)
    assert not monitor.advance().problems
    with monitor.store.read() as connection:
        one = rounds.get(connection, workbench.name, 1)
    assert one.plan.thinning == {"column": "kept_with", "least": 0.25}
    thinned = sum((one.losses or {})["thinned"].values())
    assert one.received == one.inputs == 400 - thinned
    assert 200 + 20 < one.received < 200 + 80, "all of the rare half, a quarter of the other"
    assert workbench.answer(monitor)
    assert monitor.advance().closed == 1
