"""The digits, the stream and the annotators."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq

from opmon.adjudication import Asked
from opmon.demo import digits, stream
from opmon.demo.annotators import Annotators
from opmon.types import Task

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _rows(some: digits.Digits) -> set[bytes]:
    return {row.tobytes() for row in some.rows}


def test_training_and_production_share_no_digit():
    training, before, after = digits.load(0)
    assert len(training) + len(before) + len(after) == 1797
    assert not _rows(training) & _rows(before)
    assert not _rows(training) & _rows(after)
    assert not _rows(before) & _rows(after)


def test_picture_that_is_left_alone_stays_as_it_is():
    pictures = digits.load(0)[0].pictures[:50]
    still = digits.Handling(spread=0.0, shift=0.0, noise=0.0)
    np.testing.assert_allclose(digits.handled(pictures, still, np.random.default_rng(0)), pictures, atol=1e-6)


def test_quarter_turn_is_clockwise():
    pictures = digits.load(0)[0].pictures[:50]
    quarter = digits.Handling(angle=90.0, spread=0.0, shift=0.0, noise=0.0)
    turned = digits.handled(pictures, quarter, np.random.default_rng(0))
    np.testing.assert_allclose(turned, np.rot90(pictures, -1, axes=(1, 2)), atol=1e-5)


def test_mix_prefers_the_frequent_digits():
    truth = np.arange(10)
    assert np.allclose(digits.mix(truth, 0.0), 0.1)
    assert np.isclose(digits.mix(truth, 1.0)[8], 2 * digits.mix(truth, 1.0)[0])


def test_window_has_no_copies_and_is_the_same_for_the_same_seed():
    pool = digits.load(0)[1]
    first, again = (_window(pool) for _ in range(2))
    assert len(_rows(first.digits)) == len(set(first.ids)) == 900
    np.testing.assert_array_equal(first.digits.pictures, again.digits.pictures)


def test_true_accuracy_counts_right_answers():
    window = _window(digits.load(0)[1])
    assert window.true_accuracy == np.mean(window.digits.truth == 3)


def test_logged_window_holds_what_the_model_saw(tmp_path):
    window = _window(digits.load(0)[1])
    log = pq.read_table(stream.write(window, tmp_path, NOW))
    assert log.column_names == ["input_id", "at", "pixels", "prediction", "model_version"]
    np.testing.assert_array_equal(np.array(log["pixels"].to_pylist(), np.float32), window.digits.rows)
    assert log["at"][0].as_py() == NOW
    assert [path.name for path in tmp_path.iterdir()] == ["window-02.parquet"]


def test_annotators_are_nearly_always_right_together():
    people = Annotators(mistakes=0.05, illegible=0.1)
    tasks = [Task(number, "digits", 1, str(number), {}) for number in range(4000)]
    labels = people.answer(tasks, {task.input_id: 7 for task in tasks}, NOW, np.random.default_rng(0))
    slips = np.mean([label.truth not in ("7", None) for label in labels])
    given = [tuple(label for label in labels if label.task_id == task.id) for task in tasks[:1500]]
    assert all(given)
    said = [Asked(0, "i0", "7", {}, {}, 1, labels).truth for labels in given]
    assert 0.02 < slips < 0.08
    assert 0.07 < said.count(None) / len(said) < 0.13
    assert np.mean([answer not in ("7", None) for answer in said]) < 0.01


def _window(pool: digits.Digits) -> stream.Window:
    return stream.window(
        2,
        pool=pool,
        size=900,
        drift=0.5,
        predict=lambda rows: np.full(len(rows), 3),
        model_version="1",
        seed=5,
    )
