"""Where the truth of inputs arrives by itself, with nobody asked for it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from opmon.config.fields import Duration
from opmon.config.kinds import SourceSettings
from opmon.config.part import Part, at_key


class TruthSettings(Part):
    """A source of truths, joined by the inputs' ids, or a column of the log itself."""

    source: SourceSettings | None = None
    id: str | None = None
    """The column with the input's id; None: it is called as in the log."""
    label: str | None = None
    """The column with the truth: a class, in any of its spellings, or a number."""
    column: str | None = None
    """The column of the log itself that holds the truth, or nothing where it is not known."""
    at: str | None = None
    """The column that says when it was known; None: when it could first be read."""
    keep: Duration = Field(default="90d")  # type: ignore[assignment]
    """How long truths are kept that no round has asked for yet."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.source is None) == (self.column is None):
            raise ValueError(
                "needs either source and label, for truths that arrive in a place of their own, such as "
                "{source: {path: truth/}, label: outcome}, or column, for a column of the log itself"
            )
        if self.source is not None and self.label is None:
            raise at_key("label", "is required: the column of the source that holds the truth")
        for key in ("id", "label"):
            if self.column is not None and getattr(self, key) is not None:
                raise at_key(key, "is a column of a source of its own; with column the truth is in the input's own row")
        return self
