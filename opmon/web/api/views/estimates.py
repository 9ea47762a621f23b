"""Estimates as the API tells them, and what all of its views are made of."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from opmon.quantities import Better, Quantity
from opmon.types import Estimate
from opmon.web.words import interval_of


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


Bound = Annotated[float | None, BeforeValidator(_finite)]
"""A number; null where there is no bound."""
State = Literal["ok", "alarm", "unknown"]


def title_of(quantity: Quantity) -> str:
    return quantity.title


class View(BaseModel):
    """Read from a view's own fields."""

    model_config = ConfigDict(from_attributes=True)


class EstimateOut(View):
    """What is estimated of all inputs of a round, from its labels."""

    quantity: str = Field(description="what it is of, such as accuracy")
    unit: str = Field(description="of its numbers; empty for shares, which lie between 0 and 1")
    better: Better = Field(description="which way is better; zero: the nearer to 0")
    value: Bound
    low: Bound = Field(description="the lower end of the interval; null: there is none")
    high: Bound
    level: float = Field(description="how often such intervals hold the truth")
    text: str = Field(description="value and interval as people read them")
    n: int = Field(description="labels that were drawn")
    frame_size: int = Field(description="inputs that it speaks of")
    response: float = Field(description="the share of the draws that was answered")
    method: str
    provisional: bool = Field(description="whether labels may still come")
    notes: list[str]

    @classmethod
    def of(cls, estimate: Estimate) -> EstimateOut:
        quantity = estimate.quantity
        own = {name: getattr(estimate, name) for name in cls.model_fields if name not in _OF_QUANTITY}
        told = {"quantity": quantity.name, "unit": quantity.unit, "better": quantity.better}
        return cls.model_validate(own | told | {"text": interval_of(estimate)})


_OF_QUANTITY = ("quantity", "unit", "better", "text")


def _told(estimate: Estimate | None) -> EstimateOut | None:
    return None if estimate is None else EstimateOut.of(estimate)


Estimated = Annotated[EstimateOut, BeforeValidator(_told)]
MaybeEstimated = Annotated[EstimateOut | None, BeforeValidator(_told)]
