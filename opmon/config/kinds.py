"""The keys that name a plugin of one kind: the sampler, the source, the registry, and so on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, InstanceOf, model_validator

from opmon.abc import Executor, Head, Judge, LabelProvider, Registry, Sampler, Source
from opmon.config.fields import Count, Duration
from opmon.config.plugged import Plugged


class SamplerSettings(Plugged):
    """Which inputs are worth a label, and how many of them in a round."""

    kind = "sampler"
    own = ("type", "budget")
    plugin: InstanceOf[Sampler] = Field(repr=False)
    budget: Count = 100


class SourceSettings(Plugged):
    """Where production logs its inputs."""

    kind = "source"
    default_type = "files"
    plugin: InstanceOf[Source] = Field(repr=False)

    def within(self, folder: Path) -> Self:
        """The source of one monitor, which may have files of its own in ``folder``."""
        return self.model_copy(update={"plugin": self.plugin.within(folder)})


class RegistrySettings(Plugged):
    """What holds the models, where that is not MLflow."""

    kind = "registry"
    plugin: InstanceOf[Registry] = Field(repr=False)


class ProviderSettings(Plugged):
    """Who is handed the tasks and brings back the answers."""

    kind = "label_provider"
    default_type = "files"
    plugin: InstanceOf[LabelProvider] = Field(repr=False)

    @property
    def identity(self) -> str:
        """What tells this provider from another one, or from the same at another place."""
        values = json.dumps(self.model_dump(mode="json"), sort_keys=True, default=str)
        return f"{self.type}-{hashlib.sha256(values.encode()).hexdigest()[:12]}"


class ExecutorSettings(Plugged):
    """Where the jobs of a round run: a type alone, or with its parameters."""

    kind = "executor"
    default_type = "local"
    plugin: InstanceOf[Executor] = Field(repr=False)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        return {"type": data} if isinstance(data, str) else data


class JudgeSettings(Plugged):
    """Who answers before people do, about how many inputs of a round, and whether that counts as a label."""

    kind = "judge"
    own = ("type", "at_most", "as_labels", "wait")
    plugin: InstanceOf[Judge] = Field(repr=False)
    at_most: Count | None = None
    """The most inputs of a round that it is asked about, the drawn ones among them; None: as many as its kind says."""
    as_labels: bool = False
    """Its answers are the labels of the drawn inputs, and nobody is asked: they are then taken to be right."""
    wait: Duration = Field(default="1h")  # type: ignore[assignment]
    """For how long a round waits for one that does not answer, before it is drawn without."""

    @property
    def most(self) -> int | None:
        """The most inputs of a round that it is asked about; None: all of them."""
        return self.plugin.most if self.at_most is None else self.at_most

    @property
    def identity(self) -> str:
        """What tells this judge from another one: opinions are kept under it."""
        said = self.model_dump(mode="json")
        values = json.dumps([self.type, {key: said.get(key) for key in self.parameters}], sort_keys=True, default=str)
        return f"{self.type}-{hashlib.sha256(values.encode()).hexdigest()[:12]}"


class HeadSettings(Plugged):
    """An auxiliary variable that is computed in the model's graph: its name, or its type, name and parameters."""

    kind = "head"
    own = ("type", "name")
    plugin: InstanceOf[Head] = Field(repr=False)
    name: str = Field(default="", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,49}$")
    """What the variable is called; the type, where nothing is given."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        if isinstance(data, str):
            data = {"type": data}
        return {"name": data.get("type"), **data} if isinstance(data, Mapping) else data
