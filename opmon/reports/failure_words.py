"""The words for failures: wrong answers, large errors of a regression, and outputs that people found wanting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FailureKind = Literal["wrong", "largest errors", "errors", "fails", "low scores"]


@dataclass(frozen=True, slots=True)
class FailureWords:
    """How pages speak of failures of one kind."""

    title: str
    noun: str
    """One of them."""
    prediction: str = "Said"
    truth: str = "Is"
    """The headings of what the model said and of what people say."""
    number: Literal["confidence", "error"] | None = "confidence"
    """The number that a table has of each."""
    ordered: bool = False
    """Whether the worst ones come first."""
    picked: bool = False
    """Whether they are the worst of all that were labelled, however good those are."""
    heading: str = ""
    """What stands over some of them; empty: the title."""


FAILURE_WORDS: Mapping[FailureKind, FailureWords] = {
    "wrong": FailureWords("Failures", "failure", heading="What it got wrong"),
    "largest errors": FailureWords("Largest errors", "error", number="error", ordered=True, picked=True),
    "errors": FailureWords("Errors beyond the tolerance", "error", number="error", ordered=True),
    "fails": FailureWords("Failed outputs", "failed output", "Output", "Judged", None),
    "low scores": FailureWords("Low scores", "low score", "Output", "Score", None, ordered=True),
}
