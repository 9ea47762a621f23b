"""Label files as they are recorded: what a cell says depends on what the round asks."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from opmon.errors import InputError
from opmon.labels.files import read_labels
from opmon.labels.importing import Imported, import_file
from opmon.replies import UNNAMED
from opmon.store import queue
from opmon.store.engine import Store, open_store
from tests.labels.queued import NOW, asked, open_round


def imported(store: Store, said: Sequence[str], classes: Sequence[str] | None) -> tuple[Imported, list[str | None]]:
    """What became of these answers of a round's inputs, and what was recorded."""
    round_id = open_round(store, asked(len(said)), classes=None if classes is None else list(classes))
    rows = "".join(f"digits,input-{place},{each}\n" for place, each in enumerate(said))
    file = read_labels(io.StringIO(f"monitor,input_id,label\n{rows}"), "csv")
    found = import_file(store, file, "labels.csv", NOW)
    with store.read() as connection:
        return found, [label.truth for task in queue.answers(connection, round_id) for label in task.labels]


def test_a_class_called_nan_is_an_answer(sqlite: str) -> None:
    found, recorded = imported(open_store(sqlite), ["nan", "7", "NaN"], ["nan", "NaN", "7"])
    assert (found.new, found.unanswered, recorded) == (3, 0, ["nan", "7", "NaN"])


def test_where_no_class_is_called_so_it_is_a_row_without_an_answer(sqlite: str) -> None:
    found, recorded = imported(open_store(sqlite), ["nan", "7"], ["1", "7"])
    assert (found.new, found.unanswered, recorded) == (1, 1, ["7"])


def test_where_nobody_names_the_classes_it_is_told(sqlite: str) -> None:
    with pytest.raises(InputError, match=UNNAMED):
        imported(open_store(sqlite), ["nan", "7"], None)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_time_at_the_end_of_all_times_is_refused_like_any_wrong_one(sqlite: str, at: str) -> None:
    """Programs write the first moment of all, in their own zone, where they know none."""
    store = open_store(sqlite)
    open_round(store, asked(2))
    rows = f"monitor,input_id,label,at\ndigits,input-0,7,{at}\ndigits,input-1,7,2026-03-01T11:00:00Z\n"
    with pytest.raises(InputError, match="line 2 at must be a time with its zone"):
        read_labels(io.StringIO(rows), "csv")
    found = import_file(store, read_labels(io.StringIO(rows), "csv", partial=True), "labels.csv", NOW, partial=True)
    assert (found.new, [each.line for each in found.refused]) == (1, [2])
