"""What rules share: how their arguments are checked and how their verdicts are put."""

from __future__ import annotations

from opmon.decisions._sequential import Step
from opmon.decisions._words import found
from opmon.decisions.case import Case
from opmon.errors import InputError
from opmon.types import Estimate, Verdict


def verdict(
    rule: str, taken: Step, estimate: Estimate, threshold: float, hypothesis: str, recovery: float, intro: str = ""
) -> Verdict:
    """The verdict that a step leads to."""
    message = f"{found(estimate)}; {intro}{taken.words(hypothesis, recovery)} ({taken.details['bound']})"
    distance = estimate.value - threshold
    return Verdict(
        rule=rule,
        state=taken.state,
        message=message,
        value=estimate.value,
        threshold=threshold,
        details=taken.details | {"low": estimate.low, "high": estimate.high, "n": estimate.n, "distance": distance},
    )


def unanswered(rule: str, case: Case, threshold: float | None) -> Verdict:
    """Nothing is known of this round; the evidence of those before is kept."""
    message = (
        "no round has an estimate yet" if not case.estimates else "the round has no answers; evidence is unchanged"
    )
    return Verdict(rule, "unknown", message, threshold=threshold, details=dict(case.before))


def checked_patience(recovery: float) -> float:
    """The rounds between false recoveries, or an error."""
    if isinstance(recovery, bool) or not isinstance(recovery, int | float) or not 1 < recovery <= 1e9:
        raise InputError(f"recovery must be a number of rounds above 1, such as 20; got {recovery!r}")
    return float(recovery)


def checked_share(value: object, name: str, low: float = 0.0, high: float = 1.0) -> float:
    """A number strictly between ``low`` and ``high``, or an error that says which."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
        hint = ""
        if isinstance(value, int | float) and not isinstance(value, bool) and 1 < value < 100:
            hint = f" (did you mean {value / 100:g}?)"
        raise InputError(f"{name} must lie strictly between {low:g} and {high:g}; got {value!r}{hint}")
    return float(value)


def checked_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"name must be text, such as 'accuracy-floor'; got {name!r}")
