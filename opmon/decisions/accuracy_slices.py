"""The level rule for every class or slice, with one bound for all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Estimator, Rule
from opmon.decisions._betting import BETS, HIGHEST, recovery_growth
from opmon.decisions._bound import Bound
from opmon.decisions._judging import checked_name, checked_recovery, checked_share, unanswered
from opmon.decisions._own import kept_time, time_kept
from opmon.decisions._sequential import Step, advance
from opmon.decisions._watch import Growth
from opmon.decisions.case import OWN, Case, carried
from opmon.decisions.draw_values import bounded, terms
from opmon.errors import InputError
from opmon.kept_quantities import as_kept, kept
from opmon.problems import SHARES
from opmon.quantities import ACCURACY, Quantity
from opmon.types import Document, Json, Problem, Sample, Verdict, VerdictState

ALL = "slices"


@dataclass(frozen=True, eq=False)
class _Divided:
    """Which draws lie in each slice; what tells these slices from others, and how many there can ever be."""

    members: Mapping[str, NDArray[np.bool_]]
    told: Json
    room: int


@dataclass(frozen=True)
class AccuracySlices(Rule):
    r"""Alarms when the accuracy of some slice lies under ``threshold``, and names the slices.

    ``by`` is ``prediction`` (one slice per predicted class, or those of ``classes`` only), the name of an auxiliary
    variable that ``edges`` cut into slices, the name of a column in the configuration's ``slices``, or ``slices``: all
    that are listed there, but not those that opmon crosses. ``threshold`` is one line for all.

    For the slice :math:`d` with the accuracy :math:`1 - \theta_d` the hypothesis :math:`\theta_d \le m` is that the
    frame's mean of :math:`d_i (y_i - m)` is at most 0, whatever the size of the slice; the bets are made on its
    unbiased values. Each of the ``K`` slices gets the K-th part of the bound, so the probability that *any* slice
    alarms for nothing is at most ``alpha``. The number of slices must be known beforehand: ``classes``, the model's
    classes, ``edges``, or of a column of the log as many as it can ever have (``most``, with the rest and what is
    missing): a slice is remembered by its name, whether it is there in a round or not.

    **What it promises** is about *every* round, as with ``accuracy_level``; a slice's alarm ends as one there does.

    Slices are rarely drawn in, so this rule is slow for small ones: a slice of a tenth of the inputs takes about ten
    times the labels of the level rule.

    As with ``accuracy_level``, answers are taken for truth, and not corrected for annotators who err.
    """

    threshold: float
    """The accuracy under which no slice may lie."""
    name: str = "accuracy-slices"
    by: str = "prediction"
    """What divides the inputs into slices: the predicted class, a variable, a column in ``slices``, or all of them."""
    classes: tuple[str, ...] | None = None
    """The predicted classes to look at; all where none are named."""
    edges: tuple[float, ...] | None = None
    """Where a variable is cut into slices."""
    alpha: float | None = None
    """The probability of any false alarm in the life of a model version; 0.05 where ``false_alarms`` is not given."""
    false_alarms: str | None = None
    """Instead of ``alpha``: the mean rate of false alarms, such as ``1 per year``."""
    recovery: float = 20.0
    """How much evidence ends an alarm: one that should go on is ended with probability 1/recovery at most."""

    problems: ClassVar[tuple[Problem, ...]] = SHARES
    bets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_share(self.threshold, "threshold")
        checked_name(self.name)
        checked_recovery(self.recovery)
        if self.by == "prediction" and self.edges is not None:
            raise InputError("edges cut a variable: name it in 'by', such as by: confidence")
        if self.edges is not None and (not self.edges or list(self.edges) != sorted(set(self.edges))):
            raise InputError(f"edges must be growing numbers that cut {self.by!r}, such as [0.1, 0.5]")
        Bound.of(self.alpha, self.false_alarms)

    def watched_slices(self) -> str | None:
        return None if self.by == "prediction" or self.edges is not None else self.by

    def judge(self, case: Case) -> Verdict:
        """The verdict on one round over all slices."""
        if case.sample is None or case.estimate is None or not case.sample.answered.any():
            return unanswered(self.name, case, self.threshold)
        divided = self._divided(case)
        if divided is None:
            message = f"slices by {self.by!r} are not known for this round; {_there_are(case)}"
            return Verdict(self.name, "unknown", message, None, self.threshold, carried(case.before))
        excess = terms(case.sample, np.zeros(len(case.sample.draw)), case.design).excess
        if excess:
            message = f"a draw weighs {excess:.3g}, more than bets allow for: set defensive of the sampler to 0.1"
            return Verdict(self.name, "unknown", message, None, self.threshold, carried(case.before))
        growths = {name: self._growth(case.sample, inside, case.design) for name, inside in divided.members.items()}
        if case.before.get("setting") == self._setting(divided.told):
            growths |= {name: Growth.none() for name in case.before.get("of", {}) if name not in growths}
        quantity = ACCURACY if case.estimate is None else case.estimate.quantity
        return self._judged(case.before, growths, divided.told, divided.room, case.elapsed, quantity)

    def restate(self, before: Document, details: Document) -> Verdict | None:
        """The verdict by the round's own evidence, which was kept with the one before."""
        own = details.get(OWN)
        if own is None:
            return None
        growths = {name: Growth.of(growth) for name, growth in own["growths"].items()}
        told, room = own.get("slices", list(growths)), own.get("room", len(growths))
        quantity = kept(own["of"]) if "of" in own else ACCURACY
        return self._judged(before, growths, told, room, kept_time(own), quantity)

    def _judged(
        self,
        before: Document,
        growths: Mapping[str, Growth],
        told: Json,
        room: int,
        elapsed: timedelta | None,
        quantity: Quantity,
    ) -> Verdict:
        bound, setting = Bound.of(self.alpha, self.false_alarms), self._setting(told)
        of = before.get("of", {}) if before.get("setting") == setting else {}
        part = bound.shared(room)
        steps = {
            name: advance(growth, of.get(name, {}), {}, part, elapsed, self.recovery)
            for name, growth in growths.items()
        }
        verdict = self._verdict(steps, setting, bound.words(elapsed), quantity)
        own = {"growths": {name: growth.kept() for name, growth in growths.items()}, "slices": told, "room": room}
        own |= {"of": as_kept(quantity)}
        return replace(verdict, details={**verdict.details, OWN: own | time_kept(elapsed)})

    def _setting(self, told: Json) -> dict[str, Json]:
        """What the evidence belongs to: with other slices it begins anew."""
        bound = Bound.of(self.alpha, self.false_alarms).words()
        return {"threshold": self.threshold, "by": self.by, "slices": told, "bound": bound}

    def _divided(self, case: Case) -> _Divided | None:
        """The draws of every slice, by its name; None where they are not known."""
        if self.watched_slices() is not None:
            cuts = [cut for cut in case.cuts if self.by in (cut.name, ALL)]
            told = [[cut.name, cut.room, list(cut.members) if cut.fixed else None] for cut in cuts]
            members = {name: inside for cut in cuts for name, inside in cut.members.items()}
            return _Divided(members, told, sum(cut.room for cut in cuts)) if members else None
        parts = self._members(case)
        return None if parts is None else _Divided(parts, list(parts), len(parts))

    def _members(self, case: Case) -> dict[str, NDArray[np.bool_]] | None:
        """The draws of every predicted class, or of every part of a variable."""
        if self.by == "prediction":
            names = self.classes or case.class_names
            if case.classes is None or not names:
                return None
            return {name: case.classes == name for name in names}
        if self.by not in case.variables or self.edges is None:
            return None
        values, cuts = case.variables[self.by], (-np.inf, *self.edges, np.inf)
        return {f"{self.by} {low:g} to {high:g}": (values >= low) & (values < high) for low, high in pairwise(cuts)}

    def _growth(self, sample: Sample, inside: NDArray[np.bool_], design: Estimator | None) -> Growth:
        m = 1 - self.threshold
        surplus = np.where(inside & sample.answered, np.nan_to_num(sample.outcomes) - m, 0.0)
        bettable, answered = terms(sample, surplus, design), sample.answered
        values, stakes = bettable.of(surplus)[answered], bettable.stakes[answered]
        bets = np.minimum(BETS[:, None] * stakes, HIGHEST) / (m * bettable.reach[answered])
        room = bettable.highest(1 - m)[answered] if bounded(sample) else None
        back = recovery_growth(values, stakes, room)
        return Growth(np.log1p(bets * values).sum(axis=1), back, len(values))

    def _verdict(self, steps: Mapping[str, Step], setting: Document, bound: str, quantity: Quantity) -> Verdict:
        line = quantity.exactly(self.threshold)
        alarmed = [name for name, taken in steps.items() if taken.watch.alarmed]
        leading = max(steps, key=lambda name: steps[name].watch.evidence)
        if alarmed:
            message = f"{quantity.name} under {line} in {len(alarmed)} of {len(steps)} slices: "
            message += "; ".join(f"{self._called(name)}: {self._words(steps[name], line)}" for name in alarmed)
        else:
            message = f"no slice of {len(steps)} is known to be under {line}; nearest is {self._called(leading)}: "
            message += self._words(steps[leading], line)
        details = {
            "setting": dict(setting),
            "slices_alarmed": alarmed,
            "evidence": steps[leading].watch.evidence,
            "needed": 1.0,
            "bound": f"{bound}, over all slices",
            "of": {name: taken.details for name, taken in steps.items()},
        }
        state: VerdictState = "alarm" if alarmed else "ok"
        return Verdict(self.name, state, f"{message} ({bound}, over all slices)", None, self.threshold, details)

    def _called(self, name: str) -> str:
        """A slice in words: a class alone would not say that it is the predicted one."""
        return f"predicted {name}" if self.by == "prediction" else name

    def _words(self, taken: Step, line: str) -> str:
        return taken.words(f"{line} or better", self.recovery)


def _there_are(case: Case) -> str:
    named = ", ".join(cut.name for cut in case.cuts) or "none"
    return f"its variables: {', '.join(case.variables) or 'none'}; the columns of its slices: {named}"
