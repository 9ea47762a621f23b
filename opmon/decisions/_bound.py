"""The bound on a rule's false alarms: a probability for its whole life, or a number per year."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta

from opmon.errors import InputError
from opmon.wording import percent

DELAY = 10
"""Rounds by which the spending of ``alpha`` is smoothed: the first round gets 4 %, not half of it."""

_TAIL = 20_000
_SUM = math.fsum(1 / (k * math.log(k) ** 2) for k in range(1 + DELAY, _TAIL)) + 1 / math.log(_TAIL - 0.5)
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:per|/|a)\s*(year|month|week|day)\s*\Z")
_DAYS = {"year": 365.25, "month": 365.25 / 12, "week": 7.0, "day": 1.0}
FIRST_WATCH = 0.75
"""The share of ``alpha`` that the watch up to the first alarm gets; the watches after a recovery share the rest."""
MOST_AT_ONCE = 0.05
"""The most evidence that a single round may begin with, so that a pause in production does not stand for evidence."""


@dataclass(frozen=True)
class Bound:
    r"""Exactly one of ``alpha`` and ``per_year``.

    Evidence may begin to grow in any round ``s``, and begins there with the weight :math:`w_s`; an alarm takes 1.

    - ``alpha``: :math:`w_s = \alpha\,/\,(C\,(s + 10)\log^2(s + 10))`, which sums to :math:`\alpha`: the evidence is a
      mixture of e-processes, and the probability that it ever reaches 1 is at most :math:`\alpha`, for ever (Ville).
    - ``per_year``: :math:`w_s` is the production time that the round covers, in units of the mean time allowed between
      false alarms. The evidence is an e-detector of the Shiryaev–Roberts kind and the mean time to a false alarm is at
      least the time allowed (Shin, Ramdas, Rinaldo, *E-detectors*, 2023, theorem 2.4).
    """

    alpha: float | None = None
    per_year: float | None = None

    @classmethod
    def of(cls, alpha: float | None, false_alarms: str | None) -> Bound:
        """The bound that a configuration asks for; 5 % for life where it asks for none."""
        if false_alarms is not None:
            if alpha is not None:
                raise InputError("alpha and false_alarms exclude each other: give one of them")
            return cls(per_year=rate(false_alarms))
        alpha = 0.05 if alpha is None else alpha
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
            raise InputError(f"alpha must lie strictly between 0 and 1, such as 0.05; got {alpha!r}")
        return cls(alpha=float(alpha))

    def of_watch(self, number: int) -> Bound:
        """The part of the bound for the ``number``-th watch of a life: 3/4, 1/8, 1/24, 1/48, …, which sum to 1.

        Every watch begins to spend its part anew, so that the second alarm of a life is nearly as quick as the first,
        however late it comes. A yearly rate is spent in time and needs no parts.

        >>> [round(Bound(alpha=0.05).of_watch(number).alpha or 0, 5) for number in (1, 2, 3)]
        [0.0375, 0.00625, 0.00208]
        """
        if self.alpha is None:
            return self
        share = FIRST_WATCH if number == 1 else (1 - FIRST_WATCH) / (number * (number - 1))
        return Bound(alpha=self.alpha * share)

    def halved(self) -> Bound:
        """The bound with half of ``alpha`` spent on something else; a rate stays as it is."""
        return self if self.alpha is None else Bound(alpha=self.alpha / 2)

    def shared(self, parts: int) -> Bound:
        """The bound of each of ``parts`` rules that keep this one together."""
        if self.alpha is not None:
            return Bound(alpha=self.alpha / parts)
        return Bound(per_year=(self.per_year or 0.0) / parts)

    def weight(self, judged: int, elapsed: timedelta | None) -> float:
        """``w_s`` of the round that is judged after ``judged`` others."""
        if self.alpha is not None:
            k = judged + 1 + DELAY
            return self.alpha / (_SUM * k * math.log(k) ** 2)
        years = max((elapsed or timedelta()).total_seconds(), 0.0) / (365.25 * 86400)
        return min(years * (self.per_year or 0.0), MOST_AT_ONCE)

    def words(self, elapsed: timedelta | None = None) -> str:
        """The bound in words.

        >>> Bound(alpha=0.05).words(), Bound(per_year=1.0).words(timedelta(hours=1))
        ('a false alarm has probability 5 % at most, for ever', '1 false alarm per year at most, one in 8,766 rounds')
        """
        if self.alpha is not None:
            return f"a false alarm has probability {percent(self.alpha)} at most, for ever"
        plural = "" if self.per_year == 1 else "s"
        text = f"{self.per_year:.3g} false alarm{plural} per year at most"
        weight = self.weight(0, elapsed)
        return f"{text}, one in {1 / weight:,.0f} rounds" if weight > 0 else text


def rate(text: str) -> float:
    """The number of false alarms per year that a text allows.

    >>> rate("1 per year"), rate("2 per month")
    (1.0, 24.0)
    """
    match = _RATE.match(text) if isinstance(text, str) else None
    per_year = float(match[1]) * _DAYS["year"] / _DAYS[match[2]] if match else 0.0
    if per_year <= 0:
        raise InputError(f"false_alarms must be a rate such as '1 per year' or '2 per month'; got {text!r}")
    return round(per_year, 12)
