"""Small files that are read as one give what they give one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opmon.errors import SourceError
from opmon.sources import _csv, _runs
from opmon.sources.files import Files

CSV = st.tuples(
    st.sampled_from(["x,y\n", "x,y\r\n", "y;x\n", '"x",y\n', "\ufeffx,y\n"]),
    st.lists(st.sampled_from(["1,2", "1.5,2", "a,b", '"q\nr",2', "007,2", ",", "1", "true,x"]), max_size=3),
    st.sampled_from(["\n", "\r\n", ""]),
)
JSONL = st.tuples(
    st.just(""),
    st.lists(
        st.sampled_from(
            ['{"x": 1}', '{"x": 1.5, "y": [1]}', '{"x": "a"}', '{"y": 2}', '{"z": {"k": null}}', "{}", "?"]
        ),
        max_size=3,
    ),
    st.sampled_from(["\n", "\r\n\n", ""]),
)


def everything(files: Files) -> tuple[Any, ...]:
    """All that a source says of its files; of several errors either may come first."""
    try:
        slices = files.pending({})
        batches = list(files.read(slices))
    except SourceError:
        return ("error",)
    rows = [
        (batch.slice_index, batch.first_row + i, repr(row))
        for batch in batches
        for i, row in enumerate(batch.rows.to_pylist())
    ]
    lost = sorted(batch.unreadable.items() for batch in batches if batch.unreadable)
    return (
        [(piece.part, piece.stop, piece.rows) for piece in slices],
        sorted(rows),
        lost,
        batches[:1] and batches[0].rows.schema,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(contents=st.lists(CSV, min_size=2, max_size=6) | st.lists(JSONL, min_size=2, max_size=6), data=st.data())
def test_files_together_give_what_they_give_one_by_one(log, monkeypatch, contents, data) -> None:
    for path in log.folder.iterdir():
        path.unlink()
    for number, (header, rows, end) in enumerate(contents):
        ending = "csv" if header else "jsonl"
        log.write(f"{number}.{ending}", header + "\n".join(rows) + (end if rows else ""), age=1000 - number)
    files = log.files(broken=data.draw(st.sampled_from(["stop", "skip"])))
    together = everything(files)
    with monkeypatch.context() as patch:
        patch.setattr(_runs, "_RUN_BYTES", 0)
        assert together == everything(files)
        patch.setattr(_runs, "_SMALL_BYTES", 0)
        assert together == everything(files)


def test_thousands_of_small_files_are_parsed_in_few_portions(log, monkeypatch, rows_of) -> None:
    parsed = []
    parse = _csv.Csv.parse
    monkeypatch.setattr(_csv.Csv, "parse", lambda *given: parsed.append(1) or parse(*given))
    for number in range(300):
        log.write(f"{number:03}.csv", f"id,x\n{number},1\n", age=1000 - number)
    files = log.files()
    assert [row["id"] for row in rows_of(files, files.pending({}))] == list(range(300))
    assert len(parsed) == 1


@pytest.mark.parametrize("bad", ["2,3,4", "2"])
def test_a_bad_row_among_many_small_files_is_named(log, bad) -> None:
    for number in range(50):
        log.write(f"{number:02}.csv", f"id,x\n{number},1\n{bad if number == 30 else '0,0'}\n", age=1000 - number)
    with pytest.raises(SourceError, match=r"30\.csv, line 3: "):
        log.files().pending({})
    batches = list(log.files(broken="skip").read(log.files(broken="skip").pending({})))
    assert sum(batch.rows.num_rows for batch in batches) == 99
    assert [(batch.slice_index, sum(batch.unreadable.values())) for batch in batches if batch.unreadable] == [(30, 1)]
