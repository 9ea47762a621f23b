"""The sample at the source: stated probabilities are right, totals unbiased, and so is the variance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opmon
from opmon.recorder._buffer import Buffer
from opmon.recorder._entries import Entry
from opmon.recorder._limits import Limits
from opmon.recorder._reservoir import Reservoir, Sample

WINDOWS = 4000
CHANCE = np.random.default_rng(5)
WEIGHTS = CHANCE.lognormal(0.0, 1.0, 60)
VALUES = WEIGHTS * CHANCE.uniform(0.5, 1.5, 60) + 0.3
SIZES = CHANCE.integers(50, 400, 60)


class Sized(Entry):
    """A record of so many bytes."""

    def unpacked(self) -> Iterator[dict[str, object]]:
        return iter(())


def window(chance: random.Random, keep: int, most_bytes: int = 1 << 30) -> tuple[list[int], np.ndarray[Any, Any]]:
    """The numbers of the records that one window keeps, and their probabilities."""
    reservoir = Reservoir(keep, most_bytes, chance)
    numbers: dict[int, int] = {}
    for number, (weight, size) in enumerate(zip(WEIGHTS, SIZES, strict=True)):
        priority = reservoir.draw(float(weight))
        if priority > reservoir.threshold:
            entry = Sized(1, int(size))
            numbers[id(entry)] = number
            reservoir.keep(priority, float(weight), entry)
        assert reservoir.bytes <= most_bytes
        assert len(reservoir) <= keep
    kept = reservoir.kept()
    assert reservoir.seen == 60
    return [numbers[id(entry)] for entry in kept], np.array([entry.inclusion for entry in kept])


@pytest.mark.parametrize(("keep", "most_bytes"), [(12, 1 << 30), (60, 2500)])
def test_totals_are_unbiased_and_so_is_their_variance(keep: int, most_bytes: int) -> None:
    chance = random.Random(7)
    totals, variances, times = np.zeros(WINDOWS), np.zeros(WINDOWS), np.zeros(60)
    for trial in range(WINDOWS):
        numbers, inclusion = window(chance, keep, most_bytes)
        y = VALUES[numbers]
        totals[trial] = (y / inclusion).sum()
        variances[trial] = (y**2 * (1 - inclusion) / inclusion**2).sum()
        times[numbers] += 1 / inclusion
    error = totals.std() / WINDOWS**0.5
    assert abs(totals.mean() - VALUES.sum()) < 4 * error
    assert variances.mean() == pytest.approx(totals.var(), rel=0.12)
    assert np.abs(times / WINDOWS - 1).max() < 0.35  # each record by itself, the rarest too
    assert abs((times / WINDOWS).mean() - 1) < 0.02


def test_a_window_that_fits_is_kept_whole() -> None:
    numbers, inclusion = window(random.Random(1), 60)
    assert numbers == list(range(60))
    assert (inclusion == 1).all()


def test_the_same_weights_make_a_simple_random_sample(left: Any) -> None:
    with opmon.Recorder(str(left.folder), sample={"keep": 20, "every": "1h"}) as recorder:
        recorder.record(object())
        for number in range(100):
            recorder.record({"x": number})
        stats = recorder.stats()
        assert (stats.recorded, stats.waiting) == (101, 100)

    table = left.table()
    assert table["x"].to_pylist() == sorted(set(table["x"].to_pylist()))
    (inclusion,) = set(table["inclusion"].to_pylist())
    assert 0.1 < inclusion < 0.4
    told = left.told()[-1]
    assert [(each["seen"], each["kept"], each["weight"]) for each in told["windows"]] == [(100, 20, 100.0)]
    assert told["now"] == {"recorded": 101, "written": 20, "passed_over": 80, "dropped": {"unwritable": 1}}


def test_what_the_model_is_unsure_of_is_kept_more_often(left: Any) -> None:
    sample = {"keep": 120, "every": 3600, "by": "confidence"}
    with opmon.Recorder(str(left.folder), sample=sample) as recorder:
        for number in range(300):
            sure = number % 2
            recorder.record({"sure": sure}, scores=np.array([0.99, 0.01]) if sure else [0.5, 0.5])

    table = left.table().to_pandas()
    shares = table.groupby("sure")["inclusion"].first()
    assert shares[0] / shares[1] == pytest.approx(10)
    assert (table["sure"] == 0).mean() > 0.7


def test_windows_end_by_time_and_their_totals_are_told(left: Any) -> None:
    with opmon.Recorder(str(left.folder), sample={"keep": 5, "every": 0.02}, seconds_per_file=0.01) as recorder:
        while recorder.stats().files < 3:
            recorder.record([1.0])

    windows = [window for told in left.told() for window in told["windows"]]
    now = left.told()[-1]["now"]
    assert len(windows) >= 3
    assert sum(window["kept"] for window in windows) == now["written"] == left.table().num_rows
    assert sum(window["seen"] for window in windows) == now["recorded"] == now["written"] + now["passed_over"]


def test_a_batch_is_sampled_one_by_one(left: Any) -> None:
    with opmon.Recorder(str(left.folder), sample={"keep": 10, "every": "1h"}) as recorder:
        keys = recorder.record_batch(np.arange(200.0).reshape(100, 2), predictions=list(range(100)))

    table = left.table().to_pylist()
    assert len(table) == 10
    for row in table:
        number = int(row["features"][0]) // 2
        assert (row["prediction"], row["id"]) == (number, keys[number])


def test_a_function_that_fails_weighs_one(left: Any) -> None:
    sample = {"keep": 10, "every": "1h", "by": lambda inputs, prediction, scores: inputs["x"]}
    with opmon.Recorder(str(left.folder), sample=sample) as recorder:
        for value in ({"x": 5.0}, {"y": 1.0}, {"x": -1.0}, {"x": float("nan")}):
            recorder.record(value)

    assert left.told()[-1]["windows"][0]["weight"] == 8.0


def test_a_window_without_room_is_lost_with_all_that_it_stands_for() -> None:
    buffer = Buffer(Limits(15, 1 << 20, 1000, 1 << 20, 60.0), Sample(10, 3600.0))
    for _ in range(2):
        for _ in range(50):
            buffer.draw(1.0, lambda: Sized(1, 100))
        buffer.end_window(0.0, at_once=True)

    assert buffer.tally.plain() == {"recorded": 100, "written": 0, "passed_over": 40, "dropped": {"buffer_full": 50}}
    assert buffer.tally.waiting == 10 == len(buffer.take())
