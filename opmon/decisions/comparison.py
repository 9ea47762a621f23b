"""Two versions of a model on the same labelled inputs: which is better, and is that certain?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator
from opmon.decisions._bound import Bound
from opmon.decisions._paired import paired_growth
from opmon.decisions._watch import PRIOR
from opmon.decisions._words import labels_to_go, tell_apart, were_known
from opmon.errors import InputError
from opmon.types import Sample
from opmon.wording import counted, percent, points, points_between

Winner = Literal["first", "second"]


@dataclass(frozen=True, eq=False)
class Paired:
    """One round's draws with the losses of both versions; NaN where there is no answer."""

    first: Sample
    second: NDArray[np.float64]
    design: Estimator
    coefficients: NDArray[np.float64] | None = None
    """``a_k`` of the mean loss for every draw, where the estimator tells."""
    variance: float | None = None
    """The estimated variance of ``Σ a_k (y_k − y'_k)``."""

    @property
    def differences(self) -> NDArray[np.float64]:
        """Loss of the first less loss of the second: above 0 where the second is better."""
        return np.asarray(self.first.outcomes - self.second)


@dataclass(frozen=True)
class Comparison:
    """By how much the second version is more accurate (``difference``), and whether that is decided."""

    winner: Winner | None
    difference: float
    low: float
    high: float
    labels: int
    disagreements: int
    rounds: int
    evidence: dict[Winner, float]
    """Against "this version is not the better one", in units of what a decision takes."""
    alpha: float
    more: int | None = None
    """About how many more labels like these would decide; None where they would not."""
    known_before: int = 0
    """Rounds among these that were opened before both versions were registered: they may have been trained on."""

    def words(self, first: str, second: str) -> str:
        """The comparison for a reader, the versions by name."""
        more = "more" if self.difference > 0 else "less"
        apart = f"{points(self.difference)} {more} accurate than" if self.difference else "as accurate as"
        result = (
            f"{second} is {apart} {first} (95 % interval {points_between(self.low, self.high)}), from "
            f"{counted(self.labels, 'labelled draw')} in {counted(self.rounds, 'round')}; "
            f"{tell_apart(self.disagreements)}"
        )
        if self.known_before:
            result += f". {were_known(self.known_before)}"
        if self.winner is not None:
            better = first if self.winner == "first" else second
            return f"{result}. {better} is better; wrong with probability {percent(self.alpha)} at most."
        leading: Winner = "first" if self.evidence["first"] > self.evidence["second"] else "second"
        name, share = first if leading == "first" else second, self.evidence[leading]
        text = f"{result}. Not decided: the evidence that {name} is better is {percent(share)} of what it takes"
        return f"{text}; about {counted(self.more, 'more label')} like these would do." if self.more else f"{text}."


def compare_versions(rounds: Sequence[Paired], alpha: float = 0.05) -> Comparison:
    r"""Decide between two versions, round after round; may be looked at after every round.

    For both directions an e-process bets against "not better" with the paired differences
    :math:`u_j = y_j - y'_j \in \{-1, 0, 1\}` (:mod:`_paired`), mixed over its bets; it decides at
    :math:`2/\alpha`, so a wrong decision has probability :math:`\alpha` at most however often one looks. Inputs where
    both are right or both wrong carry no noise: with a share ``q`` of disagreements the variance per label is at most
    ``q``, against ``2 (p(1−p) + p'(1−p'))`` of two samples. The interval is the normal one, for reading.
    """
    Bound.of(alpha, None)
    if not rounds:
        raise InputError("there is no labelled round to compare on; label one first")
    wealth: dict[Winner, NDArray[np.float64]] = {"first": np.zeros(len(PRIOR)), "second": np.zeros(len(PRIOR))}
    decided: Winner | None = None
    disagreements = labels = 0
    most: dict[Winner, float] = {"first": 0.0, "second": 0.0}
    sides: tuple[tuple[Winner, float], ...] = (("second", 1.0), ("first", -1.0))
    for entry in rounds:
        for winner, sign in sides:
            paired = paired_growth(entry.first, sign * entry.differences, 0.0, entry.design)
            if paired is None:
                continue
            growth, _, differ = paired
            wealth[winner] = wealth[winner] + growth.alarm
            evidence = float(PRIOR @ np.exp(np.minimum(wealth[winner], 600.0))) * alpha / 2
            most[winner] = max(most[winner], evidence)
            if evidence >= 1 and decided is None:
                decided = winner
            if winner == "second":
                labels, disagreements = labels + growth.labels, disagreements + differ
    difference, error = _difference(rounds)
    reach = NormalDist().inv_cdf(0.975) * error
    return Comparison(
        decided,
        difference,
        difference - reach,
        difference + reach,
        labels,
        disagreements,
        len(rounds),
        most,
        alpha,
        None if decided else _more(wealth, labels, alpha),
    )


def _more(wealth: dict[Winner, NDArray[np.float64]], labels: int, alpha: float) -> int | None:
    """About how many more labels it takes, by how fast the stronger side's best bet has grown."""
    best = max(float(grown.max()) for grown in wealth.values())
    return labels_to_go([min(math.exp(best) * alpha / 2, 0.999)], [best / max(labels, 1)], 1)


def _difference(rounds: Sequence[Paired]) -> tuple[float, float]:
    """The mean difference over all inputs of the rounds, with its standard error."""
    N = math.fsum(entry.first.draw.frame_size for entry in rounds)
    value = variance = 0.0
    for entry in rounds:
        u = entry.differences
        heard, share = ~np.isnan(u), entry.first.draw.frame_size / N
        if not heard.any():
            continue
        if entry.coefficients is None or entry.variance is None:
            mean = float(u[heard].mean())
            spread = float(u[heard].var(ddof=1)) / int(heard.sum()) if heard.sum() > 1 else 0.0
        else:
            mean, spread = float(entry.coefficients[heard] @ u[heard]), entry.variance
        value, variance = value + share * mean, variance + share**2 * spread
    return value, math.sqrt(variance)
