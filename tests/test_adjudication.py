from __future__ import annotations

from datetime import UTC, datetime

from opmon.adjudication import adjudicate
from opmon.types import Label

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def said(*pairs: tuple[str, str | None]) -> list[Label]:
    return [Label(1, annotator, truth, NOW) for annotator, truth in pairs]


def test_nothing_said_is_no_answer() -> None:
    assert adjudicate([]) is None


def test_a_skip_gives_way_to_any_answer() -> None:
    answer = adjudicate(said(("ann", None), ("ben", "7"), ("cem", None)))
    assert answer is not None
    assert answer.truth == "7"
    assert answer.annotators == ("ann", "ben", "cem")


def test_only_skips_are_a_skip() -> None:
    answer = adjudicate(said(("ann", None), ("ben", None)))
    assert answer is not None
    assert answer.truth is None


def test_the_majority_counts() -> None:
    answer = adjudicate(said(("ann", "7"), ("ben", "1"), ("cem", "7")))
    assert answer is not None
    assert answer.truth == "7"
    assert answer.agreement == 2 / 3


def test_of_a_tie_the_latest_counts() -> None:
    answer = adjudicate(said(("ann", "7"), ("ben", "1")))
    assert answer is not None
    assert (answer.truth, answer.agreement) == ("1", 0.5)


def test_the_last_word_of_an_annotator_counts_and_comes_last() -> None:
    answer = adjudicate(said(("ann", "7"), ("ben", "1"), ("ann", "3")))
    assert answer is not None
    assert answer.truth == "3"


def test_a_withdrawn_answer_is_a_skip() -> None:
    answer = adjudicate(said(("ann", "7"), ("ann", None)))
    assert answer is not None
    assert answer.truth is None
