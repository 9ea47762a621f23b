"""The suite that every rule passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import numpy as np

from opmon.abc import Rule
from opmon.decisions.case import Case
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Document, Draw, Sample, Verdict, VerdictState

DRAWS, INPUTS = 60, 2000
RATES = (0.02, 0.02, 0.02, 0.4, 0.4, 0.4, 0.02, 0.02, 0.02, 0.02)
"""The failure rates of a life with one drop."""


def check_rule(rule: Rule, **facts: Any) -> None:
    """Check that a rule judges rounds purely, keeps what it knows as JSON, and takes rounds without answers.

    ``facts`` are fields of :class:`~opmon.decisions.case.Case` that the rule asks for, such as ``drift=0.2``.
    """
    assert isinstance(rule, Rule), f"{type(rule).__name__} does not subclass opmon.abc.Rule"
    assert str(rule.name).strip(), "a rule has a name"
    before: Document = {}
    for case in _life(facts):
        verdict = _judged(rule, replace(case, before=before))
        details = json.loads(json.dumps(dict(verdict.details)))
        again = rule.restate(before, details)
        assert again is None or (again.state, again.message) == (verdict.state, verdict.message), (
            "restate() after the same round says something else than judge() did"
        )
        silent = _judged(rule, Case(case.number + 1, (), before=details))
        assert silent.state != "alarm" or verdict.state == "alarm", "a round without any answer made an alarm"
        before = details


def _judged(rule: Rule, case: Case) -> Verdict:
    """The verdict, checked."""
    kept = json.dumps(dict(case.before))
    verdict = rule.judge(case)
    assert isinstance(verdict, Verdict), "judge() gives a Verdict"
    assert verdict.state in get_args(VerdictState), f"{verdict.state!r} is no state"
    assert verdict.message.strip(), "a verdict explains itself"
    assert json.loads(json.dumps(dict(verdict.details))) is not None, "details can be kept as JSON"
    assert json.dumps(dict(case.before)) == kept, "judge() changed what the round before had kept"
    second = rule.judge(case)
    assert (second.state, second.message) == (verdict.state, verdict.message), "judge() is pure: the same twice"
    return verdict


def _life(facts: Document) -> Iterator[Case]:
    rng, estimator, estimates = np.random.default_rng(0), SimpleRandomEstimator(), []
    for number, rate in enumerate(RATES, start=1):
        draw = Draw("srs", INPUTS, np.arange(DRAWS), constants={"replacement": np.array(False)})
        sample = Sample(draw, (rng.random(DRAWS) < rate).astype(np.float64), "classification")
        estimates.append(estimator.estimate(sample))
        yield Case(
            number,
            tuple(estimates),
            sample,
            design=estimator,
            numbers=tuple(range(1, number + 1)),
            elapsed=timedelta(hours=1),
            classes=np.where(np.arange(DRAWS) % 2, "a", "b"),
            class_names=("a", "b"),
            asked=DRAWS,
            answered=DRAWS,
            received=INPUTS,
            scored=INPUTS,
            **facts,
        )
