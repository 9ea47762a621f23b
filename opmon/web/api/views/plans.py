"""How many labels an interval needs, as the API tells it."""

from __future__ import annotations

from typing import cast

from pydantic import Field, JsonValue

from opmon.samplers.advisor import Advice
from opmon.web.api.views.estimates import View
from opmon.web.planned import Planned


class WidthOut(View):
    """A budget with the half-widths that it is expected to give."""

    budget: int
    half_width: float
    plain_half_width: float = Field(description="with simple random sampling")


def _sampler(advice: Advice, budget: int) -> dict[str, JsonValue]:
    """What stands in the configuration."""
    return cast(dict[str, JsonValue], {"type": advice.sampler, "budget": budget, **advice.parameters})


class PlanOut(View):
    """How many labels an interval needs."""

    quantity: str
    unit: str
    inputs: int
    expected: float | None
    aim: float
    level: float
    half_width: float = Field(description="what the budget gives")
    budget: int
    plain_budget: int = Field(description="what simple random sampling would take")
    hopeful_budget: int | None
    notes: list[str]
    sampler: dict[str, JsonValue]
    reasons: list[str]
    curve: list[WidthOut]

    @classmethod
    def of(cls, found: Planned) -> PlanOut:
        known, plan, advice = found.known, found.plan, found.advice
        return cls(
            quantity=known.quantity.name,
            unit=known.quantity.unit,
            inputs=found.inputs,
            expected=known.expected,
            aim=known.aim,
            level=known.level,
            half_width=plan.half_width,
            budget=plan.budget,
            plain_budget=plan.plain_budget,
            hopeful_budget=plan.hopeful_budget,
            notes=list(plan.notes),
            sampler=_sampler(advice, plan.asked),
            reasons=list(advice.reasons),
            curve=[WidthOut(budget=n, half_width=own, plain_half_width=plain) for n, own, plain in found.curve],
        )
