"""Several rounds as one design: any measure, of all inputs or of a part of them, from the draws of all of them.

Rounds are drawn independently of each other, so that they are strata of all inputs: with ``W_r`` the share of the
inputs that round ``r`` has, a mean is ``Σ_r W_r Σ_k a_rk y_k``, and variances add up with ``W_r²``. So what is known of
one round, :func:`.measured.measured` and :func:`.slices.behind`, is known of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.estimators.rolling import combine
from opmon.estimators.tally import Tally
from opmon.types import Array, Draw, Estimate, Floats, Numbers, Sample
from opmon.types.labelled import Labelled

DESIGN = "rounds"
"""The design of a joined draw."""
STRATA = ("probability", "stratum")
SIZES = "stratum_size"


@dataclass(frozen=True, eq=False)
class OneRound:
    """A round with its answers, by the estimator of its design; ``rows`` where more is known than the loss."""

    estimator: LinearEstimator
    sample: Sample
    rows: Labelled | None = None


@dataclass(frozen=True, eq=False)
class Joined:
    """The estimator of several rounds; samples that it is given are those of :func:`joined_sample`."""

    rounds: Sequence[OneRound]

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        """The mean over all inputs of the rounds that have an answer, from the draws of all of them."""
        own = [(estimator, part) for estimator, part, _ in self._parts(sample) if part.answered.any()]
        if not own:
            raise InputError("none of the rounds has an answer; an estimate needs at least one")
        found = [estimator.estimate(part, level) for estimator, part in own]
        return combine(found, [estimator.tally(part) for estimator, part in own])

    def tally(self, sample: Sample) -> Tally | None:
        """None: a joined draw is not joined with others."""
        return None

    def coefficients(self, sample: Sample) -> NDArray[np.float64]:
        """``W_r a_rk`` of the mean loss; 0 for a draw without an answer."""
        found = np.zeros(len(sample.draw))
        for (estimator, part, weight), where in zip(self._parts(sample), self._places, strict=True):
            if part.answered.any():
                found[where] = weight * estimator.coefficients(part)
        return found

    def variance(self, sample: Sample, values: NDArray[np.float64]) -> float:
        """The estimated variance of ``Σ_r W_r Σ_k a_rk values_k``."""
        found = 0.0
        for (estimator, part, weight), where in zip(self._parts(sample), self._places, strict=True):
            if part.answered.any():
                found += weight**2 * estimator.variance(part, values[where])
        return found

    def cells(self, sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The cells of all rounds, each with its own."""
        cells, left, first = [], [], 0
        for estimator, part, _ in self._parts(sample):
            heard = part.answered.any()
            own, rest = (
                estimator.cells(part) if heard else (np.zeros(len(part.draw), np.int64), np.zeros(len(part.draw)))
            )
            cells.append(own + first)
            left.append(rest)
            first = int(cells[-1].max(initial=first - 1)) + 1
        return np.concatenate(cells), np.concatenate(left)

    @property
    def _places(self) -> list[slice]:
        ends = np.cumsum([0, *(len(each.sample.draw) for each in self.rounds)])
        return [slice(a, b) for a, b in pairwise(ends.tolist())]

    def _parts(self, sample: Sample) -> Iterator[tuple[LinearEstimator, Sample, float]]:
        """Each round with its draws of the sample, and the share of the inputs of all rounds that it has."""
        if len(sample.draw) != sum(len(each.sample.draw) for each in self.rounds):
            raise InputError("the sample is not that of these rounds")
        size = sum(each.sample.draw.frame_size for each in self.rounds)
        for each, where in zip(self.rounds, self._places, strict=True):
            part = replace(each.sample, outcomes=sample.outcomes[where], problem=sample.problem)
            yield each.estimator, part, each.sample.draw.frame_size / size


def joined_sample(rounds: Sequence[OneRound]) -> Sample:
    """The draws of all rounds as one, in their order; strata of about the same place are one."""
    draws = [each.sample.draw for each in rounds]
    first = np.cumsum([0, *(draw.frame_size for draw in draws)])
    positions = np.concatenate([draw.positions + start for draw, start in zip(draws, first, strict=False)])
    columns, constants = _strata(draws)
    draw = Draw(DESIGN, int(first[-1]), positions, columns, constants)
    problems = {each.sample.problem for each in rounds}
    if len(problems) > 1:
        raise InputError(f"rounds of several problems cannot be joined: {', '.join(map(str, problems))}")
    return Sample(draw, np.concatenate([each.sample.outcomes for each in rounds]), problems.pop())


def joined_rows(rounds: Sequence[OneRound]) -> Labelled:
    """What is known of the draws of all rounds, which have the same classes; scores that one has not are not known."""
    rows = [cast(Labelled, each.rows) for each in rounds]
    classes = {each.classes for each in rows}
    if len(classes) > 1:
        raise InputError("rounds of other classes cannot be joined")
    scores: list[Numbers | None] = [each.scores for each in rows]
    known = None if all(one is None for one in scores) else np.concatenate(list(map(_scores, rows)))
    return Labelled(
        np.concatenate([each.answered for each in rows]),
        np.concatenate([each.truth for each in rows]),
        np.concatenate([each.predicted for each in rows]),
        known,
        classes.pop(),
    )


def _scores(rows: Labelled) -> Numbers:
    return np.full((len(rows), len(rows.classes)), np.nan, np.float32) if rows.scores is None else rows.scores


def _strata(draws: Sequence[Draw]) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
    """The strata of all draws as those of the round with the fewest, which interval of a part looks at: each goes to
    the one in which its middle lies; none where a draw has none."""
    if not all(set(STRATA) <= draw.columns.keys() and SIZES in draw.constants for draw in draws):
        return {}, {}
    sizes = [np.asarray(draw.constants[SIZES], dtype=np.float64) for draw in draws]
    fewest = min(sizes, key=len)
    edges = np.cumsum(fewest / fewest.sum())
    together: Floats = np.zeros(len(fewest))
    stratum, probability = [], []
    for draw, own in zip(draws, sizes, strict=True):
        middle = (np.cumsum(own) - own / 2) / own.sum()
        place = np.minimum(np.searchsorted(edges, middle), len(fewest) - 1)
        together += np.bincount(place, weights=own, minlength=len(fewest))
        stratum.append(place[np.asarray(draw.columns["stratum"])])
        probability.append(np.asarray(draw.columns["probability"], dtype=np.float64))
    columns = {"stratum": np.concatenate(stratum), "probability": np.concatenate(probability)}
    return columns, {SIZES: together}
