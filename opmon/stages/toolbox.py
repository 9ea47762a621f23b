"""What every step works with: the monitor's settings and its collaborators."""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, cast

from opmon import plugins
from opmon.abc import Executor, Registry, Sampler, Source
from opmon.config import MonitorSettings
from opmon.errors import OpmonError
from opmon.jobs.model import Answering, Way, forget, held, opened
from opmon.kept_quantities import as_kept
from opmon.registry import cache
from opmon.scoring.scorer import Scorer
from opmon.stages.models import way_of
from opmon.store import versions
from opmon.store.engine import Connection, Store
from opmon.store.leases import Lease
from opmon.store.plans import RoundPlan
from opmon.store.rounds import Round
from opmon.types import ModelVersion

log = logging.getLogger(__name__)


_EXPERIMENT = ("experiment",)
_IN_A_ROW = 5.0
"""For so many seconds of a cycle an address means what it meant."""


class Progress(Protocol):
    """Hears how far a long step has come; ``total`` is None where it cannot be known."""

    def __call__(self, what: str, done: int, total: int | None) -> None: ...


def silent(what: str, done: int, total: int | None) -> None:
    """The progress that nobody watches."""


@dataclass(frozen=True)
class Toolbox:
    """One monitor at work: its settings, and all that its steps need."""

    name: str
    settings: MonitorSettings
    store: Store
    lease: Lease
    registry: Registry
    source: Source
    looks: Source
    """What says which inputs are pending, for this cycle."""
    folder: Path
    """Where models are cached and files are made before they go to MLflow: losing it loses nothing."""
    clock: Callable[[], datetime]
    progress: Progress
    executor: Executor
    """Where the jobs of a round run."""
    scorers: dict[str, Answering]
    """Models already loaded, by version."""
    ways: dict[tuple[ModelVersion, bool], Way[Answering]]
    """How versions score, with activations or without, where it was already found out."""
    models: dict[str, ModelVersion]
    """Model versions already looked up."""
    timelines: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The timelines that this process has found, or made, and seen to; and the experiment that they are in."""
    fresh: set[int] = field(default_factory=set)
    """The rounds that this process opened and has asked the registry for no run of: there is none."""
    rivals: dict[str, Answering] = field(default_factory=dict)
    """Other versions that a rule compares with, loaded for their predictions."""
    met: dict[str, tuple[float, ModelVersion]] = field(default_factory=dict)
    """When the monitor's address was last looked up in this cycle, and what it meant."""

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self.lease.write() as connection:
            yield connection

    def experiment(self) -> str:
        """The experiment that holds the runs of the monitor, looked up once per process."""
        if not self.timelines.get(_EXPERIMENT):
            self.timelines[_EXPERIMENT] = self.registry.experiment(experiment_of(self.name))
        return self.timelines[_EXPERIMENT]

    def model(self, round_: Round) -> ModelVersion:
        """The model version of a round, looked up once per process: what is registered under it hardly ever changes."""
        if round_.model_uri not in self.models:
            self.models[round_.model_uri] = self.registry.resolve(round_.model_uri)
        return self.models[round_.model_uri]

    def current(self) -> ModelVersion:
        """The version that the monitor's address means now: looked up once where a cycle asks twice in a row.

        Rounds of a version that was deleted and registered anew go on with the one that is there.
        """
        at, model = self.met.get(self.settings.model, (-math.inf, None))
        if model is None or time.monotonic() - at > _IN_A_ROW:
            model = self.registry.resolve(self.settings.model)
            self.models[model.uri] = model
            self.met[self.settings.model] = time.monotonic(), model
        return model

    def way(self, round_: Round) -> Way[Answering]:
        """How the inputs of a round get their scores."""
        return self._way(self.model(round_), levels_of(round_.plan) is not None)

    def scorer(self, round_: Round) -> Scorer:
        """The ONNX model of a round, loaded once per process."""
        return cast(Scorer, self.scorer_of(self.model(round_), levels_of(round_.plan) is not None))

    def scorer_of(self, model: ModelVersion, traced: bool = False) -> Answering:
        """What answers as a version does, with activations where they are asked for."""
        scorer = opened(self._way(model, traced))
        self._hold(model.uri, scorer)
        return scorer

    def hold(self, round_: Round) -> None:
        """Keep the model of a round for the next one, where it was loaded in this process."""
        scorer = held(self.way(round_))
        if scorer is not None:
            self._hold(round_.model_uri, scorer)

    def drop(self, round_: Round) -> None:
        """Keep the model of a round no longer: it has taken all memory, and may still have some of it."""
        self.scorers.clear()
        forget(self.way(round_))

    def _hold(self, uri: str, scorer: Answering) -> None:
        self.scorers.clear()  # one model in memory is enough: rounds come in order
        self.scorers[uri] = scorer

    def _way(self, model: ModelVersion, traced: bool) -> Way[Answering]:
        known = self.ways.get((model, True)) or self.ways.get((model, traced))
        if known is None or not known.is_there():
            had = cache.versions(self.folder / "models", model.name)
            known = way_of(self.settings, self.registry, model, self.folder, traced)
            if had and model.version not in had:
                self._forget_models(model)
            self.ways.clear()
            self.ways[model, traced] = known
        return known

    def _forget_models(self, new: ModelVersion) -> None:
        """A version was downloaded: those go that no open round, no monitor and no rule needs any more."""
        with self.store.read() as connection:
            needed = versions.versions_needed(connection, new.name) | {new.version}
        rivals = (rule.plugin.rival_version() for rule in self.settings.rules)
        try:
            named = [self.registry.resolve(uri) for uri in (self.settings.model, *rivals) if uri is not None]
        except OpmonError as exc:
            log.warning("old versions of %s are kept for now: %s", new.name, exc)
            return
        needed |= {model.version for model in named if model.name == new.name}
        cache.forget(self.folder / "models", new.name, needed)

    def round_folder(self, round_: Round) -> Path:
        """Where a round's files are made; another database's round of the same number has another."""
        folder = folder_of(self.folder, round_)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def experiment_of(monitor: str) -> str:
    """The name of the experiment of a monitor."""
    return f"opmon/{monitor}"


def folder_of(state: Path, round_: Round) -> Path:
    """Where the files of a round are made, below the folder of opmon's state."""
    return state / "rounds" / round_.monitor / f"{round_.number}-{zlib.crc32(round_.key.encode()):08x}"


def sampler_of(plan: RoundPlan) -> Sampler:
    """The sampler that a round's plan names."""
    sampler: Sampler = plugins.make("sampler", plan.sampler, plan.parameters)
    return sampler.at_once() if plan.at_once else sampler


def levels_of(plan: RoundPlan) -> int | None:
    """In how many levels the frame of a round holds the activations; None where its sampler does not look at them."""
    return sampler_of(plan).activation_levels


def plan_of(settings: MonitorSettings) -> RoundPlan:
    """What a round keeps of the configuration, so that changing it later does not change a round half done."""
    main = settings.main_measure
    return RoundPlan(
        problem=settings.problem,
        unit=settings.unit,
        sampler=settings.sampler.type,
        parameters=dict(settings.sampler.parameters),
        budget=settings.sampler.budget,
        level=settings.level,
        seed=settings.seed,
        where=settings.inputs.where,
        version_column=settings.columns.model_version,
        proxy=settings.proxy,
        at_once=settings.labels.annotators == "none",
        scale=settings.scale,
        tolerance=settings.tolerance,
        adjudication=settings.decides,
        experts=settings.labels.experts,
        measures=[measure.stored for measure in settings.measures] or None,
        main=None if main is None else main.key,
        main_quantity=None if main is None else as_kept(main.quantity(settings.unit)),
    )
