"""Few rows go to the model together, in their order, and long gaps stay what they were."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from opmon.jobs.gathering import FEW, TOGETHER, Gathered, Rows


def rows(index: int, values: list[float | None]) -> Rows:
    return Rows.of(index, pa.record_batch({"x": pa.array(values, pa.float64())}), np.arange(len(values)))


def gathered(pieces: list[Rows], most: int = 10_000) -> list[Rows]:
    waiting, given = Gathered(), []
    for piece in pieces:
        if not waiting.takes(piece):
            given += waiting.given(most)
        waiting.add(piece)
        if waiting.is_full:
            given += waiting.given(most)
    return [*given, *waiting.given(most)]


def test_single_rows_of_many_slices_are_one_batch() -> None:
    (one,) = gathered([rows(index, [float(index)]) for index in range(50)])
    assert one.rows["x"].to_pylist() == list(range(50))
    assert one.slices.tolist() == list(range(50))
    assert one.numbers.tolist() == [0] * 50


def test_no_batch_grows_without_end_and_large_ones_stay_as_they_are() -> None:
    many = gathered([rows(index, [1.0]) for index in range(3 * TOGETHER)])
    assert [len(each) for each in many] == [TOGETHER] * 3
    large = gathered([rows(0, [1.0] * 3), rows(1, [1.0] * FEW), rows(2, [1.0] * 3), rows(3, [1.0] * 3)])
    assert [len(each) for each in large] == [3, FEW, 6]
    assert [len(each) for each in gathered([rows(0, [1.0] * 30), rows(1, [1.0] * 30)], most=25)] == [25, 25, 10]


def test_rows_of_other_columns_are_another_batch() -> None:
    other = Rows.of(1, pa.record_batch({"y": ["a"]}), np.arange(1))
    assert [each.rows.schema.names for each in gathered([rows(0, [1.0]), other, rows(2, [1.0])])] == [
        ["x"],
        ["y"],
        ["x"],
    ]


def test_large_rows_do_not_gather_in_memory() -> None:
    pictures = [Rows.of(i, pa.record_batch({"image": [bytes(3 << 20)]}), np.arange(1)) for i in range(5)]
    assert [len(each) for each in gathered(pictures)] == [2, 2, 1]


def test_many_rows_in_a_row_that_lack_a_column_are_a_batch_of_their_own() -> None:
    values = [1.0, None, 1.0, *[None] * 20, 1.0]
    found = gathered([rows(index, [value]) for index, value in enumerate(values)])
    assert [(len(each), each.rows["x"].null_count) for each in found] == [(3, 1), (20, 20), (1, 0)]
