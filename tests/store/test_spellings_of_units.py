"""Rounds that were kept with another spelling of their unit are found with the others."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from opmon.kept_quantities import as_kept, kept
from opmon.measures.within_tolerance import WithinTolerance
from opmon.quantities import MAE, Quantity, mean_squared_error
from opmon.store.glances import Glance


@pytest.mark.parametrize(("older", "unit"), [("(€)²", "€"), ("CO2²", "CO2"), ("m²²", "m²"), ("(km/h)²", "km/h")])
def test_an_older_spelling_is_the_same_quantity(older: str, unit: str) -> None:
    now = mean_squared_error(unit)
    assert kept({"quantity": "mean squared error", "unit": older}) == now
    glance = Glance(1, 1, ("m", "1"), datetime(2026, 1, 1, tzinfo=UTC), ("mean squared error", older), 1, 0, 2, False)
    assert glance.is_of(now)
    assert not glance.is_of(mean_squared_error("other"))


def test_units_of_other_quantities_stay() -> None:
    assert kept({"quantity": "MAE", "unit": "(€)²"}).unit == "(€)²"
    assert kept(as_kept(Quantity("cost", "m²"))).unit == "m²"


def test_one_day_is_no_days() -> None:
    """Of a share within one day: databases have it as it was called before."""
    now = WithinTolerance(1).quantity("days")
    assert now.name == "share within 1 day"
    assert kept({"quantity": "share within 1 days", "unit": "", "share": True}) == now
    glance = Glance(1, 1, ("m", "1"), datetime(2026, 1, 1, tzinfo=UTC), ("share within 1 days", ""), 1, 0, 2, False)
    assert glance.is_of(now)
    assert not glance.is_of(WithinTolerance(2).quantity("days"))
    assert MAE.measured_in("days").exactly(1) == "1 day"
    assert MAE.measured_in("days").text(1.0, 1) == "1.0 days"
