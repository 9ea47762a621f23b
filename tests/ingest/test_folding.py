"""From events to the rows that the source reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from opmon.ingest import folding
from opmon.ingest.event import Event, Kind
from opmon.ingest.folding import DAMAGED, NO_REQUEST, NO_ROW, Folding
from opmon.ingest.journal import Journal
from opmon.ingest.segments import Segments
from opmon.sources.ingest import Ingest
from opmon.testing import check_source
from opmon.testing.sources import positions_after

AT = "2026-03-01T12:00:00+00:00"
SETTLE = 60.0


class Kitchen:
    """A journal whose clock is ours, and the rows that are made of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 0.0
        self.open()

    def open(self) -> None:
        self.journal = Journal(Segments(self.folder / "@journal"), 120.0, monotonic=lambda: self.now)
        self.folding = Folding(self.journal, {"digits": self.folder / "digits" / "inputs"}, SETTLE)

    def restart(self) -> None:
        self.journal.segments.close()
        self.open()

    def keep(self, *events: Event, close: bool = True) -> None:
        self.journal.append([("digits", events)])
        if close:
            self.journal.close_segment()

    def fold(self, seconds: float = SETTLE) -> None:
        self.now += seconds
        self.folding.fold()

    @property
    def source(self) -> Ingest:
        return Ingest(str(self.folder / "digits" / "inputs"))

    def rows(self) -> list[dict[str, Any]]:
        source = self.source
        return [row for batch in source.read(source.pending({})) for row in batch.rows.to_pylist()]

    def left(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "@journal").glob("0*"))


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    made = Kitchen(tmp_path)
    yield made
    made.journal.segments.close()


def row(key: str, **columns: object) -> Event:
    return Event(Kind.ROW, key, key, AT, json.dumps(columns))


def request(name: str, *values: float) -> Event:
    return Event(Kind.REQUEST, name, name, AT, json.dumps({"instances": [[value, 1] for value in values]}))


def response(name: str, *answers: str) -> Event:
    return Event(Kind.RESPONSE, name, name, AT, json.dumps({"predictions": answers, "model_version": "3"}))


def test_the_source_passes_the_suite(kitchen: Kitchen) -> None:
    for start in (0, 12, 20):
        kitchen.keep(*(row(f"k{number}", age=number) for number in range(start, start + 12)))
        kitchen.keep(response(f"nobody {start}", "x"))
    kitchen.fold()
    source = kitchen.source
    check_source(source, pa.table({"id": [f"k{number}" for number in range(32)], "age": list(range(32))}))


def test_a_response_meets_its_request_wherever_it_stands(kitchen: Kitchen) -> None:
    kitchen.keep(request("a", 1, 2), response("a", "x", "y"), response("b", "z"))
    kitchen.keep(request("b", 3), request("c", 4))
    kitchen.keep(response("c", "w"), row("d", features=[1, 1], prediction="v"), close=False)
    kitchen.fold()

    found = {each["id"]: (each["features"], each["prediction"], each["model_version"]) for each in kitchen.rows()}
    assert found == {
        "a#0": ([1.0, 1.0], "x", "3"),
        "a#1": ([2.0, 1.0], "y", "3"),
        "b": ([3.0, 1.0], "z", "3"),
        "c": ([4.0, 1.0], "w", "3"),
    }
    assert kitchen.source.lost(kitchen.source.pending({})) == {}


def test_a_pair_also_meets_across_a_restart(kitchen: Kitchen) -> None:
    kitchen.keep(request("a", 1), response("b", "y"), close=False)
    kitchen.restart()
    kitchen.keep(response("a", "x"), request("b", 2))
    kitchen.fold()
    assert {each["id"]: each["prediction"] for each in kitchen.rows()} == {"a": "x", "b": "y"}


def test_nobody_waits_for_ever_for_a_response(kitchen: Kitchen) -> None:
    kitchen.keep(request("a", 1))
    kitchen.fold(SETTLE - 1)
    assert kitchen.source.pending({}) == []
    kitchen.fold(1)
    kitchen.keep(response("a", "x"))
    kitchen.fold()
    assert [(each["id"], each["prediction"]) for each in kitchen.rows()] == [("a", None)]
    assert kitchen.source.lost(kitchen.source.pending({})) == {}


def test_a_response_without_a_request_is_an_input_that_was_not_logged(kitchen: Kitchen) -> None:
    kitchen.keep(response("a", "x"), response("b", "x"))
    kitchen.fold()
    assert kitchen.source.pending({}) == []
    kitchen.keep(row("c", age=1), response("d", "x"))
    kitchen.keep(row("e", age=1))
    kitchen.fold()
    slices = kitchen.source.pending({})
    assert [dict(kitchen.source.lost([piece])) for piece in slices] == [{NO_REQUEST: 3}, {}]


def test_rows_are_made_once_whenever_the_process_ends(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    kitchen.keep(request("a", 1))
    monkeypatch.setattr(Segments, "mark_read", lambda *_: (_ for _ in ()).throw(OSError("killed here")))
    with pytest.raises(OSError, match="killed here"):
        kitchen.fold()
    before = kitchen.source.pending({})
    monkeypatch.undo()
    kitchen.restart()
    kitchen.keep(response("a", "x"))
    kitchen.fold()
    assert kitchen.source.pending({}) == before
    assert kitchen.source.pending(positions_after({}, before)) == []


def test_segments_go_when_nobody_can_wait_for_them_and_ids_stay(kitchen: Kitchen) -> None:
    kitchen.keep(row("a", age=1))
    kitchen.fold()
    kitchen.fold(1)
    assert kitchen.left() == ["000000000001.keys"]
    kitchen.restart()
    kitchen.keep(row("a", age=1), row("b", age=1))
    kitchen.fold()
    assert [each["id"] for each in kitchen.rows()] == ["a", "b"]


def test_a_column_keeps_its_type(kitchen: Kitchen) -> None:
    kitchen.keep(row("a", age=3, name="x", scores=[1, 2], about={"k": 1}, on=True))
    kitchen.fold()
    kitchen.restart()
    kitchen.keep(
        row("b", age="old", name=7, scores="none", about={"k": [1]}, on=3),
        row("c", age="4.5", name=None, scores=[], about=[[1]], on=None),
        row("d", age=10**400, scores=[10**400]),
    )
    kitchen.fold()
    found = {each["id"]: each for each in kitchen.rows()}
    assert [found[key]["age"] for key in "abcd"] == [3.0, None, 4.5, None]
    assert [found[key]["name"] for key in "abcd"] == ["x", "7", None, None]
    assert [found[key]["scores"] for key in "abcd"] == [[1.0, 2.0], None, [], None]
    assert [found[key]["about"] for key in "abc"] == ['{"k": 1}', '{"k": [1]}', "[[1]]"]
    assert [found[key]["on"] for key in "abc"] == [True, None, None]


def test_a_damaged_event_costs_itself(kitchen: Kitchen) -> None:
    kitchen.keep(row("a", age=1), row("b", age=2), row("c", age=3))
    path = next((kitchen.folder / "@journal").glob("*.log"))
    lines = path.read_bytes().splitlines(True)
    path.write_bytes(lines[0] + lines[1][:30] + b"#" + lines[1][31:] + lines[2])
    kitchen.fold()
    assert [each["id"] for each in kitchen.rows()] == ["a", "c"]
    assert kitchen.source.lost(kitchen.source.pending({})) == {DAMAGED: 1}


def pair(name: str, sent: object, said: object) -> list[Event]:
    """A request and its response; text as it is, such as comes with the type text/plain."""
    kinds = ((Kind.REQUEST, sent), (Kind.RESPONSE, said))
    return [Event(kind, name, name, AT, each if isinstance(each, str) else json.dumps(each)) for kind, each in kinds]


def tensor(*shape: int) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "shape": shape, "datatype": "FP32", "data": []}]}


@pytest.mark.parametrize(
    ("sent", "said", "expected"),
    [
        (tensor(10**15, 4), {}, {"x": None}),
        (tensor(0, 4), {}, {"x": None}),
        ({"inputs": {"x": [1] * 2000, **{f"c{place}": [] for place in range(2000)}}}, {}, {"x": None}),
        ({"inputs": {"x": [7], "c": []}}, {"predictions": ["a"]}, {"x": 7, "prediction": "a"}),
        ({"instances": [{"x": 1}]}, {"predictions": [[10**400, 1]]}, {"x": 1, "scores": None}),
        ('{"x": 5, "name": "\\udc00"}', {}, {"x": 5, "name": "?"}),
    ],
    ids=["a shape of very many and no data", "none", "lengths far apart", "one more", "huge numbers", "half of a pair"],
)
def test_an_odd_event_is_a_row_and_stops_no_others(kitchen: Kitchen, sent: object, said: object, expected: Any) -> None:
    kitchen.keep(row("a", x=1), *pair("odd", sent, said), row("b", x=2))
    kitchen.fold()
    found = {each["id"]: each for each in kitchen.rows()}
    assert set(found) == {"a", "odd", "b"}
    assert {name: found["odd"].get(name) for name in expected} == expected


def test_an_event_of_which_there_is_no_row_costs_itself(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_of = folding.rows_of

    def strict(sent: str, *rest: Any) -> Any:
        if "13" in sent:
            raise ZeroDivisionError("nobody thought of this")
        return rows_of(sent, *rest)

    monkeypatch.setattr(folding, "rows_of", strict)
    kitchen.keep(request("a", 1), request("odd", 13), request("b", 2))
    kitchen.fold()
    assert [each["id"] for each in kitchen.rows()] == ["a", "b"]
    assert kitchen.source.lost(kitchen.source.pending({})) == {NO_ROW: 1}


def test_very_large_whole_numbers_and_fractions_are_one_column(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "_AT_ONCE", 1)
    kitchen.keep(row("a", x=2**60 + 1), row("b", x=0.5), row("c", x=None), row("d", y="other"))
    kitchen.fold()
    assert [each["x"] for each in kitchen.rows()] == [2.0**60, 0.5, None, None]


def test_now_is_before_the_first_event_ever(tmp_path: Path) -> None:
    assert Ingest(str(tmp_path / "inputs"), since="now").begins()
    assert not Ingest(str(tmp_path / "inputs")).begins()


def test_what_was_read_is_known_to_be_spent(kitchen: Kitchen) -> None:
    kitchen.keep(row("a", age=1))
    kitchen.keep(response("b", "x"))
    kitchen.keep(row("c", age=1))
    kitchen.fold()
    source = kitchen.source
    first, second = source.pending({})
    later = 4e9
    assert source.spent({}, later) == []
    assert [part for part, _ in source.spent(positions_after({}, [first]), later)] == [first.part]
    assert len(source.spent(positions_after({}, [first, second]), later)) == 3
    assert source.spent(positions_after({}, [first, second]), 0.0) == []
