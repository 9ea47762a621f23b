from __future__ import annotations

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opmon.errors import SourceError
from opmon.sources._lines import Lines

CELLS = st.text(st.sampled_from('ab,"\n\r ;é'), max_size=5)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8))
def test_csv_rows_are_cut_where_the_csv_module_writes_them(rows) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    data = written.getvalue().encode()
    ends, total = [], 0
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(row)
        total += len(line.getvalue().encode())
        ends.append(total)
    assert Lines(b",", 1 << 20).row_ends(data).tolist() == ends


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.text('ab,"\n ', max_size=4), st.text('xy"', max_size=3)), min_size=1, max_size=12),
    limit=st.integers(1, 5),
)
def test_csv_read_in_rounds_equals_the_csv_module(log, drain, rows, limit) -> None:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(["k", "a", "b"])
    writer.writerows([("k", *row) for row in rows])
    log.write("a.csv", written.getvalue())
    found = drain(log.files(types={"a": "string", "b": "string"}), {}, limit)
    assert [(row["a"] or "", row["b"] or "") for row in found] == rows


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (b'5" tall\nnext\n', [8, 13]),
        (b'a,5" by 3"\nb\n', [11, 13]),
        (b'"a""\n"\nb\n', [7, 9]),
        (b'"a"x"\n"\n', [6]),
        (b'""\n"\n', [3]),
        (b'a"b\n"c\nd"\n', [4, 10]),
    ],
)
def test_csv_quote_opens_only_where_a_field_starts(data, ends) -> None:
    assert Lines(b",", 1 << 20).row_ends(data).tolist() == ends


def test_csv_bom_crlf_blank_lines_and_quotes(log, drain) -> None:
    log.write("a.csv", b'\xef\xbb\xbfid,say "x"\r\n\r\n1,"a\r\nb"\r\n\r\n2,"c ""d"""\r\n')
    assert drain(log.files(), {}, 1) == [{"id": 1, 'say "x"': "a\r\nb"}, {"id": 2, 'say "x"': 'c "d"'}]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiter_is_found_in_the_header(log, drain, delimiter) -> None:
    log.write("a.csv", f"x{delimiter}y\n1{delimiter}a\n")
    assert drain(log.files(), {}) == [{"x": 1, "y": "a"}]


def test_csv_types(log, drain) -> None:
    log.write("a.csv", "i,f,b,t,code,day,none,mixed\n1,1.5,true,x,007,2026-01-02,,1\n,NaN,false,,1,2026-01-03,,b\n")
    first, second = drain(log.files(), {})
    assert first == {
        "i": 1,
        "f": 1.5,
        "b": True,
        "t": "x",
        "code": "007",
        "day": "2026-01-02",
        "none": None,
        "mixed": "1",
    }
    assert (second["i"], second["t"], second["mixed"]) == (None, None, "b")
    assert second["f"] != second["f"]


def test_csv_code_among_fractions_is_text(log, drain) -> None:
    log.write("a.csv", "x,y\n1.5,00.5\n007,1\n")
    assert drain(log.files(), {}) == [{"x": "1.5", "y": 0.5}, {"x": "007", "y": 1.0}]


def test_csv_missing_numbers_as_other_programs_write_them(log, drain) -> None:
    log.write("a.csv", "x,country\n1,NA\nNA,null\nNULL,b\n")
    assert drain(log.files(), {}) == [
        {"x": 1, "country": "NA"},
        {"x": None, "country": "null"},
        {"x": None, "country": "b"},
    ]


def test_csv_index_column_without_a_name(log, drain) -> None:
    log.write("a.csv", ",x\n0,5\n")
    assert drain(log.files(), {}) == [{"unnamed_0": 0, "x": 5}]


def test_csv_types_do_not_flip_beyond_the_head(log) -> None:
    log.write("a.csv", "x\n" + "1\n" * 1_000_000 + "2.5\n")
    with pytest.raises(SourceError, match=r"a\.csv, line 1000002: .*2\.5"):
        list(log.files().read(log.files().pending({})))
    stated = log.files(types={"x": "float64"})
    assert sum(batch.rows.num_rows for batch in stated.read(stated.pending({}))) == 1_000_001


def test_csv_types_of_a_round_do_not_depend_on_what_came_later(log, rows_of) -> None:
    log.write("a.csv", "x\n1\n")
    files = log.files()
    slices = files.pending({})
    before = rows_of(files, slices)
    log.append("a.csv", "abc\n")
    assert rows_of(files, slices) == before == [{"x": 1}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\n1,2\n3\n", "line 3: .*Expected 2 columns, got 1"),
        ("x,y\n1,2\n\n3,4,5\n", "line 4: .*Expected 2 columns, got 3"),
        (b"x,y\n1,\xff\xfe\n", "line 2: .*UTF"),
        (b"x,y\n1,a\n2,\x00b\n", "line 3: .*NUL"),
        ("x\r1\r2\r", "carriage return alone"),
        ("x,y\n1,2\n3,4\r5,6\n", "line 3: .*carriage return"),
        ("x,x\n1,2\n", "header names 'x' more than once"),
        ("x\n1\n".encode("utf-16"), "UTF-16"),
        ('x,y\n1,2\n3,"open\n4,5\n', "line 3: the last row is not whole"),
    ],
    ids=["short", "long", "utf-8", "nul", "mac", "return", "twice", "utf-16", "quote"],
)
def test_csv_broken_rows_are_errors_with_their_line(log, content, message) -> None:
    log.write("a.csv", content, age=7200)
    with pytest.raises(SourceError, match=f"(?s)a\\.csv.*{message}"):
        list(log.files().read(log.files().pending({})))


def test_csv_error_far_into_a_file_names_its_line(log) -> None:
    log.write("a.csv", "x,y\n" + '1,"a\nb"\n' * 300_000 + "1,2,3\n")
    with pytest.raises(SourceError, match=r"a\.csv, line 600002:"):
        list(log.files().read(log.files().pending({})))
