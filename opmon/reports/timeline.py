"""The numbers of a round that become its point on MLflow's charts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from opmon.errors import InputError
from opmon.types import Estimate

_COUNTS = ("received", "unscorable", "duplicates", "asked", "returned", "failures")


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """What happened in a round, counted in distinct inputs."""

    received: int
    """Inputs that production logged for this round."""
    unscorable: int = 0
    """Inputs the model could not be run on."""
    duplicates: int = 0
    """Inputs logged more than once; they are counted once."""
    asked: int = 0
    """Inputs sent to the annotators."""
    returned: int = 0
    """Inputs that have an answer; a skip is none."""
    failures: int = 0
    """Answered inputs on which the model is wrong."""
    skew: float | None = None
    """Share of inputs where the registered model answers otherwise than production did."""
    drift: float | None = None
    """Share of compared columns that drifted."""

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 0:
                raise InputError(f"{name} counts inputs and cannot be negative; got {getattr(self, name)}")
        if self.returned > self.asked:
            raise InputError(f"no more labels return than were asked for; got {self.returned} of {self.asked}")
        if self.failures > self.returned:
            raise InputError(f"only answered inputs can fail; got {self.failures} failures in {self.returned} answers")
        for name in ("skew", "drift"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise InputError(f"{name} is a share between 0 and 1, or None where it is not known; got {share}")

    @property
    def response(self) -> float | None:
        """The share of asked inputs that have an answer; None where nothing was asked."""
        return self.returned / self.asked if self.asked else None

    @property
    def failure_rate(self) -> float | None:
        """The share of answered inputs that failed. Not an estimate of the failure rate in production."""
        return self.failures / self.returned if self.returned else None


def rolling_metrics(estimate: Estimate) -> dict[str, float]:
    """MLflow metrics of the last rounds together, beside those of the round: ``accuracy/rolling`` and its bounds."""
    key = f"{estimate.quantity.key}/rolling"
    found = {key: estimate.value, f"{key}_low": estimate.low, f"{key}_high": estimate.high}
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}


def timeline_metrics(estimate: Estimate | None, facts: RoundFacts) -> dict[str, float]:
    """MLflow metrics of one round, by key; what is not known is left out, never logged as zero or NaN.

    ``accuracy/estimate`` is there only when the estimate is final. While answers may still come, its value is
    ``accuracy/provisional``, so that a chart of ``accuracy/estimate`` shows nothing that can change its mind.

    >>> facts = RoundFacts(received=1000, asked=50, returned=40, failures=2)
    >>> timeline_metrics(None, facts)["labels/response"]
    0.8
    """
    known: dict[str, float | None] = {
        "inputs/received": facts.received,
        "inputs/unscorable": facts.unscorable,
        "inputs/unscorable_share": facts.unscorable / facts.received if facts.received else None,
        "inputs/duplicates": facts.duplicates,
        "labels/asked": facts.asked,
        "labels/returned": facts.returned,
        "labels/response": facts.response,
        "failures/exposed": facts.failures,
        "failures/rate": facts.failure_rate,
        "serving/skew": facts.skew,
        "drift/share": facts.drift,
    }
    if estimate is not None:
        group = estimate.quantity.key
        known[f"{group}/{'provisional' if estimate.provisional else 'estimate'}"] = estimate.value
        known[f"{group}/low"] = estimate.low
        known[f"{group}/high"] = estimate.high
    return {key: float(value) for key, value in known.items() if value is not None and math.isfinite(value)}
