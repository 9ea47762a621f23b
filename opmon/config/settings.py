"""The whole configuration as frozen, validated values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from opmon import plugins
from opmon.abc import Ability
from opmon.config import document as documents
from opmon.config.fields import DatabaseAddress, LocalPath
from opmon.config.groups import MlflowSettings
from opmon.config.ingest import IngestSettings
from opmon.config.kinds import RegistrySettings
from opmon.config.metrics import MetricsSettings
from opmon.config.monitor import MonitorSettings
from opmon.config.part import Part, at_key, unknown
from opmon.config.problems import config_error
from opmon.config.registry import MLFLOW, told_once
from opmon.config.web import WebSettings
from opmon.errors import NotFoundError
from opmon.labels.terms import QueueTerms
from opmon.redaction import hide, holds_a_secret, secrets_in
from opmon.types import Document, Json

_MONITOR_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}\Z")


class Settings(Part):
    """The whole configuration. All paths in it are absolute."""

    derived: ClassVar[frozenset[str]] = frozenset({"folder"})

    folder: Path = Path()
    mlflow: MlflowSettings = Field(default={})  # type: ignore[assignment]
    registry: RegistrySettings | None = None
    """What holds the models in MLflow's place."""
    database: DatabaseAddress = Field(default="sqlite:///opmon.db")  # type: ignore[assignment]
    state: LocalPath = Field(default=".opmon")  # type: ignore[assignment]
    ingest: IngestSettings = IngestSettings()
    web: WebSettings = WebSettings()
    metrics: MetricsSettings = MetricsSettings()
    monitors: dict[str, MonitorSettings]

    @field_validator("monitors", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
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
    def _named(cls, value: dict[str, MonitorSettings], info: ValidationInfo) -> dict[str, MonitorSettings]:
        """Every monitor knows its name, its folder, its page, and the monitors of its model that come before it."""
        state, web = info.data.get("state", Path()), info.data.get("web")
        pages = None if web is None or web.url is None else web.address
        named: dict[str, MonitorSettings] = {}
        for name, monitor in value.items():
            before = tuple(other for other, earlier in named.items() if earlier.model_name == monitor.model_name)
            own = {"name": name, "before": before, "pages": pages}
            own["source"] = monitor.source.within(state / "ingest" / name)
            named[name] = monitor.model_copy(update=own)
        return named

    @model_validator(mode="after")
    def _groups_are_of_monitors(self) -> Self:
        known, key = self.web.known_elsewhere, "identity" if self.web.oidc is None else "oidc"
        for group, may in ({} if known is None else known.roles).items():
            for name in may.monitors or ():
                if name not in self.monitors:
                    raise at_key("web", unknown(name, self.monitors, "monitor"), key, "roles", group)
        return self

    @model_validator(mode="after")
    def _registry_is_able(self) -> Self:
        """Actions that the registry cannot carry out would be found out at the first alarm."""
        for name, monitor in self.monitors.items():
            for place, action in enumerate(monitor.actions):
                lacking = sorted(action.plugin.needs - self._abilities) if action.plugin.needs else []
                if lacking:
                    kind = MLFLOW if self.registry is None else self.registry.type
                    names = plugins.names("action")
                    able = [each for each in names if plugins.class_of("action", each).needs <= self._abilities]
                    raise at_key(
                        "monitors",
                        f"{action.type!r} needs a registry that can {' and '.join(lacking)}, which {kind!r} cannot; "
                        f"the actions for it are: {', '.join(able)}",
                        *(name, "actions", place),
                    )
        return self

    @property
    def _abilities(self) -> frozenset[Ability]:
        if self.registry is not None:
            return self.registry.plugin.abilities
        return plugins.class_of("registry", MLFLOW).abilities

    @classmethod
    def from_mapping(
        cls,
        mapping: Document,
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

    @property
    def queue_terms(self) -> dict[str, QueueTerms]:
        """By monitor how its tasks are handed out to annotators."""
        return {name: monitor.queue_terms for name, monitor in self.monitors.items()}

    def dump(self) -> dict[str, Json]:
        """The settings with all defaults as JSON-ready values; secrets and passwords are hidden."""
        return self.model_dump(mode="json")


def _secrets_of(value: object, secret: bool = False) -> Iterator[str]:
    """All that is not to be shown of plain values: what stands under a telling name, and in addresses."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets_of(inner, secret or holds_a_secret(str(key)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets_of(inner, secret)
    elif isinstance(value, str):
        yield from [value] if secret and "://" not in value else secrets_in(value)


def checked(
    document: documents.Document, folder: Path, overridden: Mapping[documents.KeyPath, str] | None = None
) -> Settings:
    """The settings of a document; what is wrong with it is one :class:`ConfigError`."""
    folder = folder.expanduser().absolute()
    hide(_secrets_of(document.data))
    problem: Exception
    try:
        settings = Settings.model_validate(document.data, context={"folder": folder})
        return settings.model_copy(update={"folder": folder})
    except ValidationError as exc:
        problem = config_error(exc, document, overridden or {})
    raise problem  # outside the handler: pydantic's own error holds the values, secrets among them
