"""Tomographies as the API tells them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, JsonValue

from opmon.web.api.views.estimates import View


class TomographyOut(View):
    """What a tomography came to."""

    round: int
    at: datetime = Field(description="when the last input of its round came")
    model_version: str
    summary: dict[str, JsonValue] = Field(
        description="the mean share still right over all tests (value, low, high), the worst test, the saved queries"
    )
    is_whole: bool = Field(description="whether it can be asked here")


class TomographiesOut(View):
    """Those of a monitor, newest first."""

    tomographies: list[TomographyOut]


class CaseOut(View):
    """One test."""

    label: str
    share: float = Field(description="of the inputs, that is still right")
    low: float
    high: float
    measured: bool = Field(description="else it is predicted")
    quality: float | None


class AnswerOut(View):
    """The mean share over the tests that meet a question."""

    question: str
    value: float
    low: float = Field(description="on the inputs at hand")
    high: float
    population_low: float = Field(description="with them as a sample of production")
    population_high: float
    level: float
    measured: int
    predicted: int
    quality: float | None
    worst: list[CaseOut]


class MapOut(View):
    """All tests: the severities of each and what came of it, in the same order in every list."""

    names: list[str]
    levels: int
    ordered: bool
    severities: list[list[int]]
    share: list[float]
    low: list[float]
    high: list[float]
    measured: list[bool]
