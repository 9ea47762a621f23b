"""One monitor from its model to a trial on real inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from opmon.abc import Registry
from opmon.checks.conversion import compared
from opmon.checks.digits import lost_digits
from opmon.checks.finding import Finding, asked, short
from opmon.checks.judge import look_at_judge
from opmon.checks.labels import look_at_labels
from opmon.checks.measures import look_at_measures
from opmon.checks.pictures import look_at_pictures
from opmon.checks.sample import Sample, look_at_source
from opmon.checks.shown import shown_to_annotators
from opmon.checks.slices import look_at_slices
from opmon.checks.trial import try_out
from opmon.checks.truth import look_at_truth
from opmon.config import MonitorSettings, Settings
from opmon.config.registry import registry_of
from opmon.jobs.model import Answering
from opmon.scoring.scorer import Scorer
from opmon.stages.labelling import desk_of
from opmon.stages.models import way_of
from opmon.stages.originals import has_original
from opmon.types import ModelVersion


def check_monitor(settings: Settings, name: str, folder: Path | None = None) -> Iterator[Finding]:
    """The model, the device, the source, and whether the model takes what the source gives.

    The model is kept in ``folder`` meanwhile, which may hold it already; in one of its own by default.
    """
    monitor, registry = settings.monitor(name), registry_of(settings)
    finding, model = asked(f"{name}: model", lambda: _model(monitor, registry))
    yield finding
    looks = list(look_at_source(settings, monitor, model))
    yield from (finding for finding, _ in looks)
    sample = looks[-1][1]
    yield from look_at_slices(monitor, sample)
    if sample is not None:
        yield from look_at_pictures(monitor, sample)
    desk = desk_of(monitor)
    if desk is not None:
        yield asked(f"{name}: labels", lambda: (desk.ask(desk.provider.check), None))[0]
    if model is None:
        yield from _people(monitor, sample, None)
        yield from _truth(monitor, sample, None)
        return
    with tempfile.TemporaryDirectory() if folder is None else nullcontext(folder) as place:
        kept = Path(place)
        finding, scorer = asked(f"{name}: scoring", lambda: _scorer(monitor, registry, model, kept))
        yield finding
        yield from look_at_measures(monitor, _classes(scorer))
        yield from _people(monitor, sample, scorer)
        if scorer is None or sample is None:
            yield from _truth(monitor, sample, scorer)
            return
        if isinstance(scorer, Scorer) and has_original(model) and sample.rows.num_rows:
            yield compared(monitor, registry, model, scorer, sample, kept)
        yield from try_out(monitor, registry, model, scorer, sample)
        yield from _truth(monitor, sample, scorer)
        judge = look_at_judge(monitor, registry, scorer, sample, kept)
        if judge is not None:
            yield judge
        if isinstance(scorer, Scorer):
            yield from lost_digits(f"{name}: digits", scorer, sample.rows)


def _people(monitor: MonitorSettings, sample: Sample | None, scorer: Answering | None) -> Iterator[Finding]:
    """Whether what annotators are given beside the tasks is there."""
    row = next(iter(sample.rows.slice(0, 1).to_pylist()), None) if sample is not None else None
    yield from look_at_labels(monitor, row, _classes(scorer))
    shown = None if sample is None else shown_to_annotators(monitor, sample.rows)
    if shown is not None:
        yield shown


def _classes(scorer: Answering | None) -> list[str] | None:
    """The classes of the model, where it says them."""
    classes = None if scorer is None else scorer.describe().get("classes")
    return [str(name) for name in classes] if isinstance(classes, list) else None


def _truth(monitor: MonitorSettings, sample: Sample | None, scorer: Answering | None) -> Iterator[Finding]:
    """Whether truth that arrives by itself can be used: last, for the model tells what it may say."""
    found = look_at_truth(monitor, sample, _classes(scorer))
    if found is not None:
        yield found


def _model(monitor: MonitorSettings, registry: Registry) -> tuple[str, ModelVersion]:
    model: ModelVersion = registry.resolve(monitor.model)
    return f"{monitor.model} is version {model.version} ({', '.join(model.flavors) or 'no files'})", model


def _scorer(monitor: MonitorSettings, registry: Registry, model: ModelVersion, folder: Path) -> tuple[str, Answering]:
    traced = monitor.sampler.plugin.activation_levels is not None
    scorer = way_of(monitor, registry, model, folder, traced).open()
    told = scorer.describe()
    return ", ".join(f"{key} {short(value)}" for key, value in told.items() if value is not None), scorer
