from __future__ import annotations

from datetime import UTC, datetime

from opmon.adjudication import Asked
from opmon.types import Label

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def said(*pairs: tuple[str, str | None]) -> Asked:
    return Asked(0, "i0", "7", {}, {}, 1, tuple(Label(1, annotator, truth, NOW) for annotator, truth in pairs))


def test_nothing_said_is_no_answer() -> None:
    task = said()
    assert not task.is_spoken_of
    assert (task.truth, task.annotators, task.agreement) == (None, (), None)


def test_a_skip_gives_way_to_any_answer() -> None:
    task = said(("ann", None), ("ben", "7"), ("cem", None))
    assert task.truth == "7"
    assert task.annotators == ("ann", "ben", "cem")


def test_only_skips_are_a_skip() -> None:
    task = said(("ann", None), ("ben", None))
    assert task.is_spoken_of
    assert (task.truth, task.agreement) == (None, 1.0)


def test_the_majority_counts() -> None:
    task = said(("ann", "7"), ("ben", "1"), ("cem", "7"))
    assert (task.truth, task.agreement) == ("7", 2 / 3)


def test_of_a_tie_the_latest_counts() -> None:
    task = said(("ann", "7"), ("ben", "1"))
    assert (task.truth, task.agreement) == ("1", 0.5)


def test_the_last_word_of_an_annotator_counts_and_comes_last() -> None:
    task = said(("ann", "7"), ("ben", "1"), ("ann", "3"))
    assert task.truth == "3"
    assert task.annotators == ("ben", "ann")


def test_a_withdrawn_answer_is_a_skip() -> None:
    task = said(("ann", "7"), ("ann", None))
    assert task.is_spoken_of
    assert task.truth is None
