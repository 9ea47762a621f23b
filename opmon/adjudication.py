"""From all that was said of one task to the one answer that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from opmon.types import Label


@dataclass(frozen=True)
class Answer:
    """What a task's labels amount to. ``truth`` is None where nobody could tell."""

    truth: str | None
    annotators: tuple[str, ...]
    agreement: float
    """The share of those who gave an answer that gave this one; 1.0 where there is one annotator."""


def adjudicate(labels: Sequence[Label]) -> Answer | None:
    """The answer of one task from its labels, in the order they came; None where there is none.

    An annotator's last word counts. A skip gives way to any answer. Among different answers the most frequent wins; of
    equally frequent ones the latest.

    >>> from datetime import UTC, datetime
    >>> now = datetime.now(UTC)
    >>> adjudicate([Label(1, "ann", "7", now), Label(1, "ben", None, now), Label(1, "ann", "1", now)]).truth
    '1'
    """
    last: dict[str, Label] = {}
    for label in labels:
        last.pop(label.annotator, None)  # so that the dictionary keeps the order of the last words
        last[label.annotator] = label
    if not last:
        return None
    answers = [label.truth for label in last.values() if label.truth is not None]
    if not answers:
        return Answer(None, tuple(last), 1.0)
    counts = Counter(answers)
    most = max(counts.values())
    truth = next(answer for answer in reversed(answers) if counts[answer] == most)
    return Answer(truth, tuple(last), most / len(answers))
