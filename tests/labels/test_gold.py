"""Gold files: what is in them, and what is refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from opmon.errors import InputError
from opmon.labels.gold import Gold, append, read_gold


def known(truth: str) -> str | None:
    return {"cat": "cat", "dog": "dog", "1": "dog"}.get(truth)


def file_of(folder: Path, *rows: object, name: str = "gold.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def test_a_json_file_with_a_picture(tmp_path: Path) -> None:
    picture = {"base64": base64.b64encode(b"GIF89a").decode()}
    first = {"input_id": "a", "label": "cat", "payload": {"image": picture, "age": 3}}
    second = {"input_id": "b", "truth": 1, "payload": {"image": None}, "prediction": "cat"}
    assert read_gold(file_of(tmp_path, first, "", second), known) == (
        Gold(1, "a", "cat", {"image": picture, "age": 3}),
        Gold(3, "b", "dog", {"image": None}, "cat"),
    )


def test_a_table_says_the_same(tmp_path: Path) -> None:
    path = file_of(tmp_path, "input_id,label,input.text,input.age", "a,cat,'=1+1,0.5", 'b,dog,"x, y",007', name="g.csv")
    assert read_gold(path, known) == (
        Gold(2, "a", "cat", {"text": "=1+1", "age": 0.5}),
        Gold(3, "b", "dog", {"text": "x, y", "age": "007"}),
    )


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"input_id": "a", "payload": {"x": 1}}, "without its truth"),
        ({"label": "cat", "payload": {"x": 1}}, "has no input_id"),
        ({"input_id": "a", "label": "cow", "payload": {"x": 1}}, "'cow', which nobody can answer"),
        ({"input_id": "a", "label": "cat"}, "nothing that annotators could see"),
        ({"input_id": "a", "label": "cat", "payload": []}, "nothing that annotators could see"),
        ({"input_id": "a", "label": "cat", "truth": "dog", "payload": {"x": 1}}, "says label twice"),
        ({"input_id": "a" * 1001, "label": "cat", "payload": {"x": 1}}, "more than 1,000 characters"),
        ({"input_id": "a", "label": "cat", "payload": {"x": "\0"}}, "U[+]0000"),
        ('{"input_id": "a", "label": "cat", "payload": {"x": "\\ud800"}}', "JSON cannot hold"),
        ('{"input_id": "a", "label": "cat", "payload": {"x": NaN}}', "JSON cannot hold"),
        ('{"input_id": "a", "label": "cat", "payload": ' + '{"x":' * 30 + "1" + "}" * 30 + "}", "nested more than 20"),
        ("[" * 100_000, "nested too deeply|no JSON object"),
        ("[1]", "no JSON object"),
        ("cat", "no JSON object"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, row: object, why: str) -> None:
    good = {"input_id": "z", "label": "cat", "payload": {"x": 1}}
    with pytest.raises(InputError, match=f"(?s)line 2.*({why})"):
        read_gold(file_of(tmp_path, good, row), known)


def test_an_input_that_comes_twice(tmp_path: Path) -> None:
    row = {"input_id": "a", "label": "cat", "payload": {"x": 1}}
    with pytest.raises(InputError, match="line 2 is input 'a' again, which line 1 has"):
        read_gold(file_of(tmp_path, row, row), known)


@pytest.mark.parametrize("name", ["none.jsonl", "empty.jsonl", "gold.txt"])
def test_a_file_that_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InputError, match=r"there is no gold file|holds no input|is \.jsonl"):
        read_gold(tmp_path / name, known)


def test_inputs_are_added_behind_the_others(tmp_path: Path) -> None:
    path = file_of(tmp_path, {"input_id": "a", "label": "cat", "payload": {"x": 1}})
    path.write_text(path.read_text().rstrip("\n"))
    append(path, [Gold(1, "b", "dog", {"x": 2}, "cat")])
    assert [(each.input_id, each.truth, each.prediction) for each in read_gold(path, known)] == [
        ("a", "cat", None),
        ("b", "dog", "cat"),
    ]
    assert list(tmp_path.iterdir()) == [path]
