"""``opmon init --from`` looks at logs as they are: with damage, with ids that come twice, with times under any name."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from opmon.errors import InputError, SourceError
from opmon.setup.by_log import by_log
from opmon.setup.choice import nested
from opmon.setup.log import Log, look
from opmon.setup.roles import place_columns
from opmon.setup.sizes import sizes
from opmon.setup.slices import dividing
from opmon.setup.truth import truth_of

LINES = [json.dumps({"key": f"r{number}", "payload": json.dumps({"a": {"b": number}})}) for number in range(30)]


def placed(**columns: Any) -> dict[str, Any]:
    log = Log(pa.table(columns), 100)
    return nested(place_columns(log, (), None, None)).get("columns", {})  # type: ignore[arg-type,return-value]


def test_what_of_a_log_cannot_be_read_is_set_aside_and_told(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text("\n".join(LINES) + "\n")
    (tmp_path / "other.parquet").write_bytes(b"PAR1 is no table PAR1")
    (tmp_path / "other.jsonl").write_text("no line of JSON\n")
    log = look({"path": str(tmp_path)}, tmp_path)
    (broken,) = log.source
    assert (broken.key, broken.value) == (("source", "broken"), "quarantine")
    assert "other." in broken.why
    assert log.rows.column_names == ["key", "payload.a.b"]


def test_a_log_of_which_nothing_can_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text("no line of JSON\n")
    with pytest.raises(InputError, match=r"cannot be read: other\.jsonl, line 1: a line must be a JSON object"):
        look({"path": str(tmp_path)}, tmp_path)


def test_ids_of_which_some_come_twice_are_ids_and_a_customer_is_none() -> None:
    twice = [f"r{number}" for number in [*range(98), 5, 6]]
    assert placed(request_id=twice) == {"id": "request_id"}
    assert placed(request_id=[f"r{number % 50}" for number in range(100)]) == {}


def test_of_several_texts_that_differ_in_every_row_the_single_words_are_the_ids() -> None:
    prompts = [f"What is {k} + 1?" for k in range(100)]
    pictures = [f"{k:05}" * 50 for k in range(100)]
    assert placed(qid=[f"q{k}" for k in range(100)], prompt=prompts, photo=pictures)["id"] == "qid"


def test_text_with_times_is_the_time_whatever_it_is_called() -> None:
    times = [f"2026-03-01T{number // 60:02}:{number % 60:02}:00Z" for number in range(100)]
    assert placed(zeit=times, number=list(range(100))) == {"timestamp": "zeit"}


def test_of_very_many_small_files_some_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opmon.setup.log._LOOKED_AT", 120)
    for number in range(150):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps({"key": number}) + "\n")
    log = look({"path": str(tmp_path)}, tmp_path)
    assert (log.total, log.more, log.rows.num_rows) == (120, True, 120)
    assert any(choice.why.startswith("more than 120 inputs are logged") for choice in sizes(log, None))
    (tmp_path / "large.csv").write_text("key\n" + "1\n" * 500)
    large = look({"path": str(tmp_path / "large.csv")}, tmp_path)
    assert (large.total, large.more) == (500, False), "one file is counted to its end"


ROWS = 24
FRACTIONS, WHOLE = pa.array([k / 4 for k in range(ROWS)]), pa.array(list(range(ROWS)), pa.int32())
WORDS = pa.array(["a", "b", "c"] * (ROWS // 3))
DECIMALS = [pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(20, 0), pa.decimal256(50, 2)]
TIMES = [pa.time64("us"), pa.duration("s"), pa.timestamp("ns", "UTC"), pa.date64()]
ODD = {
    "null": pa.nulls(ROWS),
    "null_words": pa.nulls(ROWS).dictionary_encode(),
    "float16": FRACTIONS.cast(pa.float16()),
    "float16_words": pa.DictionaryArray.from_arrays(
        pa.array([0, 1] * (ROWS // 2), pa.int32()), pa.array([0.5, 1.5]).cast(pa.float16())
    ),
    **{
        str(kind): WORDS.cast(kind)
        for kind in (pa.string_view(), pa.binary_view(), pa.large_binary(), pa.large_string())
    },
    **{str(kind): pa.array([Decimal(k) for k in range(ROWS)], kind) for kind in DECIMALS},
    **{str(kind): WHOLE.cast(pa.int64()).cast(kind) for kind in TIMES},
    "time32": WHOLE.cast(pa.time32("s")),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * ROWS),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([k]) * 16 for k in range(ROWS)], pa.binary(16))),
    "runs": pc.run_end_encode(WORDS),
    "lists": pa.array([["a", "b"], ["c"], []] * (ROWS // 3), pa.large_list(pa.string())),
    "empty_lists": pa.array([[None]] * ROWS),
    "objects": pa.array([{"a": 1}] * ROWS),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", ["thing", "request_id", "created_at", "label", "prediction", "score", "tags", "p_a"])
def test_a_column_of_any_type_is_looked_at(kind: str, name: str) -> None:
    log = Log(pa.table({name: ODD[kind], "answer": ["x", "y"] * (ROWS // 2)}), ROWS)
    list(place_columns(log, (), None, None))  # type: ignore[arg-type]
    list(truth_of(log, (), "classification", ["a", "b"]))
    list(truth_of(log, (), "regression", None))
    dividing(log, ())
    with suppress(InputError, SourceError):
        by_log(log)


def test_a_column_that_holds_nothing_is_no_trouble(tmp_path: Path) -> None:
    pq.write_table(pa.table({"request_id": ["a", "b"], "note": pa.nulls(2)}), tmp_path / "log.parquet")
    log = look({"path": str(tmp_path)}, tmp_path)
    assert (log.different("note"), log.is_text("note"), log.is_number("note")) == (0, True, False)
    assert nested(place_columns(log, (), None, None))["columns"] == {"id": "request_id"}  # type: ignore[arg-type]
