"""The metrics of a round for MLflow's charts.

Every key of a final number has one value a round: MLflow draws whatever was logged at a step, so two of them make its
line zigzag. What may still change, and what has changed since, has keys of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from opmon.errors import InputError
from opmon.quantities import Quantity
from opmon.store.corrections import Corrected
from opmon.store.measured import Measured
from opmon.types import Estimate
from opmon.types.expected import Expected

MOST_CELLS = 25
"""The most parts of one measure that have metrics of their own."""
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
    losses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What the log held, or should have held, and the estimate does not speak of: by kind and reason."""
    asked: int = 0
    """Inputs sent to the annotators."""
    returned: int = 0
    """Inputs that have an answer; a skip is none."""
    failures: int | None = 0
    """Answered inputs on which the model is wrong; None of a regression without a tolerance."""
    skew: float | None = None
    """Share of inputs where the registered model answers otherwise than production did."""
    drift: float | None = None
    """Share of the log's compared columns that drifted."""
    answers_drift: float | None = None
    """Share of the model's prediction and variables that drifted."""
    arrived: int | None = None
    """Asked inputs whose truth has come by itself; None where none ever does."""
    lag_median: float | None = None
    """After how many hours half of these had come, and nine in ten."""
    lag_ninety: float | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"{name} counts inputs and cannot be negative; got {getattr(self, name)}")
        if self.returned > self.asked:
            raise InputError(f"no more labels return than were asked for; got {self.returned} of {self.asked}")
        if (self.failures or 0) > self.returned:
            raise InputError(f"only answered inputs can fail; got {self.failures} failures in {self.returned} answers")
        for name in ("skew", "drift", "answers_drift"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise InputError(f"{name} is a share between 0 and 1, or None where it is not known; got {share}")

    def left_out(self, kind: str) -> int:
        """How many of one kind: ``filtered``, ``thinned``, ``unlogged``, ``unscorable`` or ``late``."""
        return sum(self.losses.get(kind, {}).values())

    @property
    def response(self) -> float | None:
        """The share of asked inputs that have an answer; None where nothing was asked."""
        return self.returned / self.asked if self.asked else None

    @property
    def failure_rate(self) -> float | None:
        """The share of answered inputs that failed. Not an estimate of the failure rate in production."""
        return self.failures / self.returned if self.returned and self.failures is not None else None


def input_metrics(facts: RoundFacts) -> dict[str, float]:
    """MLflow metrics of a round's inputs: known once it is scored, and never changed."""
    return _known(
        {
            "inputs/received": facts.received,
            "inputs/unscorable": facts.unscorable,
            "inputs/unscorable_share": facts.unscorable / facts.received if facts.received else None,
            "inputs/duplicates": facts.duplicates,
            **{f"inputs/{kind}": facts.left_out(kind) or None for kind in ("filtered", "thinned", "unlogged", "late")},
            "serving/skew": facts.skew,
            "drift/share": facts.drift,
            "drift/answers": facts.answers_drift,
        }
    )


def asked_metrics(facts: RoundFacts) -> dict[str, float]:
    """How many labels were asked for, once no more will be."""
    return _known({"labels/asked": facts.asked})


def provisional_metrics(estimate: Estimate, facts: RoundFacts) -> dict[str, float]:
    """The estimate while answers may still come, under keys of its own: a chart of the final ones has none of it."""
    return _bounded(estimate, "provisional", "provisional_low", "provisional_high") | _known(
        {"labels/provisional": facts.returned}
    )


def expected_metrics(expected: Expected, quantity: Quantity) -> dict[str, float]:
    """What a round was expected to be before its labels, under keys of its own: it is no estimate."""
    key = quantity.key
    return {
        f"{key}/expected": expected.value,
        f"{key}/expected_low": expected.low,
        f"{key}/expected_high": expected.high,
    }


def final_metrics(estimate: Estimate, facts: RoundFacts) -> dict[str, float]:
    """The first final estimate with the answers it stands on: one value a round, for ever.

    >>> facts = RoundFacts(received=1000, asked=50, returned=40, failures=2)
    >>> estimate = Estimate(0.95, 0.85, 0.99, n=50, frame_size=1000, response=0.8, method="srs")
    >>> found = final_metrics(estimate, facts)
    >>> found["accuracy/estimate"], found["labels/response"]
    (0.95, 0.8)
    """
    return _bounded(estimate, "estimate", "low", "high") | _known(
        {
            "labels/returned": facts.returned,
            "labels/response": facts.response,
            "failures/exposed": facts.failures,
            "failures/rate": facts.failure_rate,
            "truth/arrived": facts.arrived,
            "truth/lag_median_hours": facts.lag_median,
            "truth/lag_90_hours": facts.lag_ninety,
        }
    )


def revised_metrics(estimate: Estimate, facts: RoundFacts) -> dict[str, float]:
    """What labels that came late have made of the final estimate: MLflow adds values, and takes none back."""
    return _bounded(estimate, "revised", "revised_low", "revised_high") | _known(
        {"labels/revised": facts.returned, "failures/revised": facts.failures}
    )


def corrected_metrics(corrected: Corrected | None, quantity: Quantity, *, revised: bool) -> dict[str, float]:
    """The estimate corrected for annotators who err, beside the plain one, and how far they agree; nothing of rounds in
    which nobody's answers are checked. ``revised``: what later labels have made of it."""
    if corrected is None:
        return {}
    name = f"{quantity.key}/corrected{'_revised' if revised else ''}"
    agreement = {} if revised else {"labels/agreement": corrected.agreement, "labels/alpha": corrected.alpha}
    return _known({name: corrected.value, f"{name}_low": corrected.low, f"{name}_high": corrected.high} | agreement)


Ending = Literal["", "_provisional", "_revised", "_rolling", "_rolling_revised"]


def measure_metrics(some: Sequence[Measured], ending: Ending = "") -> dict[str, float]:
    """The measures beside the main one, such as ``measure/recall_fraud`` with ``_low`` and ``_high``.

    What may still change has the ``ending`` ``_provisional``, what late labels have made of it ``_revised``. Large
    tables are left out: a chart for each cell of a hundred is none that anybody looks at.
    """
    cells = Counter(each.measure for each in some)
    metrics: dict[str, float | None] = {}
    alike = Counter[str]()
    for each in some:
        key, found = each.quantity.key, each.estimate
        alike[key] += 1  # names that differ in marks alone, such as a-b and a_b
        if found is None or cells[each.measure] > MOST_CELLS:
            continue
        name = f"measure/{key}" if alike[key] == 1 else f"measure/{key}_{alike[key]}"
        metrics |= {
            f"{name}{ending}": found.value,
            f"{name}{ending}_low": found.low,
            f"{name}{ending}_high": found.high,
        }
    return _known(metrics)


def rolling_metrics(estimate: Estimate, *, revised: bool) -> dict[str, float]:
    """The last rounds together, beside the round's own: ``accuracy/rolling`` and its bounds.

    As of the moment when the round's estimate became final; what later labels of these rounds make of it is
    ``accuracy/rolling_revised``.
    """
    name = "rolling_revised" if revised else "rolling"
    return _bounded(estimate, name, f"{name}_low", f"{name}_high")


def _bounded(estimate: Estimate, value: str, low: str, high: str) -> dict[str, float]:
    group = estimate.quantity.key
    return _known(
        {f"{group}/{value}": estimate.value, f"{group}/{low}": estimate.low, f"{group}/{high}": estimate.high}
    )


def _known(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """The metrics that are known; others are left out, never logged as zero or NaN."""
    return {key: float(value) for key, value in metrics.items() if value is not None and math.isfinite(value)}
