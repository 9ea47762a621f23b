"""The configuration as frozen, validated values: one class per group of keys of opmon.yaml."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from opmon import plugins, quantities
from opmon.abc import Head, Rule, Sampler, Source
from opmon.config import document as documents
from opmon.config.device import DeviceChoice, DeviceSettings
from opmon.config.fields import Count, DatabaseAddress, LocalPath, Number, whole
from opmon.config.groups import (
    ColumnSettings,
    DriftSettings,
    InputSettings,
    LabelSettings,
    MlflowSettings,
    RollingSettings,
    RoundSettings,
    ScheduleSettings,
)
from opmon.config.part import Part, at_key, unknown
from opmon.config.plugged import (
    ActionSettings,
    ExecutorSettings,
    HeadSettings,
    RegistrySettings,
    RuleSettings,
    SamplerSettings,
    SourceSettings,
)
from opmon.config.problems import config_error
from opmon.config.registry import told_once
from opmon.config.robustness import RobustnessSettings
from opmon.config.scoring import ScoringSettings
from opmon.durations import duration
from opmon.errors import InputError, NotFoundError
from opmon.quantities import Problem, Quantity
from opmon.scoring.devices import Device
from opmon.spellings import AS_SPELT, Spellings
from opmon.values import canonical_class

if TYPE_CHECKING:
    from opmon.queries.watch import Watch

_MONITOR_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}\Z")
_FREE = ("confidence", "margin", "entropy", "gini")
_MODEL = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[0-9]+))\Z")


def _class_name(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be text: put yes, no, true, false in quotes")
    return canonical_class(value) if isinstance(value, int | float | str) else value


ClassName = Annotated[str, BeforeValidator(_class_name)]


def _tells_bets(design: str) -> bool:
    """Whether the estimator of a design says what its draws are worth in bets."""
    if design not in plugins.names("estimator"):
        return False
    estimator: Any = plugins.load("estimator", design)
    return bool(estimator.bets)


def _head(name: str) -> type[Head]:
    return cast(type[Head], plugins.load("head", name))


class MonitorSettings(Part):
    """A watch over one registered model."""

    derived: ClassVar[frozenset[str]] = frozenset({"name", "before"})

    name: str = ""
    before: tuple[str, ...] = Field(default=(), exclude=True)
    """The monitors of the same registered model that come before this one in the configuration."""
    model: str
    problem: Problem = "classification"
    unit: Annotated[str, Field(min_length=1, max_length=20)] | None = None
    classes: tuple[ClassName, ...] | dict[ClassName, tuple[ClassName, ...]] | None = None
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
    sampler: SamplerSettings
    level: Number = 0.95
    labels: LabelSettings = LabelSettings()
    rolling: RollingSettings = RollingSettings(rounds=5)
    rules: tuple[RuleSettings, ...] = ()
    actions: tuple[ActionSettings, ...] = Field(default=({"type": "registry_tag"},))  # type: ignore[arg-type]
    drift: DriftSettings = DriftSettings()
    robustness: RobustnessSettings | None = None
    schedule: ScheduleSettings = ScheduleSettings(every=duration("10m"))
    seed: Annotated[int, BeforeValidator(whole), Field(ge=0, lt=2**63)] = 0

    @model_validator(mode="before")
    @classmethod
    def _default_sampler(cls, data: Any) -> Any:
        """opmon's own; the plain random one for a regression model without a variable to draw by."""
        if not isinstance(data, Mapping):
            return data
        sampler = {} if data.get("sampler") is None else data["sampler"]
        if isinstance(sampler, Mapping) and "type" not in sampler:
            kind = "srs" if data.get("problem") == "regression" and not data.get("variables") else "adaptive"
            return {**data, "sampler": {"type": kind, **sampler}}
        return data

    @field_validator("variables", mode="before")
    @classmethod
    def _columns_by_name(cls, value: Any) -> Any:
        """``{risk: score}`` is short for a variable ``risk`` that is the log's column ``score``."""
        if not isinstance(value, Mapping):
            return value
        return [
            {"type": "column", "name": name, **(told if isinstance(told, Mapping) else {"column": told})}
            for name, told in value.items()
        ]

    @field_validator("model")
    @classmethod
    def _registered(cls, value: str) -> str:
        if not _MODEL.match(value):
            raise ValueError("must be the address of a registered model: models:/name@alias or models:/name/3")
        return value

    @field_validator("level")
    @classmethod
    def _share(cls, value: float) -> float:
        if not 0 < value < 1:
            hint = f" (did you mean {value / 100:g}?)" if 1 < value < 100 else ""
            raise ValueError(f"must lie strictly between 0 and 1{hint}")
        return value

    @field_validator("classes", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """One spelling of a class need not be in a list."""
        if not isinstance(value, Mapping):
            return value
        listed = {name: () if text is None else text for name, text in value.items()}
        return {name: text if isinstance(text, list | tuple) else (text,) for name, text in listed.items()}

    @field_validator("classes")
    @classmethod
    def _distinct(cls, value: Any) -> Any:
        if value is not None and (len(set(value)) < len(value) or len(value) < 2):
            raise ValueError("must name at least two classes, each once, in the order of the model's output")
        if isinstance(value, Mapping):
            try:
                Spellings.of(value)
            except InputError as exc:
                raise ValueError(f"must tell classes apart: {exc}") from exc
        return value

    @model_validator(mode="after")
    def _fits_problem(self) -> Self:
        of_classes = [name for name in self._drawn_by() if self.problem == "regression" and self._needs_classes(name)]
        if of_classes:
            raise at_key(
                "sampler", f"the variable {of_classes[0]!r} is of classification only; for regression use type: srs"
            )
        return self

    @model_validator(mode="after")
    def _unit_of_numbers(self) -> Self:
        if self.unit is not None and self.problem == "classification":
            raise at_key("unit", "is that of a regression's labels; classes have none: leave it out")
        return self

    @property
    def quantity(self) -> Quantity:
        """What the monitor estimates."""
        return quantities.of(self.problem, self.unit)

    @property
    def watch(self) -> Watch:
        """What the views of the monitor depend on."""
        from opmon.queries.watch import Watch

        return Watch(
            name=self.name,
            quantity=self.quantity,
            acting_rules=tuple(rule.name for rule in self.rules if rule.acts),
            advising_rules=tuple(rule.name for rule in self.rules if not rule.acts),
            rolling_rounds=self.rolling.rounds,
            rolling_within=self.rolling.within,
            min_inputs=self.round.min_inputs,
            max_age=self.round.max_age,
            next_after=self.schedule.next_after,
        )

    @model_validator(mode="after")
    def _rules_for_problem(self) -> Self:
        for rule in self.rules:
            if self.problem not in rule.rule.problems:
                made = {name: cast(type[Rule], plugins.load("rule", name)) for name in plugins.names("rule")}
                fitting = [name for name, each in made.items() if self.problem in each.problems]
                raise at_key(
                    "rules",
                    f"{rule.type!r} is no rule for problem: {self.problem}, which is told by its {self.quantity.name}; "
                    f"the rules for it are: {', '.join(fitting)}",
                )
        return self

    @model_validator(mode="after")
    def _known_variables(self) -> Self:
        for head in self.variables:
            if self.problem == "regression" and head.plugin.of_classes:
                others = ", ".join(name for name in plugins.names("head") if not _head(name).of_classes)
                raise at_key("variables", f"{head.type!r} is of classification only; for regression use {others}")
        known = {*(_FREE if self.problem == "classification" else ()), *(head.name for head in self.variables)}
        for name in self._drawn_by():
            if name not in known and name not in plugins.names("head"):
                raise at_key(
                    "sampler", f"the variable {name!r}: {unknown(name, [*known, *plugins.names('head')], 'variable')}"
                )
        return self

    @model_validator(mode="after")
    def _fits_way(self) -> Self:
        """What the way of scoring needs, and what it does not have."""
        by, columns = self.scoring.by, self.columns
        if by == "logged":
            if columns.prediction is None and (not columns.scores or self.problem == "regression"):
                also = "" if self.problem == "regression" else ", or columns.scores the ones with the scores"
                raise at_key("columns", f"scoring: {{by: logged}} needs prediction, the column with the answer{also}")
            rival = next((rule for rule in self.rules if rule.rule.rival_version() is not None), None)
            if rival is not None:
                raise at_key("rules", f"{rival.type!r} asks another version, and scoring: {{by: logged}} runs no model")
        elif columns.scores:
            raise at_key("columns", f"scores are read with scoring: {{by: logged}}, and scoring.by is {by}")
        if by == "onnx":
            return self
        if self.convert_sklearn:
            raise at_key("convert_sklearn", f"makes an ONNX graph, and scoring.by is {by}: leave it out")
        inside = [*self.heads]
        inside += [name for name in self._drawn_by() if name in _FREE and name not in self.at_hand]
        if inside:
            raise at_key(
                "variables",
                f"{inside[0]!r} comes from the model's ONNX graph, which scoring: {{by: {by}}} does not run; name a "
                f"column of the log instead, such as variables: {{risk: score_column}}",
            )
        sampler: Sampler = self.sampler.plugin
        if sampler.activation_levels is not None:
            raise at_key("sampler", f"{self.sampler.type!r} looks at a layer of the ONNX graph; scoring.by is {by}")
        if self.robustness is not None:
            raise at_key(
                "robustness", f"changed inputs are answered by the ONNX graph; scoring.by is {by}: leave it out"
            )
        return self

    @property
    def model_name(self) -> str:
        """The registered model that is watched, whichever version."""
        found = _MODEL.match(self.model)
        assert found is not None
        return found["name"]

    @property
    def reads(self) -> Source:
        """The source, with what lies inside its columns where that is named, such as ``features.age``."""
        from opmon.sources.nested import Nested, is_path

        inputs = self.inputs
        named = [*(inputs.features or ()), *(name for _, name in self.columns.named)]
        named += [each.column for each in (inputs.image, inputs.text) if each is not None]
        named += [inputs.tensor] if inputs.tensor else []
        named += [column for head in self.logged_variables.values() for column in head.columns]
        paths = tuple(dict.fromkeys(name for name in named if is_path(name)))
        source: Source = self.source.plugin
        return Nested(source, paths) if paths else source

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes in the order of the model's output, where the configuration gives them."""
        return None if self.classes is None else tuple(self.classes)

    @property
    def spellings(self) -> Spellings:
        """What else the model, the log and annotators call the classes."""
        return Spellings.of(self.classes) if isinstance(self.classes, Mapping) else AS_SPELT

    @property
    def at_hand(self) -> tuple[str, ...]:
        """The variables that a frame of this monitor holds."""
        scored = self.scoring.by != "logged" or bool(self.columns.scores)
        free = _FREE if self.problem == "classification" and scored else ()
        return tuple(dict.fromkeys((*free, *(head.name for head in self.variables))))

    @property
    def runs_on(self) -> Device:
        """The device as scoring takes it."""
        return self.device.chosen if isinstance(self.device, DeviceSettings) else self.device

    @property
    def logged_variables(self) -> dict[str, Head]:
        """The variables that come from columns of the log, by name."""
        return {name: head for name, head in self._wanted().items() if head.columns}

    @property
    def heads(self) -> dict[str, Head]:
        """The variables to compute in the graph, by name: those that are listed, and the sampler's own.

        What comes with the probabilities anyway is not among them.
        """
        return {name: head for name, head in self._wanted().items() if not head.columns}

    def _wanted(self) -> dict[str, Head]:
        found = {head.name: head.plugin for head in self.variables}
        for name in self._drawn_by():
            if name not in found and name not in _FREE:
                found[name] = plugins.make("head", name)
        return {name: head for name, head in found.items() if name not in _FREE or self.problem == "regression"}

    def _needs_classes(self, variable: str) -> bool:
        """Whether a variable, listed or known by its type, is of a model that tells classes apart."""
        listed = {head.name: head.plugin for head in self.variables}
        if variable in listed:
            return bool(listed[variable].of_classes)
        return variable in plugins.names("head") and _head(variable).of_classes

    def _drawn_by(self) -> tuple[str, ...]:
        """The variables that the sampler names."""
        sampler: Sampler = self.sampler.plugin
        return sampler.drawn_by()

    @model_validator(mode="after")
    def _known_design(self) -> Self:
        """Rules that bet on draws know those of some designs; another one would be taken for what it is not."""
        sampler: Sampler = self.sampler.plugin
        design = sampler.design or self.sampler.type
        betting = [rule.type for rule in self.rules if rule.rule.bets]
        if betting and not _tells_bets(design):
            raise at_key(
                "rules",
                f"{betting[0]} bets on draws, and the estimator of the sampler {self.sampler.type!r} (design "
                f"{design!r}) does not tell what they are worth in bets; use the rule accuracy_below, or another "
                f'sampler. A sampler whose draws are of a known design says so: design = "srs"',
            )
        return self

    @model_validator(mode="after")
    def _distinct_names(self) -> Self:
        for key, found in (
            ("variables", [head.name for head in self.variables]),
            ("rules", [rule.name for rule in self.rules]),
            ("actions", [act.name for act in self.actions]),
        ):
            twice = next((name for name in found if found.count(name) > 1), None)
            if twice is not None:
                raise at_key(key, f"two of them are called {twice!r}; give each a 'name:' of its own")
        return self


class Settings(Part):
    """The whole configuration. All paths in it are absolute."""

    derived: ClassVar[frozenset[str]] = frozenset({"folder"})

    folder: Path = Path()
    mlflow: MlflowSettings = Field(default={})  # type: ignore[assignment]
    registry: RegistrySettings | None = None
    """What holds the models in MLflow's place."""
    database: DatabaseAddress = Field(default="sqlite:///opmon.db")  # type: ignore[assignment]
    state: LocalPath = Field(default=".opmon")  # type: ignore[assignment]
    monitors: dict[str, MonitorSettings]

    @field_validator("monitors", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if not value:
            raise ValueError("must hold at least one monitor, such as 'digits:' with its model and source")
        for name in value:
            if not _MONITOR_NAME.match(str(name)):
                raise at_key(
                    str(name),
                    "a monitor's name has letters, digits, - _ . only, at most 100, and begins with none of - .",
                )
        return value

    @field_validator("monitors")
    @classmethod
    def _named(cls, value: dict[str, MonitorSettings]) -> dict[str, MonitorSettings]:
        """Every monitor knows its name, and the monitors of its model that come before it."""
        named: dict[str, MonitorSettings] = {}
        for name, monitor in value.items():
            before = tuple(other for other, earlier in named.items() if earlier.model_name == monitor.model_name)
            named[name] = monitor.model_copy(update={"name": name, "before": before})
        return named

    @classmethod
    def from_mapping(
        cls,
        mapping: Mapping[str, Any],
        folder: Path | str = ".",
        environment: Mapping[str, str] | None = None,
    ) -> Settings:
        """The settings of plain values, as a YAML file would hold them; ``folder`` is where relative paths start."""
        variables = os.environ if environment is None else environment
        document = documents.from_mapping(mapping, variables)
        told_once(document)
        return checked(document, Path(folder))

    def monitor(self, name: str) -> MonitorSettings:
        """The monitor of that name, or an error that names those there are."""
        try:
            return self.monitors[name]
        except KeyError:
            raise NotFoundError(f"{name!r}: {unknown(name, self.monitors, 'monitor')}") from None

    def dump(self) -> dict[str, Any]:
        """The settings with all defaults as JSON-ready values; secrets and passwords are hidden."""
        return self.model_dump(mode="json")


def checked(
    document: documents.Document, folder: Path, overridden: Mapping[documents.KeyPath, str] | None = None
) -> Settings:
    """The settings of a document; what is wrong with it is one :class:`ConfigError`."""
    folder = folder.expanduser().absolute()
    problem: Exception
    try:
        settings = Settings.model_validate(document.data, context={"folder": folder})
        return settings.model_copy(update={"folder": folder})
    except ValidationError as exc:
        problem = config_error(exc, document, overridden or {})
    raise problem  # outside the handler: pydantic's own error holds the values, secrets among them
