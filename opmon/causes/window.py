"""The inputs that causes are looked for in, of one round or several, and since when failures are more frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmon.causes.conditions import Condition, conditions_of, lately
from opmon.causes.contrasts import ERROR, FEWEST, Cause, Members, any_of, causes_of, lift_of, owners
from opmon.causes.features import Feature
from opmon.causes.found import Found
from opmon.causes.onsets import ERROR as ONSET_ERROR
from opmon.causes.onsets import Moments, Onset, more_frequent, onset_of, round_of, settled_onset
from opmon.causes.search import Searched
from opmon.causes.shifts import Shift, all_are_shifted, began, is_clock, shift_of, values_of
from opmon.types import Floats

HEAVIEST = 5.0
"""No draw counts for more than so many average ones where causes are looked for: sizes are told with all weights."""


@dataclass(frozen=True, eq=False)
class Window:
    """Labelled inputs with all conditions on them, and since when failures are more frequent."""

    features: Sequence[Feature]
    searched: Searched
    failed: Members
    even: Floats
    """The weights, those of each round 1 on average."""
    moments: Moments | None
    """None where there is one round: nothing in it was before."""
    onset: Onset | None
    shift: Shift | None
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        features: Sequence[Feature],
        failed: Members,
        weights: Floats,
        moments: Moments | None,
        rng: np.random.Generator,
    ) -> Window:
        if moments is None or len(np.unique(moments.rounds)) < 2:
            even = weights / max(float(weights.mean()), 1e-300)
            searched = Searched.of(conditions_of(features), np.minimum(even, HEAVIEST))
            return cls(features, searched, failed, even, None, None, None, rng)
        even = moments.even(weights)
        features = [each for each in features if not is_clock(each, moments)]
        conditions = conditions_of(features)
        onset, shift = _onset(moments, failed, even, conditions, features, rng)
        if onset is None:
            conditions += lately(conditions, moments.recent())
        searched = Searched.of(conditions, np.minimum(even, HEAVIEST))
        return cls(features, searched, failed, even, moments, onset, shift, rng)

    @property
    def within(self) -> Members:
        """Among these inputs conditions are sought: all since the onset, which made all others another population."""
        return self._since(None if self.onset is None else self.onset.at)

    @property
    def _error(self) -> float:
        """What the onset leaves of the error that all groups may have together."""
        return ERROR if self.moments is None else ERROR - ONSET_ERROR

    def groups(self, most: int) -> list[Found]:
        """Those by conditions, and that of all other failures since the onset where these are more frequent, too."""
        within, failed = self.within, self.failed
        causes: list[Cause] = []
        if failed[within].sum() >= FEWEST and not failed[within].all() and self.searched.conditions:
            causes = causes_of(self.searched, failed, within, most, self.rng, self._error)
        causes = [each for each in causes if not self._is_of_all(each)]
        since = [self._moment(cause) for cause in causes]
        members = [self._ever(cause) & self._since(moment) for cause, moment in zip(causes, since, strict=True)]
        others = within & ~any_of(members, len(failed))
        alike = self._alike(others, ~within & ~any_of(members, len(failed)), bool(causes))
        held = [*members, others] if alike else members
        rest = ~any_of(held, len(failed))
        owner = owners(self.searched, causes, members, self.features, rest)
        found = [
            self._told(cause, owner == at, members[at], rest, moment)
            for at, (cause, moment) in enumerate(zip(causes, since, strict=True))
        ]
        found += [alike] if alike else []
        return [group for group in found if group.failures.any()]

    def _alike(self, others: Members, before: Members, divided: bool) -> Found | None:
        """The group of all inputs since the onset that no condition holds for; None where there is no onset, or where
        it is not sure that these fail more often than those before. Without conditions the onset itself says so."""
        onset = self.onset
        if onset is None or (self.failed & others).sum() < FEWEST:
            return None
        lift, least = lift_of(others, before, self.failed, self.even, 1.96 if divided else onset.limit)
        if divided and least <= 1:
            return None
        return Found("condition", (), self.failed & others, others, onset.p, lift, least, onset.at)

    def _since(self, moment: float | None) -> Members:
        if moment is None or self.moments is None:
            return np.ones(len(self.failed), np.bool_)
        return self.moments.since(moment)

    def _ever(self, cause: Cause) -> Members:
        """The inputs of any time that its conditions hold for."""
        return np.asarray(np.logical_and.reduce([each.ever for each in self.searched.parts(cause.best)]))

    def _is_of_all(self, cause: Cause) -> bool:
        """Whether all inputs since the onset have moved towards what it says: then it tells how far, and not which."""
        if self.onset is None or self.moments is None:
            return False
        at = self.onset.at
        return any(
            all_are_shifted(self.moments, at, self.features[each.feature], each, self.even)
            for each in self.searched.parts(cause.best)
        )

    def _moment(self, cause: Cause) -> float | None:
        """Since when there are more failures of this kind; None where there were as many before."""
        ever, found = self._ever(cause), self.searched.parts(cause.best)[0].since
        if self.onset is not None:
            return self.onset.at if self._are_more_frequent(self.within, self.failed & ever) else None
        if found is None or self.moments is None:
            return None
        return settled_onset(self.moments, ever, self.failed, self.even, found)

    def _are_more_frequent(self, members: Members, failed: Members) -> bool:
        if self.moments is None or (failed & members).sum() < FEWEST:
            return False
        return more_frequent(self.moments, members, ~self.within, failed, self.even)

    def _told(self, cause: Cause, owned: Members, members: Members, rest: Members, since: float | None) -> Found:
        """A group with how sure it is."""
        lift, least = lift_of(members, rest, self.failed, self.searched.weights, max(cause.limit, 1.96))
        words = tuple(dict.fromkeys(each.words for each in self.searched.parts(cause.best)))
        return Found("condition", words, self.failed & owned, members, cause.p, lift, least, since)


def _onset(
    moments: Moments,
    failed: Members,
    even: Floats,
    conditions: Sequence[Condition],
    features: Sequence[Feature],
    rng: np.random.Generator,
) -> tuple[Onset | None, Shift | None]:
    """Since when failures are more frequent, and what the inputs since then differ in: that may have begun a little
    before so many failures came of it, and then it is the moment that is told."""
    if failed.sum() < FEWEST:
        return None, None
    onset = onset_of(moments, failed, even, rng)
    if onset is None:
        return None, None
    shift = shift_of(conditions, moments.since(onset.at), even)
    if shift is None:
        return onset, None
    values = values_of(features[shift.feature], conditions[shift.condition])
    at = began(moments, onset.at, values, even)
    if at < onset.at and lift_of(moments.since(at), ~moments.since(at), failed, even, onset.limit)[1] > 1:
        onset = Onset(at, round_of(moments, at), onset.p, onset.limit)
        shift = shift_of(conditions, moments.since(at), even) or shift
    return onset, shift
