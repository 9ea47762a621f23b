"""Rows that no parser may see, and rows that only look like them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.errors import SourceError
from opmon.sources import _jsonl
from opmon.sources._flaws import MOST_LEVELS, nested

DEEP = {
    "objects": b'{"a":' * 30_000 + b"1" + b"}" * 30_000,
    "a hundred thousand objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "five hundred objects": b'{"a":' * 500 + b"1" + b"}" * 500,
    "lists": b'{"a": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "without an end": b'{"a":' * 30_000 + b"}",
    "after a text of brackets": b'{"t": "\\"]]]}}}", "a": ' + b'{"a":' * 30_000 + b"1" + b"}" * 30_001,
}
OVER_MANY_LINES = {
    "open at the end": b'{"a":\n' * 30_000,
    "a brace in the key": b'{"a}":\n' * 30_000,
    "a brace in the text": b'{"a": "}"\n' * 30_000,
    "an object first": b'{"]": {}\n' * 30_000,
    "a list": b'{"a": [\n' * 30_000,
}


@pytest.mark.parametrize("row", DEEP.values(), ids=DEEP)
def test_a_row_that_is_nested_too_deeply_costs_itself_alone(log, row) -> None:
    log.write("a.jsonl", b'{"x": 1}\n' + row + b'\n{"x": 3}\n')
    with pytest.raises(SourceError, match=r"a\.jsonl, line 2: .*nested more than 100 levels"):
        log.files().pending({})
    files = log.files(broken="skip")
    batches = list(files.read(files.pending({})))
    assert [(batch.first_row, batch.rows.to_pylist()) for batch in batches if batch.rows.num_rows] == [
        (0, [{"x": 1}]),
        (2, [{"x": 3}]),
    ]


@pytest.mark.parametrize("rows", OVER_MANY_LINES.values(), ids=OVER_MANY_LINES)
def test_rows_that_nest_in_each_other_are_each_bad(log, rows) -> None:
    log.write("a.jsonl", b'{"x": 1}\n' + rows)
    files = log.files(broken="skip")
    (piece,) = files.pending({})
    batches = list(files.read([piece]))
    assert piece.rows == 30_001
    assert [batch.rows.to_pylist() for batch in batches if batch.rows.num_rows] == [[{"x": 1}]]
    assert sum(batches[-1].unreadable.values()) == 30_000


def test_brackets_in_text_are_no_nesting(log, drain) -> None:
    row = {"x": "[{" * 30_000, 'k"[[': '\\"' + "[" * 500, "image": [[[0] * 3] * 32] * 32}
    log.write("a.jsonl", json.dumps(row) + "\n")
    assert drain(log.files(), {}) == [row]


def test_as_many_levels_as_are_allowed_can_be_read(log, drain) -> None:
    log.write("a.jsonl", '{"a":' * MOST_LEVELS + "1" + "}" * MOST_LEVELS + "\n")
    (row,) = drain(log.files(), {})
    for _ in range(MOST_LEVELS):
        row = row["a"]
    assert row == 1


TREE = st.recursive(
    st.none() | st.integers() | st.text('[]{}"\\é'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}"\\', max_size=3), inner, max_size=3),
)


@given(TREE)
def test_nesting_is_that_of_the_values(tree) -> None:
    def depth(value: object) -> int:
        if isinstance(value, list):
            return 1 + max(map(depth, value), default=0)
        return 1 + max(map(depth, value.values()), default=0) if isinstance(value, dict) else 0

    assert nested(json.dumps(tree).encode()) == depth(tree)
    assert nested(json.dumps(tree, ensure_ascii=False).encode()) == depth(tree)


@pytest.mark.parametrize("nested", [False, True])
def test_keys_that_change_from_row_to_row_are_refused_before_they_fill_the_memory(log, monkeypatch, nested) -> None:
    monkeypatch.setattr(_jsonl, "FEW_COLUMNS", 2500)
    row = '{{"a{}": {{"b{}": {{"c{}": 1}}}}}}\n' if nested else '{{"user-{}{}{}": 1}}\n'
    log.write("a.jsonl", "".join(row.format(i % 30, i // 30 % 30, i // 900) for i in range(40_000)))
    with pytest.raises(SourceError, match=r"a\.jsonl has [\d,]+ different keys in its first [\d,]+ rows"):
        log.files().pending({})


def test_more_columns_than_can_be_meant_are_refused(log) -> None:
    names = [f"k{i}" for i in range(50_001)]
    log.write("a.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    with pytest.raises(SourceError, match="names 50,001 columns; 50,000 are the most"):
        log.files().pending({})
    (log.folder / "a.csv").unlink()
    log.write("a.jsonl", json.dumps(dict.fromkeys(names, 1)) + "\n")
    with pytest.raises(SourceError, match="has 50,001 different keys in its first 1 rows"):
        log.files().pending({})


def test_many_columns_of_which_few_are_filled_can_be_read(log, drain) -> None:
    rows = [{"id": i, "words": {f"w{(i * 7 + k) % 1500}": k for k in range(3)}} for i in range(1500)]
    log.write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = drain(log.files(), {})
    assert [{k: v for k, v in row["words"].items() if v is not None} for row in found] == [row["words"] for row in rows]
