"""Answers that are several classes, or free outputs, are told from those that are one of a few words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from opmon.setup.by_log import by_log
from opmon.setup.choice import nested
from opmon.setup.log import Log

TAGS = [["price"], ["price", "staff"], [], ["app"]] * 25
PROMPTS = [f"What is {k} + 1? Say it in one sentence." for k in range(100)]
ANSWERS = [f"It is {k + 1}, since one more than {k} is that." for k in range(100)]
WORDS = ["yes", "no"] * 50


def found(**columns: Any) -> dict[str, Any]:
    return nested(by_log(Log(pa.table(columns), 100))[0])


@pytest.mark.parametrize(
    "tags",
    [TAGS, [";".join(each) for each in TAGS], [str(each).replace("'", '"') for each in TAGS]],
    ids=["lists", "text", "json"],
)
def test_several_classes_are_known_by_their_lists(tags: list[Any]) -> None:
    given = found(review=PROMPTS, tags=tags)
    assert (given["problem"], given["columns"]) == ("multilabel", {"prediction": "tags"})
    assert given["classes"] == ["app", "price", "staff"]


def test_lists_of_zeros_and_ones_are_the_places_of_classes_that_want_names() -> None:
    given = found(review=PROMPTS, tags=[[0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]] * 25)
    assert (given["problem"], given["columns"]) == ("multilabel", {"prediction": "tags"})
    assert given["classes"] == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["answer", "response", "completion", "generated_text"])
def test_sentences_are_judged(name: str) -> None:
    given = found(prompt=PROMPTS, tokens=list(range(100)), **{name: ANSWERS})
    assert given["problem"] == "judged"
    assert given["columns"] == {"prediction": name, "text": "prompt"}
    assert given["labels"] == {"scale": "pass_fail"}


def test_lists_of_whatever_is_always_another_are_judged() -> None:
    ranking = [[f"item {k}", f"item {k + 1}", f"item {3 * k + 200}"] for k in range(100)]
    assert found(query=WORDS, ranking=ranking)["problem"] == "judged"
    boxes = [[{"label": "cat", "box": [k, 1.0, 2.0, 3.0]}] for k in range(100)]
    assert found(picture=PROMPTS, detections=boxes)["problem"] == "judged"


def test_one_of_a_few_words_is_classified_as_ever() -> None:
    assert found(prompt=PROMPTS, decision=WORDS)["problem"] == "classification"
    assert found(comment=ANSWERS, verdict=WORDS, response=ANSWERS)["problem"] == "classification"
    assert found(answer=["a, b", "c"] * 50)["problem"] == "multilabel"
