"""The smaller groups of keys of opmon.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from opmon.config.fields import Count, Duration, LocalPath, Number, Place, TrackingAddress
from opmon.config.part import Part, at_key
from opmon.errors import InputError
from opmon.where import parse


class MlflowSettings(Part):
    """Where MLflow is."""

    tracking_uri: TrackingAddress = Field(default="sqlite:///mlflow.db")  # type: ignore[assignment]
    registry_uri: TrackingAddress | None = None


class ImageSettings(Part):
    """One column with pictures: encoded, as paths below ``folder`` (also s3://bucket/…), or as arrays of pixels."""

    column: str
    folder: Place | None = None
    size: tuple[Count, Count] | None = None
    scale: Number = 1 / 255
    mean: tuple[Number, ...] = (0.0,)
    std: tuple[Annotated[float, Field(gt=0)], ...] = (1.0,)
    crop: bool = False


class TextSettings(Part):
    """One column of text and the tokenizer's file, ``.json`` or ``.onnx``."""

    column: str
    tokenizer: LocalPath
    length: Count = 256

    @field_validator("tokenizer")
    @classmethod
    def _known_kind(cls, value: Path) -> Path:
        if value.suffix not in (".json", ".onnx"):
            raise ValueError("must be a tokenizer.json or an ONNX graph (.onnx)")
        return value


class MissingSettings(Part):
    """What the model is given where an input has no value: NaN and empty text, unless told otherwise.

    A converted model whose encoders learned what to make of missing texts is given these as such.

    A column that holds nothing in a whole round, or in files of it, stops it, for it may have been renamed: those in
    ``empty`` may hold nothing.
    """

    numbers: Number | None = None
    text: str | None = None
    refuse: bool = False
    empty: tuple[str, ...] = ()

    @field_validator("numbers", mode="before")
    @classmethod
    def _nan(cls, value: object) -> object:
        nan = value != value or (isinstance(value, str) and value.strip().lower() in ("nan", ".nan"))
        return None if nan else value


class InputSettings(Part):
    """Which columns of the source the model takes: a list of columns, or one column that holds a list.

    Or pictures, or text, or whatever a function ``module:function`` makes of the rows.
    """

    features: tuple[str, ...] | None = None
    tensor: str | None = None
    image: ImageSettings | None = None
    text: TextSettings | None = None
    function: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    missing: MissingSettings = MissingSettings()
    where: str | None = None
    """Which rows are inputs at all, such as ``country == 'DE' and version != 'shadow'``."""

    @field_validator("where")
    @classmethod
    def _condition(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                parse(value)
            except InputError as exc:
                raise ValueError(f"must be a condition: {exc}") from exc
        return value

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.features is not None and self.tensor is not None:
            raise at_key(
                "tensor", "give either features (one column each) or tensor (one column with a list), not both"
            )
        given = [
            key for key in type(self).model_fields if key not in ("missing", "where") and getattr(self, key) is not None
        ]
        if len(given) > 1:
            raise at_key(given[1], f"give one of features, tensor, image, text and function; {given[0]} is there too")
        if self.features is not None and not self.features:
            raise at_key("features", "must name at least one column, or be left out")
        return self


class ColumnSettings(Part):
    """The columns of the source that are not inputs of the model."""

    id: str | None = None
    timestamp: str | None = None
    prediction: str | None = None
    threshold: Number | None = None
    """Where ``prediction`` is a score: from this value on the second of two classes was answered."""
    scores: tuple[str, ...] = ()
    """Production's own scores: one column for each class, in order or by name, or one that holds them all."""
    model_version: str | None = None
    inclusion: str | None = None
    """With which probability each row was logged, where production logs a sample of its traffic."""
    image: str | None = None
    text: str | None = None

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """The columns that are named, each with the key that names it."""
        single = [(key, getattr(self, key)) for key in type(self).model_fields if key not in ("threshold", "scores")]
        return (*((key, name) for key, name in single if name), *(("scores", name) for name in self.scores))

    @property
    def gives_scores(self) -> bool:
        """Whether production's own scores are among them: one for each class, or that of the second of two."""
        return bool(self.scores) or self.threshold is not None

    @field_validator("scores", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _threshold_of_something(self) -> Self:
        if self.threshold is not None and self.prediction is None:
            raise at_key("threshold", "is that of the score in prediction: name its column too")
        return self


class RoundSettings(Part):
    """When a round opens: at ``min_inputs``, or when the oldest input is ``max_age`` old; of each model version alike.

    It stops where more than the share ``max_unscorable`` of its inputs cannot be scored: the rest would not speak for
    them. One alone stops nothing. It stops, too, where production's own predictions differ from the registered model's
    on more than the share ``max_skew``: they are then of another model, of other inputs or in other words.

    Where the log names versions they share the budget as they share the inputs; ``canary: whole`` asks for all of it of
    each.
    """

    min_inputs: Count = 1000
    max_age: Duration = Field(default="1h")  # type: ignore[assignment]
    max_inputs: Count = 1_000_000
    max_unscorable: Annotated[Number, Field(gt=0, le=1)] = 0.1
    max_skew: Annotated[Number, Field(gt=0, le=1)] = 0.3
    canary: Literal["share", "whole"] = "share"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max_inputs < self.min_inputs:
            raise at_key("max_inputs", f"must be at least min_inputs, which is {self.min_inputs}")
        return self


class DriftSettings(Part):
    """The drift report, which is advice only."""

    enabled: bool = True
    reference: LocalPath | None = None
    max_columns: Count = 20
    max_rows: Count = 10_000
    page: bool = False


class RollingSettings(Part):
    """What the rolling estimate holds: the last ``rounds`` of a model version, those ``within`` a time, or both."""

    rounds: Count | None = None
    within: Duration | None = None

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if self.rounds is None and self.within is None:
            raise ValueError("must hold rounds (such as 5), within (such as 30d), or both: the narrower one counts")
        return self
