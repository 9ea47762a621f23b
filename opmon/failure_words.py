"""The words for failures: wrong answers, large errors of a regression, and outputs that people found wanting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from opmon.problems import Problem, traits
from opmon.scales import Scale

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
    happens: str = ""
    """That it happens, in a clause; empty: they come."""

    @property
    def come(self) -> str:
        """That there are some, in a clause that goes on with how often."""
        return self.happens or f"{self.noun}s come"

    @property
    def why(self) -> str:
        """What a group of them is and is not, in a sentence."""
        others, cause = "what the model has right", "why it fails"
        if self.happens == "":
            others, cause = "the other inputs", "what brings them about"
        return f"What the {self.noun}s of a group have in common sets them apart from {others}; it need not be {cause}."


FAILURE_WORDS: Mapping[FailureKind, FailureWords] = {
    "wrong": FailureWords("Failures", "failure", heading="What it got wrong", happens="the model fails"),
    "largest errors": FailureWords("Largest errors", "large error", number="error", ordered=True, picked=True),
    "errors": FailureWords(
        "Errors beyond the tolerance", "error", number="error", ordered=True, happens="errors beyond the tolerance come"
    ),
    "fails": FailureWords("Failed outputs", "failed output", "Output", "Judged", None),
    "low scores": FailureWords("Low scores", "low score", "Output", "Score", None, ordered=True),
}


def failure_kind(problem: Problem, tolerance: float | None, scale: Scale | None) -> FailureKind:
    """What the failures of a round are: the sentences about them differ.

    >>> failure_kind("classification", None, None), failure_kind("regression", None, None)
    ('wrong', 'largest errors')
    >>> failure_kind("regression", 2.0, None), failure_kind("judged", None, "stars")
    ('errors', 'low scores')
    """
    holds = traits(problem)
    if holds.of_numbers:
        return "largest errors" if tolerance is None else "errors"
    if holds.compares:
        return "wrong"
    return "fails" if scale == "pass_fail" else "low scores"
