"""What annotators said of inputs, coded for arithmetic: every class by whether it is the one that the model gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opmon.types import Floats

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Opinion:
    """What was answered of one input, by annotator, in the order of their last words; skips are left out."""

    answers: Mapping[str, str]
    prediction: str | None = None
    """What the model answered; None for a gold task of which that is not known: it then speaks of the annotators
    alone."""
    truth: str | None = None
    """The truth, where it is known: of a gold task, or because it arrived by itself."""
    group: int = 0
    """Inputs of one group have one failure rate: 0 for those drawn, others for what was labelled before."""

    @property
    def checks(self) -> int:
        """How many of the answers another one, or the truth, is there to check."""
        return len(self.answers) if self.truth is not None else max(len(self.answers) - 1, 0)


@dataclass(frozen=True, eq=False)
class Coded:
    """Opinions as arrays, one row per input, one column per answer.

    ``code`` is 0 for an answer that is the model's, ``j`` for the ``j``-th other class that occurs in the row, −1 where
    there is no answer. ``truth`` is the code of the known truth, −1 where it is not known.
    """

    code: Codes
    who: Codes
    distinct: Codes
    truth: Codes
    group: Codes
    annotators: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, opinions: Sequence[Opinion]) -> Coded:
        """The opinions as arrays; the answers of a row are in the order of their annotators' names."""
        names = tuple(sorted({name for each in opinions for name in each.answers}))
        number = {name: at for at, name in enumerate(names)}
        longest = max((len(each.answers) for each in opinions), default=0)
        code = np.full((len(opinions), max(longest, 1)), -1, dtype=np.int64)
        who = np.zeros_like(code)
        distinct, truth = np.zeros(len(opinions), dtype=np.int64), np.full(len(opinions), -1, dtype=np.int64)
        for row, each in enumerate(opinions):
            known = each.truth if each.prediction is None else each.prediction
            codes = {known: 0}
            if each.truth is not None:
                truth[row] = codes.setdefault(each.truth, len(codes))
            for column, (name, answer) in enumerate(sorted(each.answers.items())):
                code[row, column] = codes.setdefault(answer, len(codes))
                who[row, column] = number[name]
            distinct[row] = len(codes) - 1
        group = np.array([each.group for each in opinions], dtype=np.int64)
        return cls(code, who, distinct, truth, group, names)

    def __len__(self) -> int:
        return len(self.code)

    @property
    def occur(self) -> int:
        """The most other classes that occur in one row."""
        return int(self.distinct.max(initial=0))

    @cached_property
    def hits(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which answers are right under each truth, and which are wrong: (rows, truths, answers).

        The truths are that it is what the model said, each other class that occurs, and, last, one that does not.
        """
        code, there = self.code[:, None, :], self.code[:, None, :] >= 0
        hit = (code == np.arange(self.occur + 2)[None, :, None]) & there
        hit[:, -1] = False
        return hit, there & ~hit

    @cached_property
    def errors(self) -> NDArray[np.int64]:
        """How many answers are wrong under each truth: (rows, truths)."""
        return np.asarray(self.hits[1].sum(axis=2))

    @cached_property
    def excluded(self) -> NDArray[np.bool_]:
        """The truths that a known truth rules out: (rows, truths)."""
        return np.asarray((self.truth >= 0)[:, None] & (np.arange(self.occur + 2)[None, :] != self.truth[:, None]))

    @cached_property
    def beyond(self) -> NDArray[np.bool_]:
        """The other classes that occur elsewhere and not in the row: (rows, other classes)."""
        return np.asarray(np.arange(1, self.occur + 1)[None, :] > self.distinct[:, None])

    def grouped(self, weights: Floats) -> tuple[Coded, Floats, Codes]:
        """Each different row once, the sums of their weights, and the place of every row among them."""
        table = np.column_stack((self.code, self.who, self.distinct, self.truth, self.group))
        _, first, back = np.unique(table, axis=0, return_index=True, return_inverse=True)
        back = back.reshape(-1)
        some = Coded(
            self.code[first],
            self.who[first],
            self.distinct[first],
            self.truth[first],
            self.group[first],
            self.annotators,
        )
        return some, np.bincount(back, weights=weights, minlength=len(first)).astype(np.float64), back


def kish(weights: Floats) -> float:
    """The number of equally weighted rows that tell as much: ``(Σw)²/Σw²``."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0
