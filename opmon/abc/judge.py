"""The contract of judges, which answer before people do: their answers are proxies, never labels unless told so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from opmon.abc.plugin import Plugin
from opmon.errors import InputError, PluginError
from opmon.types import Guide, Json


@dataclass(frozen=True, slots=True)
class Question:
    """One input that a judge is asked about. ``payload`` is what an annotator would see of it: the model's own answer
    is not in it. ``key`` names the input by its content."""

    key: str
    payload: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a judge holds to be the truth of the input ``key``; without an answer it could not tell.

    ``answer`` is a class in any of its spellings, or a number as text. ``scores`` say instead how likely each class is:
    a judge that knows how sure it is makes a better proxy.
    """

    key: str
    answer: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, score in self.scores.items():
            if not (math.isfinite(score) and 0 <= score <= 1):
                raise InputError(f"the score of a class lies between 0 and 1; got {score} for {name!r}")


class Judge(Plugin):
    """Answers what annotators are asked, before them and more cheaply, for inputs that nobody labels as well.

    Its answers need not be right: the labels correct them, and only how much narrower the interval becomes depends on
    them. For that an opinion must depend on its own input alone, not on which inputs were drawn: each input is asked
    about on its own, and the same input should get the same answer whenever it is asked about.

    One of two things is to be told: :attr:`registered`, or :meth:`answer`.
    """

    most: ClassVar[int | None] = None
    """How many inputs of a round it is asked about where the configuration does not say; None: all of them."""

    @property
    def registered(self) -> str | None:
        """The address of a registered model that answers in its place, by opmon's own ways of scoring."""
        return None

    def answer(self, questions: Sequence[Question], guide: Guide) -> Iterator[Opinion]:
        """Yield an opinion for each question as it comes, in any order: each is kept at once and never asked for again,
        so that a kill pays for nothing twice. ``guide`` says what may be answered.

        A question that is left out is asked again later. Raises :class:`~opmon.errors.UnavailableError` where trying
        again later is right; what was yielded before is kept.
        """
        raise PluginError(f"{type(self).__name__} names no registered model and has no answer() for inputs")
