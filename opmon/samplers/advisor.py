"""Advice on which sampler to take, from the size of the frame, the budget, the variables at hand and the aim.

The figures are medians over six published classifiers and one regression model (all published variables, budgets 100
and 400), relative to simple random sampling at the same budget; ``tests/benchmarks/samplers.py`` measures them again.
They agree with the guidance of Guerriero et al. (DeepSample, ICSE 2024) where that is about unbiased designs: SSRS and
GBS for the estimate, SUPS, RHC-S and DeepEST for failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opmon.errors import InputError
from opmon.problems import traits
from opmon.samplers._aim import Aim
from opmon.samplers._checks import checked_budget, checked_problem, checked_share
from opmon.types import Json, Problem


@dataclass(frozen=True)
class Suggestion:
    """A sampler by name, with its parameters, and why one would take it."""

    sampler: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Advice:
    """The sampler to take, what to expect of it, and alternatives."""

    sampler: str
    parameters: Mapping[str, Json]
    reasons: tuple[str, ...]
    alternatives: tuple[Suggestion, ...] = ()


def advise(
    size: int,
    budget: int,
    *,
    problem: Problem = "classification",
    variables: Sequence[str] = (),
    aim: float = 0.5,
    waves: bool = True,
    measure: str | None = None,
    aims: bool = True,
) -> Advice:
    """The sampler for ``budget`` labels out of ``size`` inputs.

    ``variables`` are the auxiliary variables at hand, ``aim`` runs from 0 (estimate) to 1 (expose failures), ``waves``
    says whether labels can come back before the rest is drawn. ``measure`` names what is estimated where that is not
    the usual one of the problem; ``aims`` says whether a sampler can aim at it.

    >>> advice = advise(10_000, 200, variables=["confidence"])
    >>> advice.sampler, dict(advice.parameters)
    ('adaptive', {'aim': 0.5})
    """
    checked_budget(budget)
    checked_share(aim, "aim")
    if size < 1:
        raise InputError(f"a frame has at least one input; got size={size}")
    checked_problem(problem)
    if size <= budget:
        return Advice(
            "srs", {}, (f"the budget covers all {size:,} inputs: label them all, the estimate is then exact",)
        )
    if not variables:
        if not traits(problem).of_classes:
            return Advice("srs", {}, (_WITHOUT_VARIABLES[0], _NUMBERS_OF_THE_LOG))
        return Advice("srs", {}, _WITHOUT_VARIABLES, _WITHOUT_VARIABLES_EITHER)
    parameters: dict[str, Json] = {"aim": aim}
    if not waves:
        parameters["waves"] = 1
    expected = _expectations(problem, aim) if measure is None else (_aimed(measure) if aims else _not_aimed(measure),)
    reasons = [*expected, _on_waves(budget, aim, waves)]
    if len(variables) > 1:
        reasons.append(f"it uses all {len(variables)} variables and learns from the labels which of them tell")
    return Advice(
        "adaptive", parameters, tuple(reasons), () if measure else _alternatives(problem, variables, aim, waves)
    )


_WITHOUT_VARIABLES = (
    "without an auxiliary variable every input is as suspicious as any other: simple random sampling",
    "the confidence costs nothing where the model gives probabilities, and would shorten the interval",
)

_NUMBERS_OF_THE_LOG = (
    "a number of the log that foretells trouble, such as a doubt or a length, would shorten the interval: "
    "variables: {risk: column}"
)
_WITHOUT_VARIABLES_EITHER = (
    Suggestion("ces", {}, "for a network: it looks at a hidden layer and needs no variable; its estimate is biased"),
)


def _aimed(measure: str) -> str:
    return (
        f"it alone aims at {measure}: labels go where its value is in doubt, by the chances that the model gives or "
        "by what labels show along the variables, and a share of them everywhere; other samplers draw as for the usual "
        "measure. With scores that tell, the recall of a class of 1 % had a third to a half of the error of simple "
        "random sampling, a cost or a mean absolute error three quarters"
    )


def _not_aimed(measure: str) -> str:
    return (
        f"no sampler aims at {measure}: it cannot be told beforehand which inputs its value depends on. It is drawn "
        "as for the usual measure, and its estimate and interval hold as ever"
    )


def _expectations(problem: Problem, aim: float) -> tuple[str, ...]:
    if not traits(problem).is_share:
        return (
            "unbiased; where the variables foretell how large an error is, 0.8 of the error and interval of simple "
            "random sampling (one published model); where they do not, about those of simple random sampling",
        )
    if aim < 0.25:
        return ("least error: about 0.79 of that of simple random sampling, interval 0.89 as wide",)
    if aim <= 0.75:
        return ("about 0.77 of the error of simple random sampling and 1.4 times its failures, interval 0.9 as wide",)
    return (
        "about 2.4 times the failures of simple random sampling, many more where failures are rare; its error is 1.2 "
        "times and its interval 1.4 to 3 times that of simple random sampling",
    )


def _on_waves(budget: int, aim: float, waves: bool) -> str:
    if not waves:
        return "all draws at once, as asked: 3 to 5 % more error and fewer failures than in two waves"
    if budget < (least := Aim.of(aim).smallest):
        return f"a budget below {least:.0f} is drawn at once: too few labels to learn from"
    return "two waves: the rest is queued when the first labels are in"


def _alternatives(problem: Problem, variables: Sequence[str], aim: float, waves: bool) -> tuple[Suggestion, ...]:
    by = {"variable": "confidence" if "confidence" in variables else variables[0]}
    if not traits(problem).is_share:
        return (
            Suggestion("srs", {}, "the plainest: exact, nothing to explain"),
            Suggestion(
                "deepest", by, "the papers' choice of steps towards suspicious inputs; the error is that of srs"
            ),
        )
    alternatives = []
    if aim <= 0.5:
        alternatives.append(
            Suggestion("ssrs", by, "one draw, one variable; on confidence 0.84 of srs's error, 1.6 × failures")
        )
        if waves:
            alternatives.append(
                Suggestion("gbs", by, "in waves, one variable; on confidence 0.81 of srs's error, 1.4 × failures")
            )
        alternatives.append(Suggestion("srs", {}, "the plainest: exact interval, nothing to explain"))
    if aim >= 0.5:
        alternatives.append(
            Suggestion("deepest", by, "on confidence 2.0 × srs's failures, 1.0 of its error, interval 1.3 × as wide")
        )
        alternatives.append(
            Suggestion("sups", by, "on confidence 2.2 × srs's failures, but 1.3 of its error, interval 1.8 × as wide")
        )
    return tuple(alternatives)
