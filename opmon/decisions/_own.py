"""A round's own evidence, kept with its verdict so that it can be multiplied again in another order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta

from opmon.decisions._watch import Growth
from opmon.decisions.case import OWN
from opmon.kept_quantities import as_kept, kept
from opmon.types import Document, Estimate, Json


@dataclass(frozen=True)
class Own:
    """A round's growth of the evidence, its estimate, and the production time it covers."""

    growth: Growth
    estimate: Estimate
    elapsed: timedelta | None

    @classmethod
    def of(cls, details: Document) -> Own | None:
        """The round as kept in the details of its verdict; None where it is not there."""
        own = details.get(OWN)
        if not isinstance(own, Mapping) or "growth" not in own:
            return None
        return cls(Growth.of(own["growth"]), kept_estimate(own), kept_time(own))

    def kept(self) -> dict[str, Json]:
        """The round as JSON can hold it."""
        return {"growth": self.growth.kept(), **estimate_kept(self.estimate), **time_kept(self.elapsed)}


def estimate_kept(estimate: Estimate) -> dict[str, Json]:
    """An estimate as JSON can hold it."""
    values = {key: value for key, value in asdict(estimate).items() if key not in ("notes", "quantity")}
    return {"estimate": values | as_kept(estimate.quantity)}


def kept_estimate(own: Document) -> Estimate:
    """The estimate that :func:`estimate_kept` kept."""
    values = own["estimate"]
    names = {each.name for each in fields(Estimate)} - {"quantity"}
    return Estimate(quantity=kept(values), **{name: value for name, value in values.items() if name in names})


def time_kept(elapsed: timedelta | None) -> dict[str, Json]:
    """A production time as JSON can hold it."""
    return {"elapsed": None if elapsed is None else elapsed.total_seconds()}


def kept_time(own: Document) -> timedelta | None:
    """The production time that :func:`time_kept` kept."""
    return None if own.get("elapsed") is None else timedelta(seconds=own["elapsed"])
