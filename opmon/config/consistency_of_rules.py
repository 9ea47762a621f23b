"""Checks that rules fit what a monitor measures: its problem, its measures, and how large these can be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from opmon import plugins
from opmon.abc import USUAL, Ratio
from opmon.config.part import at_key
from opmon.decisions.measure_level import stakes
from opmon.errors import InputError
from opmon.types import Labelled
from opmon.wording import exactly, number

if TYPE_CHECKING:
    from opmon.abc import Measure
    from opmon.config.monitor import MonitorSettings
    from opmon.quantities import Quantity


def check_rules(monitor: MonitorSettings) -> None:
    """Rules are for the monitor's problem."""
    for rule in monitor.rules:
        if monitor.problem not in rule.plugin.problems:
            fitting = [
                name for name in plugins.names("rule") if monitor.problem in plugins.class_of("rule", name).problems
            ]
            raise at_key(
                "rules",
                f"{rule.type!r} is no rule for problem: {monitor.problem}, which is told by its "
                f"{monitor.quantity.name}; the rules for it are: {', '.join(fitting)}",
            )


def check_lines(monitor: MonitorSettings) -> None:
    """Rules watch what is measured, and no line lies where it can never be crossed, or never not."""
    for place, rule in enumerate(monitor.rules):
        name = rule.plugin.watches()
        try:
            watched = monitor.watched(name)
        except ValueError as exc:
            hint = "" if rule.type.startswith("measure_") else "; measure_level and measure_worse watch the main one"
            of = monitor.usual_quantity.name if name == USUAL else name
            raise at_key("rules", f"{rule.type} watches {of!r}: {exc}{hint}", place) from exc
        if watched.plugin.is_table or watched.quantity(monitor.unit).better == "neither":
            raise at_key(
                "rules", f"{rule.type} needs one number that can be better or worse, and {watched.key!r} is none", place
            )
        quantity, line = watched.quantity(monitor.unit), rule.plugin.line()
        try:
            ratio = _probed(monitor, watched.plugin)
            if rule.plugin.bets_on_ratio and ratio is None:
                raise InputError(
                    f"{quantity.name} is no ratio of two sums over inputs, and no bound for life is known of it; use "
                    "measure_worse, which looks at the estimates"
                )
            if line is not None:
                _require_within(line, quantity, _range(watched.plugin, quantity, ratio))
            if rule.plugin.bets_on_ratio and ratio is not None:
                _require_bets(watched.plugin, quantity, ratio, line or 0.0)
        except InputError as exc:
            raise at_key("rules", f"{rule.type}: {exc}", place) from exc


def _probed(monitor: MonitorSettings, measure: Measure) -> Ratio | None:
    """The ratio that a measure is, as two inputs that are made up show it; None where it is none."""
    classes = monitor.class_names or ("0", "1", "2")
    texts, numbers = np.array(classes[:2], np.str_), np.array([0.0, 1.0])
    of_classes = monitor.problem in ("classification", "multilabel")
    known = np.array([True, True])
    if monitor.problem == "multilabel":
        texts = np.eye(2, len(classes), dtype=np.bool_)
    scores = np.full((2, len(classes)), 1 / len(classes)) if of_classes else None
    values = texts if of_classes else numbers
    return measure.ratio(Labelled(known, values, values, scores, classes if of_classes else ()))


def _range(measure: Measure, quantity: Quantity, ratio: Ratio | None) -> tuple[float, float]:
    """What the measure lies between, as far as that is known."""
    low, high = (0.0, 1.0) if quantity.share else (-math.inf, measure.highest)
    if quantity.better == "zero":
        return 0.0, math.inf  # how far it may be from 0
    if ratio is None:
        return low, high
    ends = (end if math.isinf(end) else measure.told(end) for end in (ratio.lowest, ratio.highest))
    return max(low, next(ends)), min(high, next(ends))


def _require_within(line: float, quantity: Quantity, ends: tuple[float, float]) -> None:
    """An error where a measure never is as large or as small as a line."""
    low, high = ends
    if low <= line <= high:
        return
    name, got = quantity.name, f"got {exactly(line)}"
    if quantity.better == "zero":
        raise InputError(f"threshold is how far {name} may be from 0, on either side, so at least 0; {got}")
    if math.isinf(high):
        raise InputError(f"threshold must be {number(low)} or more, as {name} is; {got}")
    if math.isinf(low):
        raise InputError(f"threshold must be {number(high)} or less, as {name} is; {got}")
    hint = f": {number(line)} % is {number(line / 100)}" if quantity.percent and 2 <= line <= 100 else ""
    raise InputError(f"threshold must lie between {number(low)} and {number(high)}, as {name} does; {got}{hint}")


def _require_bets(measure: Measure, quantity: Quantity, ratio: Ratio, line: float) -> None:
    """An error where nothing can be bet on the ratio, or on that side of the line."""
    as_ratio = measure.as_ratio(line)
    if not math.isclose(measure.told(as_ratio), line, rel_tol=1e-6, abs_tol=1e-9):
        raise InputError(
            f"{type(measure).__name__} does not say of which ratio {line:g} is told: its as_ratio() must take back "
            "what its told() tells"
        )
    stakes(ratio, quantity, as_ratio)
