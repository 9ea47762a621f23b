"""The level rule for the mean of many rounds: is the accuracy below a line over a day, a week?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_recovery, checked_share
from opmon.decisions._on_accuracy import OnAccuracy
from opmon.decisions._own import Own, kept_time, time_kept
from opmon.decisions._sequential import advance, weigh_alike
from opmon.decisions._watch import Growth, Watch
from opmon.decisions._words import in_words, line_in_words
from opmon.decisions.case import OWN
from opmon.decisions.draw_values import DrawValues
from opmon.errors import InputError
from opmon.quantities import ACCURACY
from opmon.types import Document, Json, Verdict, VerdictState


@dataclass(frozen=True)
class AccuracyMean(OnAccuracy):
    r"""Alarms when there is enough evidence that the mean accuracy of ``rounds`` rounds lies under ``threshold``.

    **What it promises** is about the *mean*: rounds are taken in windows of ``rounds``, one window after another, and
    while the mean accuracy of every window is at least ``threshold``, a false alarm has probability ``alpha`` at most
    for ever, however much single rounds vary and however many of them lie below the line. A round counts in the mean
    by its answered draws. ``accuracy_level`` promises the same about every single round, and is quicker: this rule
    speaks at the end of a window only.

    Why: with the same bet :math:`\lambda` in every round, and :math:`n_r` draws of mean loss :math:`\theta_r`,

    .. math:: E\Big[\prod_r E_r\Big] \le \prod_r \big(1 + \lambda(\theta_r - m)\big)^{n_r}
              \le \big(1 + \lambda(\bar\theta - m)\big)^n, \qquad \bar\theta = \sum_r n_r \theta_r / n

    by the inequality of the means: what single rounds add to the evidence makes, multiplied over a whole window, an
    e-value against "the mean loss of the window is at most m"; with :math:`-\lambda` it is one against "at least m",
    which an alarm ends with. A bet that the weights of a round do not allow is lost, and not made smaller: rounds of
    light weights would then count for more in the mean. Windows are to this rule what rounds are to the level rule;
    ``alpha``, ``false_alarms`` and ``recovery`` mean the same. A round without answers is in no window.

    As with ``accuracy_level``, answers are taken for truth, and not corrected for annotators who err.

    >>> AccuracyMean(0.92, rounds=24).name
    'accuracy-mean'
    """

    threshold: float
    """The accuracy under which the mean may not lie."""
    rounds: int
    """Of how many rounds the mean is."""
    name: str = "accuracy-mean"
    alpha: float | None = None
    """The probability of any false alarm in the life of a model version; 0.05 where ``false_alarms`` is not given."""
    false_alarms: str | None = None
    """Instead of ``alpha``: the mean rate of false alarms, such as ``1 per year``."""
    recovery: float = 20.0
    """How much evidence ends an alarm: one that should go on is ended with probability 1/recovery at most."""

    def __post_init__(self) -> None:
        checked_share(self.threshold, "threshold", low=-1e9)
        checked_name(self.name)
        checked_recovery(self.recovery)
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 2:
            raise InputError(
                f"rounds must be a whole number of at least 2, such as 24; got {self.rounds!r}: for single rounds "
                f"there is accuracy_level"
            )
        Bound.of(self.alpha, self.false_alarms)

    def _weigh(self, drawn: DrawValues, line: float) -> Growth:
        return weigh_alike(drawn, line)

    def _verdict(self, before: Document, own: Own) -> Verdict:
        bound = Bound.of(self.alpha, self.false_alarms)
        setting = {"threshold": self.threshold, "rounds": self.rounds, "bound": bound.words()}
        window = _Window.of(before, setting).with_(own)
        share = own.estimate.quantity if own.estimate.quantity.share else ACCURACY
        mean = share.text(window.mean)
        so_far = f"{in_words(own.estimate)}; the mean of {window.rounds} of {self.rounds} rounds is {mean}"
        kept: dict[str, Json] = {OWN: own.kept(), "mean": window.mean, "window": window.kept()}
        if window.rounds < self.rounds:
            earlier = {key: value for key, value in before.items() if before.get("setting") == setting}
            message = f"{so_far}, which is judged when they are complete"
            return self._told(_state(earlier, setting), message, window, earlier | {"setting": setting} | kept)
        taken = advance(window.growth, before, setting, bound, window.elapsed, self.recovery)
        words = taken.words(f"a mean of {line_in_words(self.threshold, own.estimate)} or better", self.recovery)
        message = f"{so_far}; {words} ({taken.details['bound']})"
        return self._told(taken.state, message, window, taken.details | kept | {"window": None})

    def _told(self, state: VerdictState, message: str, window: _Window, details: dict[str, Json]) -> Verdict:
        figures = {"n": window.growth.labels, "distance": window.mean - self.threshold}
        return Verdict(self.name, state, message, window.mean, self.threshold, details | figures)


def _state(earlier: Document, setting: Document) -> VerdictState:
    """The state that the last complete window led to."""
    if "watch" not in earlier:
        return "unknown"
    return "alarm" if Watch.of(earlier, setting).alarmed else "ok"


@dataclass(frozen=True)
class _Window:
    """The rounds of a window so far."""

    rounds: int
    mean: float
    growth: Growth
    elapsed: timedelta | None

    @classmethod
    def of(cls, before: Document, setting: Document) -> _Window:
        kept = before.get("window")
        if not isinstance(kept, Mapping) or before.get("setting") != dict(setting):
            return cls(0, 0.0, Growth.none(), None)
        return cls(int(kept["rounds"]), float(kept["mean"]), Growth.of(kept["growth"]), kept_time(kept))

    def kept(self) -> dict[str, Json]:
        return {"rounds": self.rounds, "mean": self.mean, "growth": self.growth.kept(), **time_kept(self.elapsed)}

    def with_(self, own: Own) -> _Window:
        """The window with one more round, which counts by its answered draws."""
        growth = self.growth.and_(own.growth)
        mean = self.mean + (own.estimate.value - self.mean) * own.growth.labels / growth.labels
        times = [time for time in (self.elapsed, own.elapsed) if time is not None]
        return _Window(self.rounds + 1, mean, growth, sum(times, timedelta()) if times else None)
