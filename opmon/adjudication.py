"""A drawn input that annotators are asked about, and the one answer that counts among theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal

from opmon.types import Json, Label, Numbers

Decides = Literal["weighted", "expert", "mean", "median", "by_class"]
"""Whose answer counts where annotators differ, where that is not the most frequent one: the likeliest, a named
person's, the mean or median of scores or numbers, or of several classes each that most of them say."""

TRUTH = "truth"
"""Who gives the labels that arrive by themselves: no annotator may have this name."""


@dataclass(frozen=True)
class Asked:
    """A task and what its labels amount to so far. ``position`` is the input's place in the round's frame.

    An annotator's last word counts. A skip gives way to any answer. Among different answers the most frequent wins; of
    equally frequent ones the latest, unless the monitor adjudicates in another way (``ruling``). Truth that arrived by
    itself wins over all of them.

    >>> from datetime import UTC, datetime
    >>> now = datetime.now(UTC)
    >>> labels = Label(1, "ann", "7", now), Label(1, "ben", None, now), Label(1, "ann", "1", now)
    >>> Asked(0, "i0", "7", {}, {}, 1, labels).truth
    '1'
    """

    position: int
    input_id: str
    prediction: str
    variables: Mapping[str, float]
    payload: Mapping[str, Json]
    task_id: int | None = None
    """Its number in the queue; None until it is there."""
    labels: tuple[Label, ...] = ()
    """All labels that were given, in the order they came."""
    input_at: datetime | None = None
    """When production answered the input, where that is known."""
    needs: int = 1
    """How many annotators are to speak of it."""
    confirm: int = 0
    """How many are to answer where an answer makes it a failure of the model; 0: as many as of any other."""
    lacks: int = 1
    """How many are still to speak of it; 0: it is settled."""
    gold: str | None = None
    """Its known truth, where it is a gold task: nobody drew it, and annotators are measured by it."""
    ruling: str | None = None
    """The answer that counts where that is not the majority's: an expert's, or the likeliest."""
    scores: Numbers | None = field(default=None, compare=False)
    """The model's probability of each class of the round; None where nobody wants to know them."""

    @property
    def is_spoken_of(self) -> bool:
        """Whether anybody has answered or skipped it."""
        return bool(self.labels)

    @cached_property
    def truth(self) -> str | None:
        """The answer that counts; None where nobody has said anything, or nobody could tell."""
        if self.arrived is not None:
            return self.arrived.truth
        if self.ruling is not None:
            return self.ruling
        answers = self._answers
        if len(answers) < 2:
            return answers[0] if answers else None
        counts = Counter(answers)
        most = max(counts.values())
        return next(answer for answer in reversed(answers) if counts[answer] == most)

    @cached_property
    def arrived(self) -> Label | None:
        """The truth that arrived by itself, as it was last corrected; None where none has."""
        return next((label for label in reversed(self.labels) if label.annotator == TRUTH), None)

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators who answered or skipped it; the one with the latest word comes last."""
        return tuple(self._last_words)

    @property
    def agreement(self) -> float | None:
        """The share of the annotators who gave an answer that gave this one, 1.0 where all skipped it; None where none
        of them has said anything. Truth that arrived by itself is what they are held against, and none of them."""
        if not self._words_of_annotators:
            return None
        return self._answers.count(self.truth or "") / len(self._answers) if self._answers else 1.0

    @cached_property
    def _last_words(self) -> dict[str, str | None]:
        words: dict[str, str | None] = {}
        for label in self.labels:
            words.pop(label.annotator, None)  # so that the dictionary keeps the order of the last words
            words[label.annotator] = label.truth
        return words

    @property
    def _words_of_annotators(self) -> dict[str, str | None]:
        return {annotator: truth for annotator, truth in self._last_words.items() if annotator != TRUTH}

    @property
    def answered(self) -> dict[str, str]:
        """What each annotator answered who did not skip it, the one with the latest word last."""
        return {annotator: truth for annotator, truth in self._words_of_annotators.items() if truth is not None}

    @property
    def _answers(self) -> list[str]:
        return list(self.answered.values())
