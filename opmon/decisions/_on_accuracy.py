"""What rules share that bet on the accuracy against a line, round after round."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from opmon.abc import USUAL, Rule
from opmon.decisions._judging import unanswered
from opmon.decisions._own import Own
from opmon.decisions._sequential import weigh
from opmon.decisions._watch import Growth
from opmon.decisions.case import Case
from opmon.decisions.draw_values import DrawValues, draw_values
from opmon.problems import SHARES
from opmon.types import Document, Problem, Verdict


class OnAccuracy(Rule):
    """A rule whose evidence of a round is what its draws say of the accuracy and ``threshold``."""

    name: str
    threshold: float

    problems: ClassVar[tuple[Problem, ...]] = SHARES
    bets: ClassVar[bool] = True

    def watches(self) -> str:
        return USUAL

    def line(self) -> float:
        return self.threshold

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round, with the evidence of all before it."""
        if case.sample is None or case.estimate is None or not case.sample.answered.any():
            return unanswered(self.name, case, self.threshold)
        growth = self._weigh(draw_values(case.sample, case.design), 1 - self.threshold)
        return self._verdict(case.before, Own(growth, case.estimate, case.elapsed))

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own evidence, which was kept with the one before."""
        own = Own.of(details)
        return None if own is None else self._verdict(before, own)

    def _weigh(self, drawn: DrawValues, line: float) -> Growth:
        """What a round's draws say of the mean loss and the line."""
        return weigh(drawn, line)

    @abstractmethod
    def _verdict(self, before: Document, own: Own) -> Verdict:
        """The verdict, from what was kept of the rounds before and the round's own evidence."""
