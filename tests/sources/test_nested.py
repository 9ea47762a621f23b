"""Columns inside others: structs, maps, lists and JSON, whatever a log holds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.errors import SourceError
from opmon.sources.files import Files
from opmon.sources.nested import Nested
from opmon.testing import check_source

AGES = [*range(30, 60)]
ROWS = [{"age": age, "where": {"country": "DE" if age % 2 else "FR"}, "last": [age, age / 2]} for age in AGES]


def log_of(folder: Path, **columns: Any) -> Files:
    pq.write_table(pa.table({"id": [f"i{age}" for age in AGES], **columns}), folder / "log.parquet")
    return Files(str(folder))


FORMS: dict[str, Any] = {
    "struct": ROWS,
    "JSON": [json.dumps(row) for row in ROWS],
    "JSON in a dictionary": pa.array([json.dumps(row) for row in ROWS]).dictionary_encode(),
    "JSON inside JSON": [json.dumps({**row, "where": json.dumps(row["where"])}) for row in ROWS],
}


@pytest.mark.parametrize("form", FORMS)
def test_paths_are_columns(tmp_path: Path, form: str) -> None:
    paths = ("features.age", "features.where.country", "features.last[1]", "id")
    source = Nested(log_of(tmp_path, features=FORMS[form]), paths)
    (batch,) = source.read(source.pending({}))
    assert batch.rows["features.age"].to_pylist() == AGES
    assert batch.rows["features.where.country"].to_pylist() == ["DE" if age % 2 else "FR" for age in AGES]
    assert batch.rows["features.last[1]"].to_pylist() == [age / 2 for age in AGES]
    expected = pa.table({"id": [f"i{age}" for age in AGES], "features.age": AGES})
    check_source(source, expected)


def test_maps_and_gaps(tmp_path: Path) -> None:
    maps: list[Any] = [[("age", float(age)), ("n", 1.0)] for age in AGES]
    maps[3], maps[4] = None, [("n", 1.0)]
    lists: list[Any] = [[age] for age in AGES]
    lists[5], lists[6] = None, []
    structs: list[Any] = [{"age": age} for age in AGES]
    structs[7] = None
    log = log_of(tmp_path, m=pa.array(maps, pa.map_(pa.string(), pa.float64())), l=lists, s=structs)
    source = Nested(log, ("m.age", "l[0]", "s.age", "l[4]"))
    (batch,) = source.read(source.pending({}))
    for path, gaps in {"m.age": (3, 4), "l[0]": (5, 6), "s.age": (7,)}.items():
        expected = [None if place in gaps else age for place, age in enumerate(AGES)]
        assert batch.rows[path].to_pylist() == expected
    assert batch.rows["l[4]"].null_count == len(AGES)


def test_a_column_of_that_name_is_no_path_and_the_longest_name_counts(tmp_path: Path) -> None:
    log = log_of(tmp_path, **{"a.b": AGES, "a": [{"b": 0, "c": age} for age in AGES], "a.d": ROWS})
    source = Nested(log, ("a.b", "a.c", "a.d.age"))
    (batch,) = source.read(source.pending({}), ["a.d.age", "a.b"])
    assert batch.rows.schema.names == ["a.d.age", "a.b"]
    assert batch.rows["a.b"].to_pylist() == batch.rows["a.d.age"].to_pylist() == AGES


def test_hostile_json_costs_its_row(tmp_path: Path) -> None:
    texts = [json.dumps(row) for row in ROWS]
    texts[0], texts[1], texts[2], texts[3] = '{"age":' * 100_000, "not json", "[1, 2]", '{"age": {"deep": 1}}'
    texts[4] = '{"age": ' + "[" * 70 + "1" + "]" * 70 + "}"
    source = Nested(log_of(tmp_path, features=texts), ("features.age",))
    (batch,) = source.read(source.pending({}))
    found = batch.rows["features.age"].to_pylist()
    assert found[:3] == [None, None, None]
    assert found[3:6] == ['{"deep": 1}', None, "35"]


def test_a_sign_that_was_cut_in_two_and_a_number_beyond_all_cost_nothing(tmp_path: Path) -> None:
    texts = [r'{"say": "hi \ud83d"}', r'{"say": "\ud83d\ude00"}', json.dumps({"say": r'{"say": "\ud83d"}'})]
    numbers = [f'{{"say": {number}}}' for number in ("1", f"-1{'0' * 400}", f"1{'0' * 400}")]
    rest = [None] * (len(AGES) - 3)
    source = Nested(log_of(tmp_path, f=[*texts, *rest], n=[*numbers, *rest]), ("f.say", "f.say.say", "n.say"))
    (batch,) = source.read(source.pending({}))
    assert batch.rows["f.say"].to_pylist()[:2] == ["hi ?", "\N{GRINNING FACE}"]
    assert batch.rows["f.say.say"].to_pylist()[:3] == [None, None, "?"]
    assert batch.rows["n.say"].to_pylist()[:3] == [1.0, -math.inf, math.inf]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("s.income", "'s' has no field 'income'; it has: age"),
        ("n.x", "'n' is int64, which has nothing inside"),
        ("s.age.years", "'s.age' is int64"),
    ],
)
def test_a_path_to_nothing_is_told(tmp_path: Path, path: str, told: str) -> None:
    source = Nested(log_of(tmp_path, s=[{"age": age} for age in AGES], n=AGES), (path,))
    with pytest.raises(SourceError, match=told):
        list(source.read(source.pending({})))


def test_a_path_without_its_column_is_told(tmp_path: Path) -> None:
    source = Nested(log_of(tmp_path), ("x.y",))
    with pytest.raises(SourceError, match=r"no column 'x.y', and none that it lies in; they have: id"):
        list(source.read(source.pending({}), ["x.y"]))
