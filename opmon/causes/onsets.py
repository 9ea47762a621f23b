"""Since when failures are more frequent, where they are: a cut through time, sure in spite of all the cuts tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.types import Floats

Members = NDArray[np.bool_]

ERROR = 0.01
"""An onset is told where there is none in so many of all looks: a part of the error that all groups may have."""
DEALS = 999
"""So often weights and outcomes together are dealt out anew."""
PORTION = 100
"""So many of them at a time: all together would take ten times the memory."""
FEWEST = 30
"""So many inputs lie on each side of a cut at least."""
BORROWED = 50
WITHIN = 40
"""A round of so many inputs is cut within, too: at its quarters."""
AS_GOOD = 3.84
"""Cuts are told apart from the best one where their squared scores differ by more: the profile of a likelihood."""
RECENT = 1, 3, 10
"""Conditions are looked at since the start of the newest round, and since so many rounds."""
NOW = 1.645
"""The newest round itself must fail more often than what was before, by so many standard errors."""


@dataclass(frozen=True, eq=False)
class Moments:
    """When each labelled input came, and in which round."""

    at: Floats
    """Any number that grows with time, such as seconds."""
    rounds: NDArray[np.int64]
    starts: dict[int, float]
    """When each round began."""

    def __post_init__(self) -> None:
        if len(self.at) != len(self.rounds) or not np.isfinite(self.at).all():
            raise InputError(
                f"every labelled input has a moment and a round: {len(self.at)} moments, {len(self.rounds)} rounds"
            )

    @property
    def newest(self) -> Members:
        """The inputs of the newest round."""
        return np.asarray(self.rounds == self.rounds.max())

    def since(self, cut: float) -> Members:
        return np.asarray(self.at >= cut)

    def recent(self) -> dict[float, Members]:
        """The starts of the newest round and of some before, with the inputs since then."""
        numbers = np.unique(self.rounds)
        first = [int(numbers[-back]) for back in RECENT if back < len(numbers)]
        return {self.start(number): np.asarray(self.rounds >= number) for number in first}

    def start(self, number: int) -> float:
        """When a round began."""
        return self.starts.get(number, float(self.at[self.rounds == number].min()))

    def cuts(self) -> Floats:
        """Where time is cut: at the starts of rounds, and at the quarters of those with enough inputs."""
        found: list[float] = []
        for number in np.unique(self.rounds).tolist():
            own = np.sort(self.at[self.rounds == number])
            found.append(self.start(number))
            if len(own) >= WITHIN:
                found += [float(own[len(own) * part // 4]) for part in (1, 2, 3)]
        cuts = np.unique(found)
        later = np.array([self.since(cut).sum() for cut in cuts.tolist()])
        return np.asarray(cuts[(later >= FEWEST) & (later <= len(self.at) - FEWEST)])

    def even(self, weights: Floats) -> Floats:
        """Weights of which those of each round are 1 on average: a label counts as much in one round as in another,
        and its round's share of failures stays as its design says."""
        found = np.array(weights, dtype=np.float64)
        for number in np.unique(self.rounds).tolist():
            own = self.rounds == number
            found[own] /= max(float(found[own].mean()), 1e-300)
        return found


@dataclass(frozen=True)
class Onset:
    """Failures are more frequent since this moment."""

    at: float
    round: int
    """The round in which that moment lies."""
    p: float
    """How probable so large a difference would be without any, whichever cut is the best."""
    limit: float
    """What the best cut reaches without any difference in one of 20 looks, in standard errors: for bounds."""


def onset_of(moments: Moments, failed: Members, even: Floats, rng: np.random.Generator) -> Onset | None:
    """The moment since when failures are more frequent than before; None where that is not sure, or over.

    Each cut is scored by the difference of the shares of failures since and before, as the weights of each round's
    own design tell them, in standard errors that these weights make: ``z = Σ e (d − d̄) / √(Σ s² (d − d̄)²)`` with
    ``e = w (y − ȳ)``, ``s²`` the mean of ``e²`` in its round, and ``d`` 1 since the cut. What the best cut reaches
    without any onset is learned by dealing out the pairs of weight and outcome anew over all moments: an outcome keeps
    the weight with which it was drawn. As the scores are studentised, that also holds for rounds of different designs
    (Janssen, Statistics & Probability Letters 36, 1997).

    Of cuts that do nearly as well as the best, the start of a round is preferred.
    """
    cuts = moments.cuts()
    if not len(cuts) or not failed.any() or failed.all():
        return None
    since = np.stack([moments.since(cut) for cut in cuts.tolist()], axis=1).astype(np.float32)
    outcomes = failed.astype(np.float64)
    scores = differences(since, moments.rounds, outcomes[None], even[None])[0]
    best = float(scores.max())
    chance = np.concatenate([_by_chance(moments, since, outcomes, even, rng) for _ in range(0, DEALS, PORTION)])[:DEALS]
    p = float((1 + (chance >= best).sum()) / (1 + DEALS))
    if p > ERROR or best <= 0:
        return None
    cut = _preferred(moments, cuts, scores)
    before = ~moments.since(cut)
    if not more_frequent(moments, moments.newest & ~before, before, failed, even):
        return None
    return Onset(cut, round_of(moments, cut), p, float(np.quantile(chance, 0.95)))


def _by_chance(
    moments: Moments, since: NDArray[np.float32], outcomes: Floats, even: Floats, rng: np.random.Generator
) -> Floats:
    """What the best cut reaches in each of a portion of deals."""
    dealt = rng.permuted(np.tile(np.arange(len(outcomes)), (PORTION, 1)), axis=1)
    return np.asarray(differences(since, moments.rounds, outcomes[dealt], even[dealt]).max(axis=1))


def more_frequent(moments: Moments, members: Members, before: Members, failed: Members, even: Floats) -> bool:
    """Whether some inputs fail more often than those before."""
    both = members | before
    if not members.any() or not before.any():
        return False
    since, outcomes = members[both][:, None].astype(np.float32), failed[both][None].astype(np.float64)
    return bool(differences(since, moments.rounds[both], outcomes, even[both][None])[0, 0] >= NOW)


def round_of(moments: Moments, cut: float) -> int:
    """The round of the first input since a moment."""
    later = moments.since(cut)
    return int(moments.rounds[later][np.argmin(moments.at[later])])


def differences(since: NDArray[np.float32], rounds: NDArray[np.int64], outcomes: Floats, weights: Floats) -> Floats:
    """The scores of all cuts, one column each, for each row of outcomes and weights.

    The variance of an input is that of its round, which takes as much from all rounds as :data:`BORROWED` inputs of it
    would tell: a few inputs in a row that are all right are no proof.
    """
    total = weights.sum(axis=1, keepdims=True)
    rate = (weights * outcomes).sum(axis=1, keepdims=True) / total
    beyond = weights * (outcomes - rate)
    share = (weights.astype(np.float32) @ since) / total
    numbers, place = np.unique(rounds, return_inverse=True)
    own = (place[:, None] == np.arange(len(numbers))).astype(np.float32)
    size = own.sum(axis=0)
    square = (beyond**2).astype(np.float32)
    pooled = square.mean(axis=1, keepdims=True)
    variance = (square @ own + BORROWED * pooled) / (size + BORROWED)
    later = own.T @ since  # how many inputs of each round are since each cut
    spread = (variance @ later) * (1 - 2 * share) + share**2 * (variance @ size)[:, None]
    return np.asarray((beyond.astype(np.float32) @ since) / np.sqrt(np.maximum(spread, 1e-12)), dtype=np.float64)


def _preferred(moments: Moments, cuts: Floats, scores: Floats) -> float:
    best = float(scores.max())
    good = (scores > 0) & (scores**2 >= best**2 - AS_GOOD)
    starts = good & np.isin(cuts, [moments.start(number) for number in np.unique(moments.rounds).tolist()])
    among = starts if starts.any() else good
    return float(cuts[int(np.argmax(np.where(among, scores, -np.inf)))])


def settled_onset(moments: Moments, members: Members, failed: Members, even: Floats, around: float) -> float:
    """Since when some inputs fail more often, where it is sure that they do since about a moment: the start of the
    round that divides them best."""
    starts = np.array([moments.start(number) for number in np.unique(moments.rounds).tolist()[1:]])
    since = np.stack([moments.since(start)[members] for start in starts.tolist()], axis=1).astype(np.float32)
    if not since.size or since.all():
        return around
    outcomes = failed[members].astype(np.float64)
    scores = differences(since, moments.rounds[members], outcomes[None], even[members][None])[0]
    known = since.any(axis=0) & ~since.all(axis=0) & (starts <= moments.start(int(moments.rounds.max())))
    return float(starts[int(np.argmax(np.where(known, scores, -np.inf)))]) if known.any() else around
