"""The judge ``model``: another registered model, usually a larger one."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.abc import Judge
from opmon.errors import InputError


@dataclass(frozen=True)
class ModelJudge(Judge):
    """A registered model that is asked what the monitored one was asked, by opmon's own ways of scoring.

    It takes the same inputs and tells the same classes. Where it gives probabilities, an input on which both agree
    counts as wrong by what its confidence lacks to 1, and one on which they differ as wrong. It is asked about all
    inputs of a round unless ``at_most`` says otherwise.
    """

    model: str
    """The registered model: models:/name@alias or models:/name/3."""

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.startswith("models:/"):
            raise InputError(
                f"model must be the address of a registered model: models:/name@alias or models:/name/3; "
                f"got {self.model!r}"
            )

    @property
    def registered(self) -> str:
        return self.model
