"""What a round says by itself: kept with its verdict, so that the evidence can be multiplied again in another order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from opmon.decisions._watch import Growth
from opmon.decisions.case import OWN
from opmon.quantities import named
from opmon.types import Estimate


@dataclass(frozen=True)
class Own:
    """A round's growth of the evidence, its estimate, and the production time it covers."""

    growth: Growth
    estimate: Estimate
    elapsed: timedelta | None

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> Own | None:
        """As kept in the details of a verdict; None where nothing of the kind is."""
        found = details.get(OWN)
        if not isinstance(found, Mapping) or "growth" not in found:
            return None
        return cls(Growth.of(found["growth"]), kept_estimate(found), kept_time(found))

    def kept(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"growth": self.growth.kept()} | estimate_kept(self.estimate) | time_kept(self.elapsed)


def estimate_kept(estimate: Estimate) -> dict[str, Any]:
    told = {key: value for key, value in asdict(estimate).items() if key not in ("notes", "quantity")}
    return {"estimate": told | {"quantity": estimate.quantity.name, "unit": estimate.quantity.unit}}


def kept_estimate(own: Mapping[str, Any]) -> Estimate:
    told = dict(own["estimate"])
    return Estimate(quantity=named(told.pop("quantity"), told.pop("unit")), **told)


def time_kept(elapsed: timedelta | None) -> dict[str, Any]:
    return {"elapsed": None if elapsed is None else elapsed.total_seconds()}


def kept_time(own: Mapping[str, Any]) -> timedelta | None:
    return None if own.get("elapsed") is None else timedelta(seconds=own["elapsed"])
