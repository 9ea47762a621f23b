"""What production logged of its own answers: in any form that logs have, and told where it is none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opmon.errors import ModelError, SourceError
from opmon.scoring.logged import LoggedColumns, LoggedScorer
from opmon.scoring.outputs.variables import variables_of
from opmon.scoring.scored import Scored
from opmon.spellings import Spellings
from opmon.types import Batch

RNG = np.random.default_rng(5)
CLASSES = ("bird", "cat", "dog")
SCORES = RNG.dirichlet(np.ones(3), 60)
SAID = np.array(CLASSES)[SCORES.argmax(axis=1)]


def scored(columns: dict[str, Any], classes: tuple[str, ...] | None = CLASSES, pieces: int = 3, **given: Any) -> Scored:
    """The answers on all rows, read in a few batches."""
    settings = {name: given.pop(name) for name in ("problem", "spellings", "meaning") if name in given}
    scorer = LoggedScorer(LoggedColumns(**given), classes=classes, **settings)
    rows = pa.table(columns).combine_chunks().to_batches()[0]
    size = -(-rows.num_rows // pieces)
    batches = [Batch(0, start, rows.slice(start, size)) for start in range(0, rows.num_rows, size)]
    parts = list(scorer.score(batches))
    return Scored(
        0,
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.predictions for part in parts]),
        {name: np.concatenate([part.variables[name] for part in parts]) for name in parts[0].variables},
        {row: reason for part in parts for row, reason in part.rejected.items()},
        unlike=sum(part.unlike for part in parts),
        unscored=sum(part.unscored for part in parts),
        classes=parts[-1].classes,
    )


FORMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a column each": ({f"p_{name}": SCORES[:, k] for k, name in enumerate(CLASSES)}, ("p_bird", "p_cat", "p_dog")),
    "a list": ({"p": SCORES.tolist()}, ("p",)),
    "a fixed list": ({"p": pa.array(SCORES.tolist(), pa.list_(pa.float32(), 3))}, ("p",)),
    "a struct in another order": ({"p": [dict(zip(CLASSES[::-1], row[::-1], strict=True)) for row in SCORES]}, ("p",)),
    "a map": (
        {"p": pa.array([list(zip(CLASSES, row, strict=True)) for row in SCORES.tolist()],
                       pa.map_(pa.string(), pa.float64()))},
        ("p",),
    ),
    "JSON lists": ({"p": [json.dumps(row) for row in SCORES.tolist()]}, ("p",)),
    "JSON objects": ({"p": [json.dumps(dict(zip(CLASSES, row, strict=True))) for row in SCORES.tolist()]}, ("p",)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_scores_in_every_form_say_the_same(form: str) -> None:
    columns, names = FORMS[form]
    found = scored(columns, scores=names)
    assert found.predictions.tolist() == SAID.tolist()
    assert found.classes == CLASSES
    for name, values in variables_of(SCORES).items():
        assert found.variables[name] == pytest.approx(values, rel=1e-5)
    assert found.rejected == {}


@pytest.mark.parametrize(
    "column", [["0,12", "0,9"] * 30, [12.5, 0.4, 0.9, 0.2] * 15, [None, 0.4] * 30], ids=["comma", "%", "none"]
)
def test_answers_beside_which_no_scores_can_be_read_are_counted(column: list[Any]) -> None:
    found = scored({"p": column, "said": ["ok"] * 60}, classes=("ok", "fraud"), scores=("p",), prediction="said")
    assert found.unscored == {"0,12": 60, 12.5: 15, None: 30}[column[0]]
    assert len(found.rows) == 60


def test_the_answer_may_be_another_than_the_greatest_score() -> None:
    said = SAID.copy()
    said[:7] = np.where(said[:7] == "cat", "dog", "cat")
    found = scored({"p": SCORES.tolist(), "said": said}, scores=("p",), prediction="said")
    assert (found.predictions.tolist(), found.unlike) == (said.tolist(), 7)


def test_answers_alone_need_no_scores() -> None:
    spellings = Spellings.of({"bird": [0], "cat": [1], "dog": [2]})
    for column in (SAID, SCORES.argmax(axis=1), SCORES.argmax(axis=1).astype(float)):
        found = scored({"said": column}, prediction="said", spellings=spellings)
        assert (found.predictions.tolist(), dict(found.variables)) == (SAID.tolist(), {})
    assert scored({"said": SAID}, None, prediction="said").classes is None


def test_one_number_tells_two_classes_apart() -> None:
    chance = RNG.uniform(size=50)
    found = scored({"p": chance}, ("good", "bad"), scores=("p",))
    assert found.predictions.tolist() == np.where(chance > 0.5, "bad", "good").tolist()
    strict = scored({"p": chance}, ("good", "bad"), prediction="p", scores=("p",), threshold=0.9)
    assert strict.predictions.tolist() == np.where(chance >= 0.9, "bad", "good").tolist()
    assert strict.variables["confidence"] == pytest.approx(1 - np.maximum(chance, 1 - chance), abs=1e-6)


@pytest.mark.parametrize("meaning", ["logits", "independent"])
def test_scores_may_be_no_probabilities(meaning: Any) -> None:
    values = RNG.normal(size=(60, 3)) * 3 if meaning == "logits" else RNG.uniform(size=(60, 3))
    found = scored({"p": values.tolist()}, scores=("p",), meaning=meaning)
    assert found.predictions.tolist() == np.array(CLASSES)[values.argmax(axis=1)].tolist()
    with pytest.raises(ModelError, match="Set scores: logits or scores: independent"):
        scored({"p": values.tolist()}, scores=("p",))


def test_numbers_of_a_regression() -> None:
    found = scored({"y": ["1.5", "2", None, ""]}, None, prediction="y", problem="regression")
    assert found.predictions.tolist() == [1.5, 2.0]
    assert found.rejected == {2: "column 'y' is empty", 3: "column 'y' is empty"}


def test_an_input_without_scores_is_the_most_suspicious_and_one_without_an_answer_is_left_out() -> None:
    rows = SCORES.tolist()
    rows[4], rows[9] = None, [0.5, 0.5]
    said = SAID.astype(object)
    said[11], said[12] = None, "  "
    found = scored({"p": rows, "said": said}, scores=("p",), prediction="said")
    assert found.rejected == dict.fromkeys((11, 12), "column 'said' is empty")
    for row in (4, 9):
        place = found.rows.tolist().index(row)
        assert found.variables["confidence"][place] == pytest.approx(2 / 3)
        assert found.variables["confidence"][place] == found.variables["confidence"].max()
    alone = scored({"p": rows}, scores=("p",))
    assert alone.rejected == dict.fromkeys((4, 9), "column 'p' has no scores, or no probabilities")


def test_a_slip_costs_its_input_and_other_words_stop_everything() -> None:
    said = SAID.astype(object)
    said[3] = "ERROR"
    found = scored({"said": said}, prediction="said")
    assert found.rejected == {3: "column 'said' holds 'ERROR', which is none of the classes"}
    with pytest.raises(SourceError, match=r"BIRD .*the model's classes are bird, cat, dog.*'classes'"):
        scored({"said": np.char.upper(SAID)}, prediction="said")


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no such column": ({"said": SAID}, {"prediction": "answer"}, "no column 'answer'; they have: said"),
    "a list as the answer": ({"said": SCORES.tolist()}, {"prediction": "said"}, "a prediction is text, a number"),
    "bytes": ({"said": [b"x"] * 60}, {"prediction": "said"}, "binary, and a prediction is text"),
    "too few columns": ({"a": SCORES[:, 0], "b": SCORES[:, 1]}, {"scores": ("a", "b")}, "2 columns, and there are 3"),
    "a longer list": ({"p": np.ones((9, 4)).tolist()}, {"scores": ("p",)}, "lists of 4 numbers, and there are 3"),
    "other fields": ({"p": [{"x": 1.0}]}, {"scores": ("p",)}, "no score of bird, cat, dog; it has: x"),
    "fewer fields": (
        {"p": [{"bird": 0.5, "cat": 0.5}] * 60},
        {"scores": ("p",)},
        "no score of dog; it has: bird, cat",
    ),
    "a number for three": (
        {"p": [0.5] * 60},
        {"scores": ("p",), "problem": "multilabel"},
        "each of 3 classes has a score of its own",
    ),
    "text": ({"p": ["a", "b"], "q": [1, 2], "r": [1, 2]}, {"scores": ("p", "q", "r")}, "'p' does not hold numbers"),
    "a threshold of three": ({"p": [0.2]}, {"prediction": "p", "threshold": 0.5}, "between two classes, and there are"),
}


@pytest.mark.parametrize("pieces", [1, 3, 60])
@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_read_is_told(case: str, pieces: int) -> None:
    columns, given, told = WRONG[case]
    with pytest.raises(SourceError, match=told):
        scored(columns, pieces=pieces, **given)


def test_hostile_json_costs_its_line() -> None:
    texts = [json.dumps(row) for row in SCORES.tolist()]
    texts[0], texts[1], texts[2], texts[3] = "[" * 100_000, "{", "null", '[true, "x", NaN]'
    found = scored({"p": texts}, scores=("p",))
    assert sorted(found.rejected) == [0, 1, 2, 3]


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_given_where_they_are_kept(form: str) -> None:
    columns, names = FORMS[form]
    scorer = LoggedScorer(LoggedColumns(scores=names), classes=CLASSES).keeping_scores()
    (part,) = scorer.score([Batch(0, 0, pa.table(columns).combine_chunks().to_batches()[0])])
    assert part.scores == pytest.approx(SCORES, abs=1e-6)


def test_the_score_that_decided_between_two_is_that_of_the_second() -> None:
    columns = LoggedColumns(prediction="p", threshold=0.3)
    scorer = LoggedScorer(columns, classes=("ok", "fraud")).keeping_scores()
    (part,) = scorer.score([Batch(0, 0, pa.record_batch({"p": [0.1, None, 0.4]}))])
    assert part.predictions.tolist() == ["ok", "fraud"]
    assert part.scores == pytest.approx(np.array([[0.9, 0.1], [0.6, 0.4]]))


def test_a_score_of_another_scale_that_decided_is_no_probability() -> None:
    columns = LoggedColumns(prediction="p", threshold=50.0)
    scorer = LoggedScorer(columns, classes=("ok", "fraud")).keeping_scores()
    for numbers in ([0.2, 1.0], [0.2, 99.0]):
        (part,) = scorer.score([Batch(0, 0, pa.record_batch({"p": numbers}))])
        assert part.scores is None


ODD: dict[str, tuple[dict[str, Any], tuple[str, ...] | None]] = {
    "numbers in text": ({"p": ["0.7", None, "0.2", None, None, "0.9"]}, ("a", "b")),
    "lists of a number": ({"p": [[0.7], None, [0.2], None, None, [0.9]]}, ("a", "b")),
    "objects": ({"p": [{"a": 0.9, "b": 0.1}, {"a": 1.0}, None, {}, {"b": 0.2, "a": 0.8}, {"x": 1.0}]}, ("a", "b")),
    "objects that nobody named": ({"p": [{"a": 0.9, "b": 0.1}, {"a": 1.0}, None, {}]}, None),
    "lists of another length": ({"p": [[0.9, 0.1], [0.4, 0.3, 0.3], [], None, [0.2, 0.8]]}, ("a", "b")),
    "lists that nobody named": ({"p": [None, [0.9, 0.1], None, [0.2, 0.8]]}, None),
    "other numbers": ({"p": [[7.0, 0.1], [0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]}, ("a", "b")),
    "no scores at all": ({"p": pa.array([None] * 3, pa.map_(pa.string(), pa.float64()))}, None),
    "objects of one class": ({"p": [{"a": 1.0}, {"b": 1.0}, None]}, ("a", "b")),
    "objects that lack a class": ({"p": [{"a": 0.7}, {"a": 1.0}, {"x": 1.0}]}, ("a", "b")),
}


def odd(case: str, kind: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
    columns, classes = ODD[case]
    rows = columns["p"]
    if kind == "JSON":
        rows = [row if row is None or isinstance(row, str) else json.dumps(row) for row in rows]
    elif kind == "map":
        rows = pa.array([row if row is None else [*row.items()] for row in rows], pa.map_(pa.string(), pa.float64()))
    return {"p": rows, "said": ["0" if "lists that" in case else "a"] * len(rows)}, classes


@pytest.mark.parametrize("problem", ["classification", "multilabel"])
@pytest.mark.parametrize(
    ("case", "kind"),
    [(case, "as they are") for case in ODD if "lack" not in case]
    + [(case, "JSON") for case in ODD if "no scores" not in case]
    + [(case, "map") for case in ODD if "objects" in case],
)
def test_rows_without_the_scores_that_are_wanted_cost_their_scores_whatever_else_is_read_with_them(
    case: str, kind: str, problem: str
) -> None:
    columns, classes = odd(case, kind)
    if problem == "multilabel":
        columns["said"] = [[name] for name in columns["said"]]
    size = len(columns["p"])
    given = {"scores": ("p",), "prediction": "said", "problem": problem, "classes": classes}
    if problem == "multilabel" and "number" in case and case != "other numbers":
        with pytest.raises(SourceError, match="lists of 1 numbers, and there are 2 classes"):
            scored(columns, pieces=size, **given)
        return
    one, *others = (scored(columns, pieces=pieces, **given) for pieces in (1, -(-size // 2), size))
    for other in others:
        assert other.unscored == one.unscored
        assert (other.predictions.tolist(), other.rejected) == (one.predictions.tolist(), one.rejected)
        if classes is not None:
            assert {name: values.tolist() for name, values in other.variables.items()} == {
                name: values.tolist() for name, values in one.variables.items()
            }
