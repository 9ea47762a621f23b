"""A monitor's robustness, mapped every so many rounds on the labelled inputs so far."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opmon import disk
from opmon.adjudication import Asked
from opmon.config.robustness import PerturbationSettings, RobustnessSettings
from opmon.errors import DatabaseUnavailable, InputError, LeaseLost, OpmonError, RegistryUnavailable, StateUnavailable
from opmon.reports.robustness import robustness_metrics, robustness_report, robustness_summary
from opmon.reports.robustness_examples import packed as packed_examples
from opmon.reports.robustness_files import packed
from opmon.robustness.measured import Plan
from opmon.robustness.result import Tomography
from opmon.robustness.run import Progress
from opmon.robustness.running import Budget
from opmon.robustness.tomography import tomography
from opmon.stages.captured import payloads
from opmon.stages.checkpoints import CheckpointFile, content_key
from opmon.stages.estimate import read_answers
from opmon.stages.models import model_file
from opmon.stages.payloads import row_of
from opmon.stages.tomography_examples import examples, gallery, shown_inputs
from opmon.stages.tomography_model import Prepared, open_traced, prepared
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import weight_of
from opmon.store import pruned, rounds, tomographies
from opmon.store.attachments import is_erased
from opmon.store.rounds import Round
from opmon.types import Document

log = logging.getLogger(__name__)

_LONGEST = 300
_NO_FAULT = (LeaseLost, DatabaseUnavailable, RegistryUnavailable, StateUnavailable)


@dataclass(frozen=True)
class Labelled:
    """Inputs as tasks hold them, their truth and what each stands for."""

    rows: Sequence[Document]
    truth: Sequence[str | None]
    weights: Sequence[float]
    first_round: int
    """The oldest round they are of."""


def map_round(work: Toolbox, round_: Round, folder: Path) -> Tomography | None:
    """The tomography that is due with this round, with its report in ``folder``; None where none is.

    A fault of it never keeps a round from closing: it is logged, and the next one is due as usual. Where something does
    not answer for a while, the round is tried again, and the tomography goes on where it was.
    """
    settings = work.settings.robustness
    if settings is None or round_.number % settings.every:
        return None
    try:
        return _map(work, round_, settings, folder)
    except Exception as exc:  # the data, the model and the perturbations may be anybody's
        if isinstance(exc, _NO_FAULT) or disk.trouble(exc, work.folder) is not None:
            raise
        known = isinstance(exc, OpmonError)
        why = exc if known else f"{type(exc).__name__}: {exc}"
        log.warning("round %d of %s has no tomography: %s", round_.number, work.name, why, exc_info=not known)
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _map(work: Toolbox, round_: Round, settings: RobustnessSettings, folder: Path) -> Tomography | None:
    found = labelled(work, round_, settings)
    known = sum(value is not None for value in found.truth)
    if known < settings.min_inputs and settings.relation == "label":
        log.info("%s: a tomography waits for %d labelled inputs, there are %d", work.name, settings.min_inputs, known)
        return None
    path = model_file(work.settings, work.registry, work.model(round_), work.folder)
    traced = open_traced(path, work.settings) if settings.kind == "image" and settings.quality else None
    ready = prepared(work.scorer(round_), settings, found.rows, found.truth, found.weights, traced)
    key = f"{round_.key} {content_key(path, ready, settings, work.settings.seed)}"
    kept = CheckpointFile(work.round_folder(round_) / "robustness-checkpoint.npz", key)
    result = mapped(ready, settings, work.settings.seed, progress=work.progress, kept=kept)
    title = f"Robustness of {round_.model_name} v{round_.model_version}, round {round_.number}"
    shown = shown_inputs(ready, settings, result, work.settings.seed)
    queries = _answerable(result, settings)
    robustness_report(result, folder, title=title, queries=queries, gallery=gallery(ready, shown))
    seen = examples(ready, shown, work.settings.inputs.features)
    with work.write() as connection:
        tomographies.keep(
            connection,
            work.name,
            round_.id,
            robustness_summary(result, queries),
            packed(result),
            packed_examples(seen),
            found.first_round,
            work.clock(),
        )
    return result


def mapped(
    ready: Prepared,
    settings: RobustnessSettings,
    seed: int,
    *,
    progress: Progress | None = None,
    kept: CheckpointFile | None = None,
) -> Tomography:
    """The tomography that the settings describe, of a model and inputs that are ready."""
    result = tomography(
        ready.model,
        ready.evaluation,
        [entry.plugin for entry in settings.perturbations],
        settings.space,
        ready.codec,
        plan=Plan(half_width=settings.half_width, seed=seed),
        budget=Budget(settings.beyond_pairs),
        quality=ready.quality,
        progress=progress,
        resume=None if kept is None else kept.load(),
        save=None if kept is None else kept.save,
    )
    made = {entry.name: _described(entry) for entry in settings.perturbations}
    return replace(result, facts={**result.facts, "tolerance": settings.tolerance, "perturbations": made})


def _described(entry: PerturbationSettings) -> str:
    """A perturbation with its parameters, or what stands for very many of them."""
    text = json.dumps(
        {key: value for key, value in entry.shown().items() if key != "name"}, sort_keys=True, default=str
    )
    return text if len(text) <= _LONGEST else f"{entry.type} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def labelled(work: Toolbox, round_: Round, settings: RobustnessSettings) -> Labelled:
    """The answered tasks of this and earlier rounds of the same model version, newest first, each with its weight."""
    drawn: list[tuple[Round, list[Asked]]] = []
    weights: list[float] = []
    with work.store.read() as connection:
        for number in range(round_.number, 0, -1):
            if len(weights) >= settings.max_inputs:
                break
            other = rounds.get(connection, work.name, number)
            if other.model_version != round_.model_version or other.draw is None:
                continue
            answers = read_answers(connection, other)
            weight = weight_of(answers.sample)
            if weight is None:
                continue  # nobody knows how many inputs each stands for
            there = [task for task in answers.tasks if not is_erased(task.payload)]
            tasks = [task for task in there if settings.relation == "own" or task.truth is not None]
            weights += [max(weight.get(task.position, 0.0), 1e-9) for task in tasks]
            drawn.append((other, tasks))
    rows = [row_of(payload) for other, tasks in drawn for payload in payloads(work, other, tasks)]
    truth = [task.truth for _, tasks in drawn for task in tasks]
    if not rows:
        gone = "" if round_.labels_pruned_at is None else f" (its {pruned.words(round_.labels_pruned_at)})"
        raise InputError(
            f"no input of this model version up to round {round_.number}{gone} has a label, drawn by a design whose "
            "weights are known"
        )
    most, first = settings.max_inputs, min(other.number for other, _ in drawn)
    return Labelled(rows[:most], truth[:most], weights[:most], first)


def tomography_metrics(result: Tomography, settings: RobustnessSettings) -> dict[str, float]:
    """What goes to the monitor's timeline."""
    return robustness_metrics(result, _answerable(result, settings))


def _answerable(result: Tomography, settings: RobustnessSettings) -> dict[str, str]:
    """The saved queries that some test meets; one on quality may meet none."""
    found = {}
    for name, text in settings.questions.items():
        if result.condition(text).holds(result.values, len(result.tests)).any():
            found[name] = text
    return found
