"""Checks of arguments and wording of verdicts that rules share."""

from __future__ import annotations

from opmon.decisions._own import Own
from opmon.decisions._sequential import Step
from opmon.decisions._words import in_words, out_of_line
from opmon.decisions.case import OWN, Case, carried
from opmon.errors import InputError
from opmon.types import Verdict
from opmon.wording import number


def verdict(
    rule: str, taken: Step, own: Own, threshold: float, hypothesis: str, recovery: float, intro: str = ""
) -> Verdict:
    """The verdict that a step leads to."""
    estimate = own.estimate
    intro += out_of_line(estimate, threshold) if taken.state == "ok" else ""
    message = f"{in_words(estimate)}; {intro}{taken.words(hypothesis, recovery)} ({taken.details['bound']})"
    figures = {"low": estimate.low, "high": estimate.high, "n": estimate.n, "distance": estimate.value - threshold}
    return Verdict(
        rule=rule,
        state=taken.state,
        message=message,
        value=estimate.value,
        threshold=threshold,
        details=taken.details | figures | {OWN: own.kept()},
    )


def unanswered(rule: str, case: Case, threshold: float | None) -> Verdict:
    """The verdict on a round of which nothing is known; the evidence of those before is kept."""
    message = (
        "no round has an estimate yet" if not case.estimates else "the round has no answers; evidence is unchanged"
    )
    if case.why:
        message = f"{case.why}; evidence is unchanged"
    return Verdict(rule, "unknown", message, threshold=threshold, details=carried(case.before))


def checked_recovery(recovery: float) -> float:
    """The evidence that ends an alarm, or an error."""
    if isinstance(recovery, bool) or not isinstance(recovery, int | float) or not 1 < recovery <= 1e9:
        raise InputError(
            f"recovery must be a number above 1, such as 20: an alarm ends for nothing with probability 1/20 at most; "
            f"got {recovery!r}"
        )
    return float(recovery)


def checked_share(value: object, name: str, low: float = 0.0, high: float = 1.0) -> float:
    """A number strictly between ``low`` and ``high``, or an error that says which."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
        hint = ""
        if isinstance(value, int | float) and not isinstance(value, bool) and 1 < value < 100:
            hint = f" (did you mean {value / 100:g}?)"
        raise InputError(f"{name} must lie strictly between {number(low)} and {number(high)}; got {value!r}{hint}")
    return float(value)


def checked_name(name: object) -> None:
    """Raise an error where the name of a rule is not text."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"name must be text, such as 'accuracy-floor'; got {name!r}")
