"""The contract of rules, which conclude something from estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from opmon.abc.plugin import Plugin
from opmon.quantities import PROBLEMS, Problem
from opmon.types import Document, Verdict

if TYPE_CHECKING:
    from opmon.decisions.case import Case


USUAL = "the usual one"
"""What a rule watches that is of the usual measure of its problem, such as the accuracy, whichever is the main one."""


class Rule(Plugin, ABC):
    """Concludes something from the rounds of one model version, one after another in the order of the rounds. Pure."""

    name: str
    """The name of its verdicts and events: a field, so that a monitor may have two of a kind."""

    problems: ClassVar[tuple[Problem, ...]] = PROBLEMS
    """The problems that it is for."""
    advisory: ClassVar[bool] = False
    """Whether its alarms are advice: kept and shown, told to no action, and nothing the model's status follows."""
    counts: ClassVar[bool] = False
    """Whether it also judges rounds that end without an estimate."""
    bets: ClassVar[bool] = False
    """Whether it bets on the values of draws: with a sampler whose estimator does not tell them (``Estimator.bets``)
    such a rule is refused when the configuration is read."""

    bets_on_ratio: ClassVar[bool] = False
    """Whether it bets on what it watches as a ratio of two sums over inputs: other measures are refused when the
    configuration is read."""

    def watches(self) -> str | None:
        """The measure that ``case.estimates`` are of, by its name or key in ``measures``; None: the main one,
        :data:`USUAL`: that of the problem."""
        return None

    def rival_version(self) -> str | None:
        """The address of the model version that is to answer the drawn inputs too; None where it compares with none."""
        return None

    def watched_robustness(self) -> str | None:
        """The saved query whose robustness it wants to know, ``""`` for that of all tests; None for none."""
        return None

    def watched_slices(self) -> str | None:
        """Which of the slices in the configuration it watches: those by one column, variable or ``prediction``, named
        so, or ``slices`` for all of them; None for none."""
        return None

    def line(self) -> float | None:
        """The line that figures of the estimates draw for it, in the unit of the estimate; None where it has none."""
        return None

    def looks_back(self, before: Document) -> int | None:
        """The number of last final estimates that ``case.estimates`` is to hold, this round's among them; None: all.

        ``before`` is what ``case.before`` will be: a rule that keeps there what it needs looks at its own round alone,
        and judging one costs the same however old the monitor is.
        """
        return 1

    @abstractmethod
    def judge(self, case: Case) -> Verdict:
        """The verdict on one round.

        What it puts into ``details`` comes back as ``case.before`` with the next round of the same model version.
        """

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict on a round that was judged before, now after other rounds before it; None: it stays as it was.

        ``details`` are those of its verdict. Asked for where a label came late for an earlier round.
        """
        return None
