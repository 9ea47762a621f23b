"""What assists the estimate: a proxy of the outcome that is known of more inputs than labels are."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from opmon.config.part import Part


class ProxySettings(Part):
    """A column of the log as a proxy of whether the model is wrong."""

    column: str
    """The column of the log."""
    says: Literal["answer", "wrong", "right"] = "answer"
    """What it holds: somebody else's ``answer``, which is compared with the model's, or how likely the model is
    ``wrong`` or ``right`` (of a regression: ``wrong`` is its expected squared error)."""


class EstimateSettings(Part):
    """How estimates are made of the labels."""

    proxy: ProxySettings | Literal["judge", "learned"] | None = None
    """What assists them: a column of the log, the ``judge``, or the failure rate ``learned`` from the labels of rounds
    before; None: the judge where there is one, else the labels alone."""

    before_labels: bool = True
    """Whether a round is told what is expected of it as soon as it is scored, before any of its labels: a prediction
    from the model's scores and the labels of rounds before."""

    @field_validator("proxy", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if isinstance(value, str) and value not in ("judge", "learned"):
            raise ValueError(f"must be judge, learned, or a column such as {{column: {value}, says: answer}}")
        return value
