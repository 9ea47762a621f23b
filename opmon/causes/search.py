"""The condition, or the two or three together, that sets failures apart most, and how much of that is chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.causes.conditions import Condition, Side
from opmon.types import Floats

PAIRED = 24
"""Of so many conditions, those that tell most alone, all pairs are looked at; so many pairs get a third condition."""
MOST_CONDITIONS = 3
DENSE = 0.5
"""A cut gives way to inputs that fail this share as often as those at its core."""
OF_ONE = 4
"""Of the cuts of one feature from one side so many are looked at in pairs."""
COST = 1.0
"""A further condition must tell so much more, in standard errors."""
LARGEST = 0.5
"""What holds for more of the inputs is what is usual, and no cause."""
SHUFFLES = 30
"""So often the outcomes are dealt out anew to learn what chance alone gives."""

Matrix = NDArray[np.float32]
_SIDE: Mapping[Side, int] = {"over": 0, "up to": 1, "is": 2, "missing": 3}
SIDES, FEATURES = len(_SIDE), 1_000_000


@dataclass(frozen=True)
class Best:
    """What sets failures apart most: the numbers of one condition or up to three, and by how many standard errors."""

    numbers: tuple[int, ...]
    score: float


@dataclass(frozen=True, eq=False)
class Searched:
    """All conditions on some inputs, ready to be looked through for any outcome.

    A condition is scored by how many more failures it holds for than its share of all inputs, in standard errors as
    they would be without any cause: ``z = Σ w d (y − ȳ) / √(ȳ(1 − ȳ) Σ w² (d − d̄)²)`` with ``d`` 1 where it holds,
    ``y`` 1 for a failure, and weighted means. What is always right makes no cause of all the rest.
    """

    conditions: Sequence[Condition]
    members: Matrix
    """One column for each condition."""
    weights: Floats
    kinds: NDArray[np.int64]
    """The moment since when it is meant, the feature and the side of each condition, as one number."""
    alone: NDArray[np.bool_]
    """Which conditions are joined with no other one."""

    @classmethod
    def of(cls, conditions: Sequence[Condition], weights: Floats) -> Searched:
        columns = [each.members for each in conditions]
        members = np.column_stack(columns) if columns else np.zeros((len(weights), 0))
        moments = {moment: at for at, moment in enumerate(dict.fromkeys(each.since for each in conditions))}
        kinds = np.array(
            [SIDES * (FEATURES * moments[each.since] + each.feature) + _SIDE[each.side] for each in conditions],
            dtype=np.int64,
        )
        alone = np.array([each.alone for each in conditions], dtype=np.bool_)
        return cls(conditions, members.astype(np.float32), weights, kinds, alone)

    def holds(self, best: Best) -> NDArray[np.bool_]:
        """The inputs that it holds for."""
        return np.asarray(np.logical_and.reduce([self.conditions[each].members for each in best.numbers]))

    def parts(self, best: Best) -> list[Condition]:
        """The conditions that it is made of."""
        return [self.conditions[each] for each in best.numbers]

    def best(self, failed: Floats, inputs: NDArray[np.bool_] | None = None, fewest: float = 0.0) -> Best | None:
        """What tells most of the ``failed`` among some inputs, holding for at least ``fewest`` of these failures."""
        weights = self.weights if inputs is None else self.weights * inputs
        scores = scored(self.members, failed, weights, fewest)
        if not np.isfinite(scores).any():
            return None
        usual = self.members.mean(axis=0) > LARGEST
        single = int(np.argmax(np.where(usual, -np.inf, scores)))
        best = Best((single,), float(scores[single])) if np.isfinite(scores[single]) and not usual[single] else None
        blocks = self._telling(scores)
        tried = np.array(np.triu_indices(len(blocks), 1))
        tried = blocks[tried[:, self._may_join(*blocks[tried])]]
        for size in range(1, MOST_CONDITIONS):
            if not tried.shape[1]:
                break
            both = np.multiply.reduce([self.members[:, each] for each in tried])
            scores = scored(both, failed, weights, fewest) - COST * size
            scores[both.mean(axis=0) > LARGEST] = -np.inf
            at = int(np.argmax(scores))
            if not np.isfinite(scores[at]) or (best is not None and scores[at] <= best.score):
                break
            best = Best(tuple(sorted(tried[:, at].tolist())), float(scores[at]))
            more = blocks[
                np.logical_and.reduce([self._may_join(blocks, np.full(len(blocks), each)) for each in best.numbers])
            ]
            tried = np.stack([*(np.full(len(more), each) for each in best.numbers), more])
        return best

    def _telling(self, scores: Floats) -> NDArray[np.int64]:
        """The conditions that tell most alone and may be joined, few of each feature and side."""
        kept: list[int] = []
        of: Counter[int] = Counter()
        for at in np.argsort(-np.where(self.alone, -np.inf, scores), kind="stable").tolist():
            if len(kept) == PAIRED or not np.isfinite(scores[at]) or self.alone[at]:
                break
            of[self.kinds[at]] += 1
            if of[self.kinds[at]] <= OF_ONE:
                kept.append(at)
        return np.array(kept, dtype=np.int64)

    def _may_join(self, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether conditions say something new beside others: of another feature, or cutting it from the other side;
        and since the same moment."""
        same = self.kinds[one] // SIDES == self.kinds[other] // SIDES
        cuts = (self.kinds[one] % SIDES < 2) & (self.kinds[other] % SIDES < 2)
        moment = self.kinds[one] // (SIDES * FEATURES) == self.kinds[other] // (SIDES * FEATURES)
        return np.asarray(moment & (~same | (cuts & (self.kinds[one] != self.kinds[other]))))

    def tight(self, best: Best, failed: Floats, inputs: NDArray[np.bool_], fewest: float) -> Best:
        """A single cut moved to where the failures are dense.

        It begins where it holds for the fewest inputs that are enough to tell, and gives way as long as the inputs that
        come in fail nearly as often: what lies between has causes of its own.
        """
        if len(best.numbers) > 1 or self.conditions[best.numbers[0]].cut is None:
            return best
        same = np.flatnonzero(self.kinds == self.kinds[best.numbers[0]])
        w = self.weights * inputs
        mass, wrong = w @ self.members[:, same], (w * failed) @ self.members[:, same]
        cases = (failed * inputs) @ self.members[:, same]
        order = [int(at) for at in np.argsort(mass, kind="stable") if cases[at] >= 2 * fewest]
        own = int(np.flatnonzero(same == best.numbers[0])[0])
        if not order or mass[order[0]] >= mass[own]:
            return best
        kept = max(order[:4], key=lambda at: wrong[at] / mass[at])
        core = wrong[kept] / mass[kept]
        for at in order:
            if (
                mass[kept] < mass[at] <= mass[own]
                and (wrong[at] - wrong[kept]) / (mass[at] - mass[kept]) >= DENSE * core
            ):
                kept = at
        return Best((int(same[kept]),), best.score)

    def by_chance(self, failed: Floats, inputs: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """The best scores among some inputs that chance alone gives: with their outcomes dealt out anew."""
        found, dealt = [], failed.copy()
        for _ in range(SHUFFLES):
            dealt[inputs] = rng.permutation(failed[inputs])
            best = self.best(dealt, inputs)
            found.append(0.0 if best is None else best.score)
        return np.array(found)


def scored(members: Matrix, failed: Floats, weights: Floats, fewest: float = 0.0) -> Floats:
    """The score of every condition; minus infinity where it holds for too few failures, or for all inputs or none."""
    w = weights.astype(np.float32)
    sums = np.stack((w, w * failed.astype(np.float32), w * w, ((w > 0) & (failed > 0)).astype(np.float32)))
    mass, wrong, square, cases = (sums @ members).astype(np.float64)
    all_mass, all_wrong, all_square, _ = sums.sum(axis=1, dtype=np.float64)
    unit = all_square / max(all_mass, 1e-12)  # what an average draw weighs
    rate = (all_wrong + 0.5 * unit) / (all_mass + unit)
    share = mass / max(all_mass, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = (1 - share) ** 2 * square + share**2 * np.maximum(all_square - square, 0)
        scores = (wrong - share * all_wrong) / np.sqrt(rate * (1 - rate) * spread)
    usable = (share > 1e-6) & (share < 1 - 1e-6) & (cases >= fewest) & np.isfinite(scores)
    return np.where(usable, scores, -np.inf)
