"""Checks that a sampler's design tells what is asked of its draws: bets, further measures, slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opmon import plugins, quantities
from opmon.config.part import at_key

if TYPE_CHECKING:
    from opmon.config.monitor import MonitorSettings


def check_design(monitor: MonitorSettings) -> None:
    """Raise an error at the first key that asks for more than the design tells."""
    _design_can_be_bet_on(monitor)
    _design_tells_of_measures(monitor)


def _design_can_be_bet_on(monitor: MonitorSettings) -> None:
    """Rules that bet on draws know those of some designs; another one would be taken for what it is not."""
    design = monitor.sampler.plugin.design or monitor.sampler.type
    betting = [rule.type for rule in monitor.rules if rule.plugin.bets]
    if betting and not _tells_bets(design):
        raise at_key(
            "rules",
            f"{betting[0]} bets on draws, and the estimator of the sampler {monitor.sampler.type!r} (design "
            f"{design!r}) does not tell what they are worth in bets; use the rule accuracy_below, or another "
            f'sampler. A sampler whose draws are of a known design says so: design = "srs"',
        )


def _design_tells_of_measures(monitor: MonitorSettings) -> None:
    """Measures beyond the usual one, and slices, need the variance of sums over the draws."""
    design = monitor.sampler.plugin.design or monitor.sampler.type
    if design not in plugins.names("estimator") or plugins.class_of("estimator", design).tells_parts():
        return
    usual = quantities.of(monitor.problem, monitor.unit, monitor.scale)
    others = [one for one in monitor.measures if one.quantity(monitor.unit) != usual]
    for key, asked, what in (("measures", bool(others), "measures beside the usual one"),
                             ("slices", bool(monitor.slices), "slices")):  # fmt: skip
        if asked:
            raise at_key(
                key,
                f"the estimator of the sampler {monitor.sampler.type!r} (design {design!r}) does not tell the variance "
                f"of sums over its draws, so there are no {what}: take another sampler, such as srs or adaptive, or "
                f"leave {key} out",
            )


def _tells_bets(design: str) -> bool:
    """Whether the estimator of a design says what its draws are worth in bets."""
    return design in plugins.names("estimator") and plugins.class_of("estimator", design).bets
