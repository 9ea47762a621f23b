from __future__ import annotations

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opmon.errors import SourceError

ROW = st.fixed_dictionaries(
    {"id": st.integers(-(2**60), 2**60), "text": st.text(max_size=6), "on": st.booleans()},
    optional={"x": st.floats(allow_nan=False, width=32), "list": st.lists(st.integers(0, 9), max_size=3)},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=10), limit=st.integers(1, 4))
def test_jsonl_read_in_rounds_equals_the_json_module(log, drain, rows, limit) -> None:
    log.write("a.jsonl", "".join(json.dumps(row, allow_nan=True) + "\n" for row in rows))
    found = drain(log.files(), {}, limit)
    assert [{k: v for k, v in row.items() if v is not None} for row in found] == rows


def test_jsonl_nested_lists_and_objects(log, drain) -> None:
    row = {"pixels": [[1.5, 2.0], [3.0, 4.0]], "user": {"age": 3, "at": "2026-01-01 00:00:00"}}
    log.write("a.jsonl", json.dumps(row) + "\n")
    assert drain(log.files(), {}) == [row]


def test_jsonl_dates_stay_text(log, drain) -> None:
    log.write("a.jsonl", '{"at": "2026-01-01T00:00:00"}\n{"at": "soon"}\n')
    assert drain(log.files(), {}, 1) == [{"at": "2026-01-01T00:00:00"}, {"at": "soon"}]


def test_jsonl_nan_as_python_writes_it(log, drain) -> None:
    log.write("a.jsonl", '{"x": 1.5}\n{"x": NaN}\n{"x": Infinity}\n')
    values = [row["x"] for row in drain(log.files(), {})]
    assert values[0] == 1.5
    assert math.isnan(values[1])
    assert values[2] == math.inf


def test_jsonl_mixed_kinds_are_text(log, drain) -> None:
    log.write("a.jsonl", '{"id": 1}\n{"id": "a"}\n{"id": null}\n{}\n')
    assert [row["id"] for row in drain(log.files(), {})] == ["1", "a", None, None]


def test_jsonl_bom_crlf_and_blank_lines(log, drain) -> None:
    log.write("a.jsonl", b'\xef\xbb\xbf{"x": 1}\r\n\r\n   \n{"x": 2}\r\n')
    assert drain(log.files(), {}, 1) == [{"x": 1}, {"x": 2}]


def test_jsonl_whole_number_beyond_the_head_where_fractions_were(log, drain) -> None:
    log.write("a.jsonl", '{"x": 0.5}\n' * 100_000 + '{"x": 1}\n')
    assert drain(log.files(), {})[-1] == {"x": 1.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"x": 1}\n{"x": \n', "line 2:"),
        ('{"x": 1}\n[1, 2]\n', "line 2: a line must be a JSON object"),
        ('{"x": 1}\nhello\n', "line 2:"),
        (b'{"x": 1}\n{"x": "\xff"}\n', "line 2:"),
        ("[" * 100_000 + "\n", "line 1:"),
    ],
    ids=["cut", "list", "word", "utf-8", "deep"],
)
def test_jsonl_broken_rows_are_errors_with_their_line(log, content, message) -> None:
    log.write("a.jsonl", content)
    with pytest.raises(SourceError, match=f"(?s)a\\.jsonl, {message}"):
        list(log.files().read(log.files().pending({})))


@pytest.mark.parametrize("late", ['{"x": [1, 2.5], "o": {"k": 1}}', '{"x": [1, 2], "o": {"k": 1.5}}'])
def test_jsonl_fraction_among_whole_numbers_is_not_cut_off(log, late) -> None:
    log.write("a.jsonl", '{"x": [1, 2], "o": {"k": 1}}\n' * 50_000 + late + "\n")
    with pytest.raises(SourceError, match=r"a\.jsonl, line 50001: .*whole numbers"):
        list(log.files().read(log.files().pending({})))


def test_jsonl_number_too_big_for_any_type_is_infinite(log, drain) -> None:
    log.write("a.jsonl", '{"x": 1' + "0" * 400 + "}\n")
    assert drain(log.files(), {}) == [{"x": math.inf}]


@pytest.mark.parametrize(
    ("half", "read"),
    [(r"\ud83d", "?"), (r"\uDE00", "?"), (r"\ud83d\ud83d\ude00", "?\N{GRINNING FACE}")],
    ids=["first", "second", "before a whole one"],
)
def test_jsonl_half_of_a_sign_is_marked_and_the_row_is_read(log, drain, half, read) -> None:
    log.write("a.jsonl", f'{{"x": 1, "say": "hi"}}\n{{"x": 2, "say": "{half}", "{half}": 3}}\n')
    assert drain(log.files(), {}) == [{"x": 1, "say": "hi", read: None}, {"x": 2, "say": read, read: 3}]


def test_jsonl_half_of_a_sign_beyond_the_head_is_marked(log, drain) -> None:
    log.write("a.jsonl", '{"say": "hi"}\n' * 100_000 + r'{"say": "hi \ud83d"}' + "\n")
    assert drain(log.files(), {})[-2:] == [{"say": "hi"}, {"say": "hi ?"}]


def test_jsonl_other_type_beyond_the_head_names_line_column_and_way_out(log) -> None:
    log.write("a.jsonl", '{"count": 1}\n' * 100_000 + '{"count": 1.5}\n')
    with pytest.raises(SourceError, match=r"a\.jsonl, line 100001: column 'count' is int64.*types: {count:"):
        list(log.files().read(log.files().pending({})))
    stated = log.files(types={"count": "float64"})
    assert sum(batch.rows.num_rows for batch in stated.read(stated.pending({}))) == 100_001


def test_jsonl_column_of_the_last_row_alone_is_read_though_it_has_no_newline(log, drain) -> None:
    log.write("a.jsonl", '{"x": 1}\n\n{"y": 2}', age=100)
    assert drain(log.files(), {}) == [{"x": 1, "y": None}, {"x": None, "y": 2}]
