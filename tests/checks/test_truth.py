"""``opmon check`` says how many inputs have a truth, and why none has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.checks.sample import Sample
from opmon.checks.truth import look_at_truth
from opmon.config import Settings

LOG = pa.table({"id": ["a", "b", "c"], "outcome": ["no", None, "maybe"]})


def monitor(folder: Path, **truth: Any) -> Any:
    settings = {
        "model": "models:/m@champion",
        "classes": {"no": 0, "yes": 1},
        "source": {"path": "log"},
        "columns": {"id": "id"},
        "truth": truth,
    }
    return Settings.from_mapping({"monitors": {"m": settings}}, folder).monitor("m")


def write(folder: Path, **columns: Any) -> None:
    (folder / "truth").mkdir()
    pq.write_table(pa.table(columns), folder / "truth" / "0.parquet")


@pytest.mark.parametrize(
    ("columns", "level", "words"),
    [
        ({"order": ["a", "c", "z"], "said": [0, 1, 1]}, "ok", "2 of 3 inputs looked at have a truth"),
        ({"order": [f"r{k}" for k in range(300)], "said": [1] * 300}, "warning", "none of 300 truths says 'no'"),
        ({"order": ["A", "C"], "said": [0, 1]}, "warning", "the log says 'a' and the truths say"),
        ({"order": ["a", "b"], "said": [0, 7]}, "warning", "'7' is none of the classes"),
        ({"id": ["a"], "said": [0]}, "problem", "has the column 'order'; the columns are: id, said"),
    ],
)
def test_a_source_of_truths(tmp_path: Path, columns: Any, level: str, words: str) -> None:
    write(tmp_path, **columns)
    found = look_at_truth(monitor(tmp_path, source={"path": "truth"}, id="order", label="said"), Sample(LOG))
    assert found is not None
    assert (found.level, words in found.message.replace("the truths '", "the truths say '")) == (level, True), found


def test_a_source_that_is_not_there_and_one_where_nothing_has_arrived(tmp_path: Path) -> None:
    settings = monitor(tmp_path, source={"path": "truth"}, label="said")
    missing = look_at_truth(settings, Sample(LOG))
    (tmp_path / "truth").mkdir()
    nothing = look_at_truth(settings, Sample(LOG))
    assert missing is not None
    assert nothing is not None
    assert (missing.level, "Rounds go on without it" in missing.message) == ("problem", True)
    assert (nothing.level, nothing.message) == ("ok", "nothing has arrived yet")


def test_a_column_of_the_log(tmp_path: Path) -> None:
    found = look_at_truth(monitor(tmp_path, column="outcome"), Sample(LOG))
    assert found is not None
    assert found.level == "warning"
    assert found.message.startswith("1 of 3 inputs have a truth in their own row; others cannot be taken: 'maybe'")
