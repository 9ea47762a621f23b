"""MLflow's tracking server and model registry, through one object."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from opmon.abc import Ability, Converter, ModelFile, Network, Runnable, VersionNotes
from opmon.errors import ModelError
from opmon.registry import models, projects
from opmon.registry._calls import Bounded
from opmon.registry.connection import Connection
from opmon.registry.originals import NETWORK, original_flavor, runnable, runs_code
from opmon.registry.signature import read_signature
from opmon.registry.tracking import Tracking
from opmon.types import Document, ModelVersion, Signature
from opmon.wording import counted

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_JUST_NOW = 60.0
"""For so many seconds the tags of a version count as known to whoever looks for a file that one names."""
_TAG_CHARACTERS = 5000
"""MLflow keeps no more of a tag of a version."""
_AT_ONCE = 2.0
"""For so many seconds what is written on a version counts as known to whoever writes on it."""


class MlflowRegistry(Tracking):
    """One MLflow server. ``tracking_uri`` None is MLflow's own default (``MLFLOW_TRACKING_URI`` and so on).

    Every error is one of opmon's: RegistryUnavailable where trying again is right, NotFoundError, ModelError,
    InputError. May be used from several threads.
    """

    abilities: ClassVar[frozenset[Ability]] = frozenset({"move aliases", "remove files", "run projects"})

    def __init__(self, tracking_uri: str | None, registry_uri: str | None = None) -> None:
        super().__init__(Connection(tracking_uri, registry_uri))
        self._read: dict[tuple[str, str, int], Document] = {}
        self._met: dict[tuple[str, str], tuple[float, VersionNotes]] = {}
        self._described: dict[tuple[object, ...], Document] = {}

    def __repr__(self) -> str:
        return f"MlflowRegistry({self._connection.where!r})"

    def check(self) -> str:
        """One line that says what answered, or an error."""
        with self._translated("checking"):
            import mlflow

            experiments = len(self._client.search_experiments(max_results=1000))
            known = len(self._client.search_registered_models(max_results=1000))
        return (
            f"MLflow at {self.address} answers: {counted(known, 'registered model')}, "
            f"{counted(experiments, 'experiment')} (client {mlflow.__version__})"
        )

    def resolve(self, uri: str) -> ModelVersion:
        """The version that ``models:/name@alias``, ``models:/name/3`` or ``models:/name/latest`` means now."""
        model, described, notes = models.resolve(self._connection, uri, self._read)
        self._met[model.name, model.version] = time.monotonic(), notes
        self._described[_key(model)] = described
        return model

    def fetch_onnx(
        self, model: ModelVersion, into: Path, converter: Converter | None = None, trusted: bool = False
    ) -> Path:
        """The model's ONNX file, downloaded into a folder of its own below ``into`` once for each version.

        With a ``converter`` boosted trees are converted from their file, and where the model is ``trusted`` what is
        pickled or a network: that runs code in it.
        """
        return models.fetch_onnx(self._connection, model, self._about(model), into, converter, trusted)

    def original(self, model: ModelVersion, into: Path, trusted: bool = False) -> BaseEstimator | ModelFile | Network:
        """The file that an ONNX file is made of; where it runs code and the model is ``trusted``, what is in it."""
        described = self._about(model)
        flavors = described.get("flavors") or {}
        if runs_code(flavors) and not trusted:
            key = "scoring: {by: onnx, trust: true}" if original_flavor(flavors) == NETWORK else "convert_sklearn: true"
            raise ModelError(f"it is pickled, and loading it runs its code, which {key} allows")
        return models.load(self._connection, model, described, into)

    def runnable(self, model: ModelVersion, into: Path) -> Runnable:
        """The model's folder as MLflow wrote it, and what serves it."""
        return runnable(models.fetch_original(self._connection, model, into))

    def signature(self, model: ModelVersion) -> Signature | None:
        """What the model says of its inputs, if it says anything."""
        try:
            return read_signature(self._about(model))
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise ModelError(f"the signature of {model.uri} cannot be read: {exc}; log the model again") from exc

    def registered_at(self, model: ModelVersion) -> datetime:
        """When the version was registered: whatever was labelled before, it may have been trained on."""
        with self._translated(f"reading when {model.uri} was registered"):
            found = self._models.get_model_version(model.name, model.version)
        return datetime.fromtimestamp(found.creation_timestamp / 1000, UTC)

    def version_tags(self, model: ModelVersion) -> dict[str, str]:
        return dict(self.version_notes(model).tags)

    def version_notes(self, model: ModelVersion) -> VersionNotes:
        """Not asked for where an address that means the version was looked up at once before, which told them."""
        known = self._known(model, _AT_ONCE)
        if known is not None:
            return known
        with self._translated(f"reading what is written on {model.uri}"):
            return models.notes_of(self._models.get_model_version(model.name, model.version))

    def published(self, model: ModelVersion, tag: str, into: Path) -> Path | None:
        """As its tag says, which is not asked for again where the version was looked up just now."""
        known = self._known(model, _JUST_NOW)
        if known is not None and tag not in known.tags:
            return None
        return super().published(model, tag, into)

    def tag_version(self, model: ModelVersion, tags: Mapping[str, object]) -> None:
        with self._translated(f"tagging {model.uri}"):
            for key, value in tags.items():
                self._forget(model)
                self._models.set_model_version_tag(model.name, model.version, key, str(value)[:_TAG_CHARACTERS])

    def untag_version(self, model: ModelVersion, keys: Collection[str]) -> None:
        with self._translated(f"taking tags off {model.uri}"):
            for key in keys:
                self._forget(model)
                self._models.delete_model_version_tag(model.name, model.version, key)

    def describe_version(self, model: ModelVersion, description: str) -> None:
        self._forget(model)
        with self._translated(f"describing {model.uri}"):
            self._models.update_model_version(model.name, model.version, description)

    def model_description(self, name: str) -> str | None:
        with self._translated(f"reading the description of {name!r}"):
            return self._models.get_registered_model(name).description or ""

    def describe_model(self, name: str, description: str) -> None:
        with self._translated(f"describing {name!r}"):
            self._models.update_registered_model(name, description)

    def set_alias(self, model: ModelVersion, alias: str) -> None:
        """Let ``models:/name@alias`` mean this version."""
        with self._translated(f"giving {model.uri} the alias {alias!r}"):
            self._client.set_registered_model_alias(model.name, alias, model.version)

    def remove_alias(self, model: ModelVersion, alias: str) -> None:
        """Take an alias away, where it means this version; otherwise nothing is done."""
        with self._translated(f"taking the alias {alias!r} from {model.uri}"):
            aliases = self._client.get_registered_model(model.name).aliases
            if str(aliases.get(alias)) == model.version:
                self._client.delete_registered_model_alias(model.name, alias)

    def run_project(
        self,
        uri: str,
        entry_point: str,
        parameters: Mapping[str, str],
        experiment: str,
        event: str,
        *,
        version: str | None = None,
        backend: str = "local",
        env_manager: str = "local",
    ) -> str:
        """The run of an MLflow Project for an event: found by its key, or made and started, and not waited for."""
        run_id = self.run(self.experiment(experiment), f"project/{event}", f"event {event[:8]}")
        return projects.run(
            self._connection, run_id, uri, entry_point, parameters, version, backend=backend, env_manager=env_manager
        )

    @property
    def _models(self) -> Bounded:
        return self._connection.models

    def _known(self, model: ModelVersion, seconds: float) -> VersionNotes | None:
        """What was written on a version when it was looked up, where that was no longer ago."""
        at, notes = self._met.get((model.name, model.version), (-math.inf, None))
        return notes if time.monotonic() - at < seconds else None

    def _forget(self, model: ModelVersion) -> None:
        """Something is about to be written on the version."""
        self._met.pop((model.name, model.version), None)

    def _about(self, model: ModelVersion) -> Document:
        key = _key(model)
        if key not in self._described:
            self.resolve(model.uri)
        if key not in self._described:
            raise ModelError(f"{model.uri} was deleted and registered again; resolve its address again")
        return self._described[key]


def _key(model: ModelVersion) -> tuple[object, ...]:
    """What tells a version from another one that is registered later under its name and number."""
    return model.name, model.version, model.model_id, model.registered_at
