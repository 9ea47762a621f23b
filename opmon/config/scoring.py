"""How inputs get their answers: from ONNX Runtime, from the log itself, or from the model's own flavor."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, model_validator

from opmon.config.fields import Duration, Share, absolute, folder_of
from opmon.config.part import Part, at_key
from opmon.errors import InputError
from opmon.scoring.devices import amount

Way = Literal["onnx", "logged", "flavor"]
_BY_NAME = ("current", "uv")


def _memory(value: object) -> object:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return amount("memory", value)
        except InputError as exc:
            raise ValueError(str(exc).removeprefix("memory ").partition(";")[0]) from exc
    return value


def _python(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str) or value in _BY_NAME:
        return value
    if "/" not in value:
        raise ValueError("must be current, uv, or the path of a python such as envs/risk/bin/python")
    return absolute(value, folder_of(info))


class ScoringSettings(Part):
    """Where the answers and scores of inputs come from.

    ``onnx`` runs the model's ONNX file, ``logged`` takes what production logged (``columns.prediction`` and
    ``columns.scores``) and needs no model, ``flavor`` runs the model as MLflow does, in a process of its own. That runs
    code that is in the model, so that it must be told to ``trust`` it, as ``onnx`` must to convert a PyTorch model;
    ``env`` is the python to run a flavor with: ``current``, ``uv`` (built from the model's requirements), or a path.
    """

    by: Way = "onnx"
    threshold: Share = 0.5
    """With ``problem: multilabel`` the score from which on a class holds."""
    trust: bool = False
    env: Annotated[str, BeforeValidator(_python)] = "current"
    timeout: Duration = Field(default="5m")  # type: ignore[assignment]
    memory: Annotated[int, BeforeValidator(_memory), Field(ge=1), PlainSerializer(int)] | None = None

    @model_validator(mode="after")
    def _trusted(self) -> Self:
        if self.by == "flavor" and not self.trust:
            raise at_key(
                "trust",
                "must be true with by: flavor, which runs code that is in the model: do you trust who logged it?",
            )
        return self
