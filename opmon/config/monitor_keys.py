"""The keys of one monitor as they are written; what follows from them is in :mod:`opmon.config.monitor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from opmon.config import scores_by_class
from opmon.config.actions import ActionSettings
from opmon.config.address import ModelAddress
from opmon.config.classes import ClassNames
from opmon.config.device import DeviceChoice
from opmon.config.estimate import EstimateSettings
from opmon.config.fields import Count, LocalPath, Number, Share, whole
from opmon.config.groups import (
    ColumnSettings,
    DriftSettings,
    InputSettings,
    RollingSettings,
    RoundSettings,
)
from opmon.config.keep import KeepSettings
from opmon.config.kinds import ExecutorSettings, HeadSettings, JudgeSettings, SamplerSettings, SourceSettings
from opmon.config.labels import LabelSettings
from opmon.config.measures import MeasureSettings
from opmon.config.part import Part
from opmon.config.robustness import RobustnessSettings
from opmon.config.rules import RuleSettings
from opmon.config.schedule import ScheduleSettings
from opmon.config.scoring import ScoringSettings
from opmon.config.slices import SliceSettings
from opmon.config.truth import TruthSettings
from opmon.durations import duration
from opmon.problems import PROBLEMS, Problem, traits


class MonitorKeys(Part):
    """The keys of a monitor."""

    derived: ClassVar[frozenset[str]] = frozenset({"name", "before", "pages"})

    name: str = ""
    before: tuple[str, ...] = Field(default=(), exclude=True)
    """The monitors of the same registered model that come before this one in the configuration."""
    pages: str | None = Field(default=None, exclude=True)
    """Where people find the pages of opmon, for links; None where ``web.url`` does not say it."""
    model: ModelAddress
    problem: Problem = "classification"
    unit: Annotated[str, Field(min_length=1, max_length=20)] | None = None
    tolerance: Annotated[Number, Field(gt=0)] | None = None
    """From how far off on a number is a failure, or how much a score may lack of 1 without being one."""
    classes: ClassNames = None
    convert_sklearn: bool = False
    device: DeviceChoice = "auto"
    threads: Count | None = None
    scores: Literal["auto", "probabilities", "logits", "independent"] = "auto"
    output: str | None = None
    scoring: ScoringSettings = ScoringSettings()
    variables: tuple[HeadSettings, ...] = ()
    layer: str | None = None
    reference: LocalPath | None = None
    inputs: InputSettings = InputSettings()
    source: SourceSettings
    columns: ColumnSettings = ColumnSettings()
    executor: ExecutorSettings = Field(default={})  # type: ignore[assignment]
    round: RoundSettings = RoundSettings()
    slices: tuple[SliceSettings, ...] = ()
    sampler: SamplerSettings
    level: Share = 0.95
    measures: tuple[MeasureSettings, ...] = ()
    main: Annotated[str, Field(min_length=1)] | None = None
    estimate: EstimateSettings = EstimateSettings()
    judge: JudgeSettings | None = None
    truth: TruthSettings | None = None
    labels: LabelSettings = LabelSettings()
    keep: KeepSettings = KeepSettings()
    rolling: RollingSettings = RollingSettings(rounds=5)
    rules: tuple[RuleSettings, ...] = ()
    actions: tuple[ActionSettings, ...] = Field(default=({"type": "registry_tag"},))  # type: ignore[arg-type]
    drift: DriftSettings = DriftSettings()
    robustness: RobustnessSettings | None = None
    schedule: ScheduleSettings = ScheduleSettings(every=duration("10m"))
    seed: Annotated[int, BeforeValidator(whole), Field(ge=0, lt=2**63)] = 0

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: object) -> object:
        """opmon's own sampler, or the plain random one where no variable is there to draw by; outputs that people judge
        are those that were logged. Scores that are named by class come in the order of the classes."""
        if not isinstance(data, Mapping):
            return data
        data = scores_by_class.in_order(data)
        problem = data.get("problem")
        known = traits(problem) if problem in PROBLEMS else traits("classification")
        if not known.compares and data.get("scoring") is None:
            data = {**data, "scoring": {"by": "logged"}}
        sampler = {} if data.get("sampler") is None else data["sampler"]
        if isinstance(sampler, Mapping) and "type" not in sampler:
            kind = "adaptive" if known.of_classes or data.get("variables") else "srs"
            return {**data, "sampler": {"type": kind, **sampler}}
        return data

    @field_validator("variables", mode="before")
    @classmethod
    def _columns_by_name(cls, value: object) -> object:
        """``{risk: score}`` is short for a variable ``risk`` that is the log's column ``score``."""
        if not isinstance(value, Mapping):
            return value
        return [
            {"type": "column", "name": name, **(told if isinstance(told, Mapping) else {"column": told})}
            for name, told in value.items()
        ]
