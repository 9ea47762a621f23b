"""The contract of registries, which hold models and keep results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Literal

from opmon.abc.plugin import Plugin
from opmon.abc.recorded import Dataset, Point, RunStatus, TaggedRun, VersionNotes
from opmon.errors import DeliveryError, InputError, ModelError
from opmon.types import ModelVersion, Signature

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from sklearn.base import BaseEstimator


Converter = Callable[[object, Signature | None], bytes]
"""``(scikit-learn model, ModelFile or Network, what it was logged to take) -> ONNX``."""
Ability = Literal["move aliases", "remove files", "run projects"]
"""What not every registry can do."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that is data: ``library`` (xgboost, lightgbm, catboost) wrote it for a model of the class ``kind``."""

    library: str
    kind: str
    path: Path


@dataclass(frozen=True, slots=True)
class Network:
    """A PyTorch model, which is exported, and asked, in a process of its own.

    ``script`` is run with ``model`` and what to do: see ``opmon/registry/_network.py``. That runs code in the model.
    """

    script: Path
    model: Path


@dataclass(frozen=True, slots=True)
class Runnable:
    """A model that runs in a process of its own.

    ``script`` is run by the model's python with the descriptors of requests and answers, ``model`` and the bytes that
    it may take: see ``opmon/registry/_worker.py`` for what they say to each other.
    """

    script: Path
    model: Path
    requirements: Path | None = None
    """The file of requirements to install for it, as pip reads it."""
    python: str | None = None
    """The version of Python that it was logged with."""


class Registry(Plugin, ABC):
    """Holds the models that are watched, and keeps what opmon finds out about them.

    Models are addressed as ``models:/NAME@ALIAS`` and ``models:/NAME/VERSION``. What is found out goes into *runs*: one
    for each model version, which is its history, and one for each round; they hold numbers, parameters and files.
    Making the object asks nobody anything. It may be used from several threads, and every call may be repeated: opmon
    is killed and asks again, and nothing may be doubled by that.

    Errors: :class:`~opmon.errors.RegistryUnavailable` where trying again later is right,
    :class:`~opmon.errors.NotFoundError` where there is no such model, run or file,
    :class:`~opmon.errors.ModelError` where a model cannot be used, :class:`~opmon.errors.InputError` for what is no
    address, key or name.
    """

    abilities: ClassVar[frozenset[Ability]] = frozenset()
    """What it can do beyond what every registry can; actions that need more are refused."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The address of the registry, without credentials."""

    @abstractmethod
    def check(self) -> str:
        """One line that says what answered, or an error."""

    def give_up(self) -> None:
        """Stop waiting for anything, now and later: opmon is stopping."""
        return

    def within(self, seconds: float) -> AbstractContextManager[None]:
        """For the time of a ``with``, wait for answers at most so long in all; what takes longer is an error then."""
        return nullcontext()

    # --- models ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def resolve(self, uri: str) -> ModelVersion:
        """The version that an address means now."""

    @abstractmethod
    def fetch_onnx(
        self, model: ModelVersion, into: Path, converter: Converter | None = None, trusted: bool = False
    ) -> Path:
        """The version's ONNX file on this machine: where it is, or copied below ``into`` once for each version.

        ``converter`` makes one of another model: of a file that is data, and where the model is ``trusted`` of what is
        pickled or a network, which is loaded for that. None: none is made.
        """

    @abstractmethod
    def registered_at(self, model: ModelVersion) -> datetime:
        """The moment when the version was registered: it may have been trained on whatever was labelled before."""

    def signature(self, model: ModelVersion) -> Signature | None:
        """The columns or tensors that the version was logged to take; None where none were logged."""
        return None

    def original(self, model: ModelVersion, into: Path, trusted: bool = False) -> BaseEstimator | ModelFile | Network:
        """The file that its ONNX file was made from; where that runs code and is ``trusted``, the model in it."""
        raise ModelError(f"{type(self).__name__} holds no model that {model.uri} was made from")

    def runnable(self, model: ModelVersion, into: Path) -> Runnable:
        """The version as it was logged, copied below ``into`` once, and the script that serves it in a process."""
        raise ModelError(f"{type(self).__name__} runs no models; set scoring: {{by: onnx}} or {{by: logged}}")

    @abstractmethod
    def version_tags(self, model: ModelVersion) -> dict[str, str]:
        """The tags of a version."""

    @abstractmethod
    def tag_version(self, model: ModelVersion, tags: Mapping[str, object]) -> None:
        """Set tags of a version; the others stay."""

    def untag_version(self, model: ModelVersion, keys: Collection[str]) -> None:
        """Take tags off a version, where they are on it."""
        return

    def version_notes(self, model: ModelVersion) -> VersionNotes:
        """The tags and the description of a version, as they are now."""
        return VersionNotes(self.version_tags(model))

    def describe_version(self, model: ModelVersion, description: str) -> None:
        """Replace the description of a version."""
        return

    def model_description(self, name: str) -> str | None:
        """The description of a registered model; None where this registry keeps none."""
        return None

    def describe_model(self, name: str, description: str) -> None:
        """Replace the description of a registered model."""
        return

    def set_alias(self, model: ModelVersion, alias: str) -> None:
        """Let ``models:/NAME@ALIAS`` mean this version, by a registry that can ``move aliases``."""
        raise DeliveryError(f"{type(self).__name__} moves no aliases; use the action registry_tag", final=True)

    def remove_alias(self, model: ModelVersion, alias: str) -> None:
        """Take an alias away, where it means this version; otherwise nothing is done."""
        raise DeliveryError(f"{type(self).__name__} moves no aliases; use the action registry_tag", final=True)

    # --- runs --------------------------------------------------------------------------------------------------------

    def experiment(self, name: str) -> str:
        """The id of the group of runs of this name, for :meth:`run`; made where there is none."""
        return name

    @abstractmethod
    def run(
        self,
        experiment_id: str,
        key: str,
        name: str,
        parent: str | None = None,
        tags: Mapping[str, object] | None = None,
    ) -> str:
        """The id of the run with this key, made where there is none: one run, however often and by whom it is asked."""

    def new_run(
        self,
        experiment_id: str,
        key: str,
        name: str,
        parent: str | None = None,
        tags: Mapping[str, object] | None = None,
    ) -> str:
        """The same where nobody can have made one yet, as far as whoever asks knows: it need not be looked for first,
        and where there is one after all, that is the run."""
        return self.run(experiment_id, key, name, parent, tags)

    def finish_run(self, run_id: str, status: RunStatus = "FINISHED") -> None:
        """End a run; more may be logged to one that has ended, and it may be ended again."""
        return

    def resume_run(self, run_id: str) -> None:
        """Say of a run that ended that it goes on."""
        return

    def running(self, experiment_id: str, kind: str) -> Collection[str]:
        """The runs with the tag ``opmon.kind`` of this value that have not ended."""
        return ()

    def tagged(self, experiments: str, tags: Mapping[str, str]) -> Sequence[TaggedRun]:
        """The runs with all of these tags, in the experiment of this name or, with ``/`` at its end, in all below."""
        raise InputError(f"{type(self).__name__} cannot look for runs by their tags")

    def page_of(self, run_id: str, *, outside: bool = False) -> str | None:
        """The address of a run's page: within the registry's own pages or, from ``outside`` of them, the whole of it.

        None where it has no pages.
        """
        return None

    def picture_of(self, run_id: str, artifact_path: str) -> str | None:
        """The address by which the registry's own pages show a picture that is kept with a run; None: they cannot."""
        return None

    def record(
        self,
        run_id: str,
        points: Sequence[Point] = (),
        params: Mapping[str, object] | None = None,
        tags: Mapping[str, object] | None = None,
        model: ModelVersion | None = None,
    ) -> None:
        """Log numbers, parameters and tags in as few calls as the registry allows, by the rules of the single ones."""
        for (step, at), some in groupby(points, key=lambda point: (point.step, point.at)):
            self.log_metrics(run_id, {point.key: point.value for point in some}, step, at, model)
        if params:
            self.log_params(run_id, params)
        if tags:
            self.tag_run(run_id, tags)

    def log_datasets(self, run_id: str, datasets: Sequence[Dataset]) -> None:
        """Tell which datasets a run is about; the same again is kept once."""
        return

    def tag_run(self, run_id: str, tags: Mapping[str, object]) -> None:
        """Set tags of a run: facts that are neither parameters nor numbers."""
        return

    def log_params(self, run_id: str, params: Mapping[str, object]) -> None:
        """Log parameters, which say how a round was made; of a key that is logged twice the first value stays."""
        return

    @abstractmethod
    def log_metrics(
        self,
        run_id: str,
        metrics: Mapping[str, float | None],
        step: int,
        at: datetime,
        model: ModelVersion | None = None,
    ) -> None:
        """Log numbers at a step and moment; the same again is kept once, and None, NaN and infinity are left out."""

    @abstractmethod
    def metric_history(self, run_id: str, key: str) -> list[tuple[int, datetime, float]]:
        """All values of a metric as (step, moment, value), by step; empty where there is none of that name."""

    @abstractmethod
    def log_artifact(self, run_id: str, path: Path, folder: str | None = None) -> None:
        """Keep a file with the run, in a folder there; one of the same name is replaced."""

    def log_artifacts(self, run_id: str, directory: Path, folder: str | None = None) -> None:
        """Keep all files below a folder with the run."""
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            parts = [part for part in (folder, *path.parent.relative_to(directory).parts) if part]
            self.log_artifact(run_id, path, "/".join(parts) or None)

    @abstractmethod
    def download(self, run_id: str, artifact_path: str, into: Path) -> Path:
        """A file or folder of the run, copied below ``into``."""

    def files(self, run_id: str) -> Mapping[str, int]:
        """The bytes of each file that is kept with a run, by its path there; of a registry that can ``remove files``.

        None where there is no such run any more."""
        return {}

    def remove_file(self, run_id: str, path: str) -> None:
        """Remove one of the :meth:`files` of a run for good; one that is not there is no error.

        By a registry that can ``remove files``.
        """
        raise InputError(f"{type(self).__name__} removes no files; remove {path} of run {run_id} there")

    def publish(self, model: ModelVersion, tag: str, experiment: str, path: Path) -> str:
        """Keep a file that belongs to the version, in a run of its own, and name it in the version's ``tag``."""
        key = f"{tag}:{model.name}:{model.version}".replace("'", "").replace("\\", "")
        run_id = self.run(self.experiment(experiment), key, f"{model.name} v{model.version}")
        self.log_artifact(run_id, path)
        self.finish_run(run_id)
        self.tag_version(model, {tag: f"{run_id}/{path.name}"})
        return run_id

    def published(self, model: ModelVersion, tag: str, into: Path) -> Path | None:
        """The file that :meth:`publish` named in the version's ``tag``, copied below ``into``; None without one."""
        run_id, _, name = self.version_tags(model).get(tag, "").rpartition("/")
        if not run_id:
            return None
        path = into / run_id / name
        return path if path.is_file() else self.download(run_id, name, path.parent)

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
        """Start the project at ``uri`` for an event, once, and do not wait for it; gives its run.

        By a registry that can ``run projects``.
        """
        raise DeliveryError(
            f"{type(self).__name__} runs no projects; use the action command or webhook to retrain", final=True
        )
