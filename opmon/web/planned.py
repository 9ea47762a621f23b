"""How many labels an interval needs: a plan for a monitor, with how wide intervals become at other budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opmon.config import MonitorSettings
from opmon.errors import InputError
from opmon.estimators.ratio_planning import ratio_widths
from opmon.queries.planning import Known, budget_for, learned
from opmon.samplers.advisor import Advice, advise
from opmon.samplers.planning import Plan, widths
from opmon.web.site import Site

_POINTS = 40


@dataclass(frozen=True)
class Wish:
    """What somebody wants to know; what is None is taken from the monitor."""

    half_width: float | None = None
    inputs: int | None = None
    expected: float | None = None
    aim: float | None = None


@dataclass(frozen=True)
class Planned:
    """The answer."""

    known: Known
    """What is taken for granted."""
    inputs: int
    half_width: float
    plan: Plan
    advice: Advice
    curve: Sequence[tuple[int, float, float]]
    """Budgets with the half-widths that they give, and that simple random sampling would."""
    hopeful: Sequence[tuple[int, float]] = ()
    """The same where the variables tell as much as those of other models; empty where it is known how much they do."""


def known_of(site: Site, settings: MonitorSettings) -> Known:
    """What the configuration and the newest rounds of a monitor tell."""
    with site.store.read() as connection:
        return learned(connection, settings.name, settings.plans_from)


def planned(known: Known, wish: Wish) -> Planned:
    """The plan; an error that says what is missing or cannot be."""
    inputs = wish.inputs or known.inputs
    if inputs is None:
        raise InputError("no round has been estimated yet: say how many inputs a round has")
    expected = known.expected if wish.expected is None or not known.quantity.share else wish.expected
    known = replace(known, expected=expected, aim=known.aim if wish.aim is None else wish.aim)
    half_width = _half_width(known, wish)
    accuracy = expected if known.quantity.share else None
    found = budget_for(known, half_width, inputs, expected, known.aim)
    budgets = _budgets(found, inputs)

    def curve(telling: float | None) -> list[tuple[int, float, float]]:
        if known.tally is not None:
            return ratio_widths(known.tally, budgets, known.labels, inputs, known.level)
        if known.shown is not None:
            shown = known.shown.aiming(known.aim, known.problem)
            return [(n, shown.width(n, inputs), shown.width(n, inputs) / shown.gain) for n in budgets]
        return widths(
            budgets,
            inputs,
            problem=known.planned_as,
            accuracy=accuracy,
            spread=known.spread,
            variables=len(known.variables),
            level=known.level,
            aim=known.aim,
            telling=telling,
        )

    advice = advise(
        inputs,
        found.budget,
        problem=known.problem,
        variables=known.variables,
        aim=known.aim,
        measure=known.main,
        aims=known.aims,
    )
    hopeful = () if found.hopeful_budget is None else tuple((n, width) for n, width, _ in curve(1.0))
    return Planned(known, inputs, half_width, found, advice, curve(known.telling), hopeful)


def _half_width(known: Known, wish: Wish) -> float:
    wanted = known.usual_half_width if wish.half_width is None else wish.half_width
    if wanted is None:
        raise InputError(f"say how narrow the interval shall be: a {known.quantity.title} has no usual width")
    return wanted


def _budgets(found: Plan, inputs: int) -> list[int]:
    """Budgets around the planned one, closer where the curve is steep."""
    most = min(inputs, max(3 * found.budget, 3 * found.plain_budget, 300))
    least = min(max(10, found.budget // 12), most)
    steps = [least * (most / least) ** (k / (_POINTS - 1)) for k in range(_POINTS)]
    return sorted({min(round(each), inputs) for each in steps})
