from __future__ import annotations

import contextlib
import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.errors import InputError
from opmon.labels import files
from opmon.labels.files import ImportedLabel, format_of, read_labels, write_tasks
from opmon.labels.rows import guarded, unguarded
from opmon.types import Task

TASKS = [
    Task(1, "digits", 4, "a-1", {"text": "=cmd()", "pixels": [0.5, float("nan")], "label": "not the answer"}, "t1-abc"),
    Task(2, "digits", 4, "-2", {"text": "plain, with «signs»", "image": b"\x89PNG\x00"}, "t2-def"),
]


def read(text: str | bytes, format: files.Format, **more):
    return read_labels(io.BytesIO(text.encode() if isinstance(text, str) else text), format, **more)


def truths(text: str | bytes, format: files.Format = "csv") -> list[str | None]:
    return [label.truth for label in read(text, format).labels]


def problem(text: str | bytes, format: files.Format = "csv") -> str:
    with pytest.raises(InputError) as raised:
        read(text, format)
    return str(raised.value)


# out


def test_tasks_as_jsonl(tmp_path: Path) -> None:
    assert write_tasks(TASKS, tmp_path / "tasks.jsonl") == 2
    first, second = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text().splitlines()]
    assert first == {
        "task_key": "t1-abc", "task_id": 1, "monitor": "digits", "round": 4, "input_id": "a-1", "label": None,
        "payload": {"text": "=cmd()", "pixels": [0.5, None], "label": "not the answer"},
    }  # fmt: skip
    assert second["payload"]["image"] == {"base64": "iVBORwA="}


def test_tasks_as_csv(tmp_path: Path) -> None:
    write_tasks(TASKS, tmp_path / "tasks.csv")
    with (tmp_path / "tasks.csv").open(encoding="utf-8-sig", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert first["task_id"] == "1"
    assert first["label"] == ""
    assert first["input.text"] == "'=cmd()"
    assert first["input.label"] == "not the answer"
    assert second["input_id"] == "'-2"
    assert second["input.pixels"] == ""


def test_a_spreadsheet_sees_utf8(tmp_path: Path) -> None:
    write_tasks(TASKS, tmp_path / "tasks.csv")
    assert (tmp_path / "tasks.csv").read_bytes().startswith(b"\xef\xbb\xbftask_key,task_id,")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", '=HYPERLINK("x")'])
def test_no_cell_is_a_formula(text: str) -> None:
    stream = io.StringIO()
    write_tasks([Task(1, text, 1, text, {"x": text, text: [text]})], stream, "csv")
    _, row = csv.reader(io.StringIO(stream.getvalue().removeprefix("\ufeff"), newline=""))
    assert not any(each.startswith(("=", "+", "-", "@", "\t", "\r")) for each in row)


def test_a_number_below_zero_stays_a_number() -> None:
    stream = io.StringIO()
    write_tasks([Task(1, "m", 1, "a", {"x": -0.5})], stream, "csv")
    assert stream.getvalue().rstrip().endswith(",-0.5")


def test_what_is_too_long_for_a_cell_is_said(tmp_path: Path) -> None:
    write_tasks([Task(1, "m", 1, "a", {"image": b"x" * 100_000})], tmp_path / "tasks.csv")
    assert "export as JSONL" in (tmp_path / "tasks.csv").read_text()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    def failing():
        yield TASKS[0]
        raise RuntimeError("the database went away")

    path = tmp_path / "tasks.jsonl"
    write_tasks(TASKS, path)
    before = path.read_bytes()
    with pytest.raises(RuntimeError):
        write_tasks(failing(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "words"), [("nowhere/tasks.csv", "cannot be written"), ("folder.csv", "is a folder")])
def test_where_nothing_can_be_written(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=words):
        write_tasks(TASKS, tmp_path / name)


def test_text_that_is_no_unicode_is_still_written(tmp_path: Path) -> None:
    for name in ("tasks.jsonl", "tasks.csv"):
        write_tasks([Task(1, "m", 1, "a", {"text": "half \ud800", "list": ["\udfff"]})], tmp_path / name)
        assert "half \\ud800" in (tmp_path / name).read_text(encoding="utf-8").replace("\\\\", "\\")


@pytest.mark.parametrize(
    ("name", "found"), [("a.jsonl", "jsonl"), ("a.NDJSON", "jsonl"), ("a.csv", "csv"), ("a.tsv", "csv")]
)
def test_the_format_is_in_the_name(name: str, found: str) -> None:
    assert format_of(name) == found


def test_an_unknown_format() -> None:
    with pytest.raises(InputError, match=r"labels\.xlsx: a label file is \.jsonl.*--format"):
        format_of("labels.xlsx")


# out and back


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_an_export_comes_back_unanswered(tmp_path: Path, format: files.Format) -> None:
    path = tmp_path / f"tasks.{format}"
    write_tasks(TASKS, path)
    assert read_labels(path) == files.LabelFile((), unanswered=2)


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_an_answered_export_comes_back(tmp_path: Path, format: files.Format) -> None:
    path = tmp_path / f"tasks.{format}"
    write_tasks(TASKS, path)
    text = path.read_text(encoding="utf-8-sig")
    path.write_text(text.replace("'-2,,", "'-2,=7,").replace('"-2", "label": null', '"-2", "label": "=7"'))
    found = read_labels(path, annotator="ann")
    assert found.labels == (ImportedLabel(found.labels[0].line, "=7", 2, "digits", "-2", "ann", None, "t2-def", 4),)
    assert found.unanswered == 1


@given(st.text())
def test_the_guard_can_be_taken_off(text: str) -> None:
    assert unguarded(guarded(text)) == text


words = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30).map(lambda text: f"w{text}w")


def answered(text: str, format: files.Format) -> str:
    """The export with the labels 0, 1, 2, … filled in, as an annotator's tool would."""
    if format == "jsonl":
        rows = [json.loads(line) for line in text.split("\n") if line]
        return "".join(json.dumps({**row, "label": k}) + "\n" for k, row in enumerate(rows))
    header, *table = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    out = io.StringIO(newline="")
    csv.writer(out).writerows([header, *([*row[:5], k, *row[6:]] for k, row in enumerate(table))])
    return out.getvalue()


@given(st.lists(words, min_size=1, max_size=5), st.sampled_from("'=+-@"), st.sampled_from(["jsonl", "csv"]))
def test_any_input_id_survives(ids: list[str], first: str, format: files.Format) -> None:
    stream = io.StringIO(newline="")
    write_tasks([Task(k + 1, "m", 1, first + name, {}) for k, name in enumerate(ids)], stream, format)
    text = answered(stream.getvalue(), format)
    found = read(text, format).labels
    assert [(label.input_id, label.truth) for label in found] == [(first + name, str(k)) for k, name in enumerate(ids)]


# in


def test_a_row_in_full() -> None:
    text = "monitor,input_id,truth,annotator,at\ndigits,a-1,7,ann,2026-11-18T08:00:00Z\n"
    assert read(text, "csv").labels == (
        ImportedLabel(2, "7", None, "digits", "a-1", "ann", datetime(2026, 11, 18, 8, tzinfo=UTC)),
    )


def test_all_that_a_row_says_of_its_task_is_kept() -> None:
    text = (
        "task_key,task_id,monitor,round,input_id,label\nt7-0123456789ab,7,digits,4,a-1,cat\nt8-0123456789ab,,,,,dog\n"
    )
    first, second = read(text, "csv").labels
    assert (first.task_key, first.task_id, first.monitor, first.round, first.input_id) == (
        "t7-0123456789ab", 7, "digits", 4, "a-1",
    )  # fmt: skip
    assert (second.task_key, second.task_id, second.monitor, second.round) == ("t8-0123456789ab", None, None, None)


def test_a_row_of_another_monitor_than_the_callers_is_wrong() -> None:
    with pytest.raises(InputError, match="line 2 is of monitor 'letters', and 'digits' was asked for"):
        read("monitor,input_id,label\nletters,a,1\n", "csv", monitor="digits")
    assert "round must be a whole number above 0; got 'first'" in problem("task_key,round,label\nt1-0,first,cat\n")


def test_the_monitor_may_come_from_the_caller() -> None:
    (label,) = read("input_id,label\na,1\n", "csv", monitor="digits").labels
    assert (label.monitor, label.input_id) == ("digits", "a")


@pytest.mark.parametrize(
    "text",
    [
        "task_id,label\n1,cat\n2,dog\n",
        "\ufefftask_id,label\r\n1,cat\r\n2,dog\r\n",
        "task_id;label;comment\r\n1;cat;a, b, c\r\n2;dog;\r\n",
        "task_id\tlabel\n1\tcat\n2\tdog\n",
        "Task ID,Truth,whatever\n1,cat,x\n2,dog,y\n",
        '"task_id","label"\n"1"," cat "\n\n"2","dog"\n,\n',
        "task_id,label\n1.0,cat\n2.0,dog",
        'label,text,task_id\ncat,"two\nlines, and a ""quote""",1\ndog,x,2\n',
    ],
)
def test_tables_of_many_kinds(text: str) -> None:
    assert truths(text) == ["cat", "dog"]


@pytest.mark.parametrize(
    ("value", "truth"),
    [
        ('"cat"', "cat"),
        ("3", "3"),
        ("3.0", "3.0"),
        ("-0.25", "-0.25"),
        ("true", "true"),
        ('" cat "', "cat"),
        ('"None"', "None"),
    ],
)
def test_values_in_jsonl(value: str, truth: str) -> None:
    assert truths(f'{{"task_id": 1, "label": {value}, "payload": {{"label": "x"}}}}\n', "jsonl") == [truth]


@pytest.mark.parametrize("value", ["null", '""', '"  "', "NaN"])
def test_no_answer_in_jsonl_is_counted(value: str) -> None:
    assert read(f'{{"task_id": 1, "label": {value}}}\n{{"task_id": 2}}\n', "jsonl").unanswered == 2


def test_no_answer_in_a_table_is_counted() -> None:
    found = read("task_id,label\n1,\n2, \n3,cat\n", "csv")
    assert (len(found.labels), found.unanswered) == (1, 2)


@pytest.mark.parametrize("text", ["nan", "NaN", "None", "null", "true", "1.0"])
def test_a_word_that_may_be_a_class_is_kept_as_it_is(text: str) -> None:
    assert truths(f"task_id,label\n1,{text}\n") == [text]
    assert truths(f'{{"task_id": 1, "label": "{text}"}}\n', "jsonl") == [text]


def test_a_skip_is_an_answer() -> None:
    assert truths("task_id,label,skip\n1,,true\n2,,X\n3,cat,\n4,cat,no\n5,,0\n") == [None, None, "cat", "cat"]
    assert truths('{"task_id": 1, "skip": true}\n', "jsonl") == [None]


def test_two_annotators_may_answer_the_same_task() -> None:
    assert truths("task_id,label,annotator\n1,cat,ann\n1,dog,ben\n") == ["cat", "dog"]


def test_text_streams_are_read_too() -> None:
    assert read_labels(io.StringIO("task_id,label\n1,cat\n"), "csv").labels[0].truth == "cat"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x,cat,,,", "line 2 task_id must be a whole number above 0; got 'x'"),
        ("0,cat,,,", "task_id must be"),
        ("1.5,cat,,,", "task_id must be"),
        ("1,cat,,,,", "has 6 values for 5 columns"),
        ("99999999999999999999,cat,,,", "task_id must be"),
        (",cat,,,", "names neither a task_key nor an input_id"),
        ("1,cat,yes,,", "holds a label, 'cat', and says skip"),
        ("1,cat,perhaps,,", "skip must be true or false; got 'perhaps'"),
        ("1,cat,,,yesterday", "at must be a time with its zone, such as 2026"),
        ("1,cat,,,2026-11-18 08:00", "at must be a time with its zone"),
        ("1,cat", "has 2 values for 5 columns"),
        ("1,cat,,,,,", "has 7 values for 5 columns"),
        ("1,c\x00at,,,", "label holds the character U+0000"),
        (f"1,{'x' * 20_000},,,", "label is longer than 10,000 characters"),
        (f"1,cat,,{'x' * 300},", "annotator is longer than 200 characters"),
        ("1,dog,,,\n1,cat,,,", "line 3 answers the same task for the same annotator as line 2"),
        ('1,"cat,,,', "is no row of a table"),
        (f'1,"{"x" * 200_000}",,,', "is no row of a table"),
    ],
)
def test_wrong_rows_of_a_table(row: str, words: str) -> None:
    assert words in problem(f"task_id,label,skip,annotator,at\n{row}\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1 is no JSON object"),
        ("[1]", 'is no JSON object, such as {"monitor"'),
        ("7", "is no JSON object, such as"),
        ('{"task_id": true, "label": "a"}', "task_id must be"),
        ('{"task_id": [1], "label": "a"}', "task_id must be"),
        ('{"task_id": 1, "label": [["a"]]}', "label must be text, a number or a list of classes"),
        ('{"task_id": 1, "label": Infinity}', "finite number"),
        ('{"task_id": 1, "label": "\\ud800"}', "U+D800"),
        ('{"task_id": 1, "label": "a", "label": "b"}', "says label twice, 'a' and 'b'"),
        ('{"task_id": 1, "label": "a", "truth": "b"}', "says label twice"),
        ('{"task_id": 1, "label": "a", "annotator": {}}', "annotator must be text"),
        ('{"task_id": 1, "label": "a", "at": 5}', "at must be a time"),
        ('{"input_id": "a", "label": "b"}', "without its monitor"),
        ('{"task_id": 1, "label": ' + "[" * 100_000, "is nested too deeply"),
        ('{"task_id": 1, "label": ' + "9" * 5000 + "}", "is no JSON object"),
    ],
)
def test_wrong_lines_of_jsonl(line: str, words: str) -> None:
    assert words in problem(line, "jsonl")


def test_every_wrong_line_is_counted_and_ten_are_told() -> None:
    text = "task_id,label\n1,cat\n" + "".join(f"x{n},cat\n" for n in range(25))
    lines = problem(text).splitlines()
    assert lines[0].endswith("25 lines are wrong, so nothing was read:")
    assert "line 3 task_id" in lines[1]
    assert lines[-1].strip() == "… and 15 more"
    assert len(lines) == 12


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"a,b\n1,2\n", "needs a column task_key (or input_id) and a column label (or truth); it has: a, b"),
        (b"task_id,text\n1,2\n", "needs a column"),
        (b"task_id,label,label\n1,2,3\n", "two columns called 'label'"),
        (b"task_id,label\n1,caf\xe9\n", "line 2 is not UTF-8"),
        ("task_id,label\n1,cat\n".encode("utf-16"), "line 1 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_files_that_are_no_table(content: bytes, words: str) -> None:
    assert words in problem(content)


def test_an_empty_jsonl_file_has_no_answers() -> None:
    assert read("", "jsonl") == files.LabelFile((), 0)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_labels(tmp_path / "labels.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "folder.csv")


def test_lines_and_files_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 50)
    assert "line 2 is longer than 50 bytes" in problem("task_id,label\n1," + "x" * 100)
    monkeypatch.setattr(files, "MAX_FILE", 30)
    assert "is larger than 30 bytes" in problem("task_id,label\n" + "1,cat\n" * 10)


@given(st.binary(max_size=200), st.sampled_from(["jsonl", "csv"]))
def test_whatever_is_read_it_is_labels_or_a_plain_error(content: bytes, format: files.Format) -> None:
    for text in (content, b"task_id,label\n" + content, b'{"task_id": 1, "label": ' + content + b"}"):
        with contextlib.suppress(InputError):
            read(text, format)
