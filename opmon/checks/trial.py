"""A round in small: the steps of ``opmon run`` on some of the inputs that it would take, and where it would stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Registry
from opmon.checks.finding import Finding, trouble
from opmon.checks.rows import called, seen
from opmon.checks.sample import Sample, spread
from opmon.config import MonitorSettings
from opmon.errors import NotFoundError, OpmonError, UnavailableError
from opmon.jobs.ids import ids_of
from opmon.jobs.model import Answering
from opmon.jobs.moments import span_of
from opmon.jobs.parts import VARIABLE, lacking
from opmon.jobs.served import Skew, served
from opmon.jobs.variables import with_logged
from opmon.jobs.versions import rows_of, said_of
from opmon.problems import traits
from opmon.scoring.outputs.meaning import unlike_words
from opmon.scoring.scored import Scored
from opmon.scoring.scorer import Scorer
from opmon.stages.unscorable import Unscorable, require_judged
from opmon.stages.versions import versions_meant
from opmon.types import Batch, Frame, ModelVersion
from opmon.wording import percent, told

STOPS = "opmon run would stop the round here, before a label is asked for."
_BY_CHANCE = 0.9
"""Predictions that differ on so much of what chance would make differ are told."""
_UNLIKE = 0.05
_UNSCORED = 0.05
"""So many inputs without scores are odd; fewer are told."""


def try_out(
    monitor: MonitorSettings, registry: Registry, model: ModelVersion, scorer: Answering, sample: Sample
) -> Iterator[Finding]:
    """Findings of a run on the inputs: their versions, ids and times, and the model's answers."""
    about = f"{monitor.name}: versions"
    rows = sample.rows
    if monitor.columns.model_version is not None:
        try:
            mask, finding = _versions(about, monitor, registry, model, sample)
        except UnavailableError as exc:
            yield trouble(about, exc)
            return
        except OpmonError as exc:
            yield trouble(about, exc, "opmon run would open no round.")
            return
        yield finding
        rows = rows.filter(pa.array(mask))
    if rows.num_rows:
        yield _trial(monitor, scorer, rows)


def _versions(
    about: str, monitor: MonitorSettings, registry: Registry, model: ModelVersion, sample: Sample
) -> tuple[NDArray[np.bool_], Finding]:
    """Which rows the monitor's own version answered, and which versions the registry does not know."""
    name = monitor.columns.model_version or ""
    column = sample.rows[name].combine_chunks()
    said = said_of(column, name)
    meant = (sample.round.plan.versions if sample.round else None) or versions_meant(said, name, model, registry)
    counts: Counter[str] = Counter()
    for text, count in said.items():
        counts[meant.get(text, text)] += count
    answered = ", ".join(f"version {version} ({count})" for version, count in counts.most_common(6))
    unknown = [version for version in counts if version != model.version and not _is_known(registry, model, version)]
    mask = rows_of(column, name, model.version, meant)
    if unknown:
        message = (
            f"column {name!r} names {', '.join(map(repr, unknown[:4]))}, and the registry has no such version of "
            f"{model.name!r}; a version is written 3, v3, @alias or models:/{model.name}/3. opmon run would open "
            f"rounds that wait until there is one"
        )
        return mask, Finding(about, "problem", message, needs_change=True)
    if not mask.any():
        return mask, Finding(
            about, "warning", f"none of the inputs was answered by version {model.version}: {answered}"
        )
    return mask, Finding(about, "ok", f"the inputs were answered by {answered}")


def _is_known(registry: Registry, model: ModelVersion, version: str) -> bool:
    try:
        registry.resolve(f"models:/{model.name}/{version}")
    except NotFoundError:
        return False
    return True


def _trial(monitor: MonitorSettings, scorer: Answering, rows: pa.Table) -> Finding:
    about = f"{monitor.name}: trial"
    batches = spread(rows)
    count = sum(batch.rows.num_rows for batch in batches)
    try:
        odd = _identify(monitor, rows)
        scored = [
            with_logged(part, monitor.logged_variables, batch.rows, batch.first_row)
            for part, batch in zip(scorer.score(batches), batches, strict=True)
        ]
        production = _production(monitor, batches, scored)
        judged, skew = (None, None) if production is None else production
        losses = Unscorable.of(scored)
        losses.reasons.update({} if skew is None else skew.losses)
        reasons = require_judged(monitor, count, losses, skew)
        _draw(monitor, scored)
    except OpmonError as exc:
        return trouble(about, exc, STOPS)
    name = monitor.columns.prediction
    logged = [] if name is None else [batch.rows.column(name) for batch in batches]
    finding = _told(about, monitor, scorer, count, scored, skew, reasons, odd, called(monitor, scorer, logged))
    return replace(finding, rows=seen(monitor, batches, scored, judged))


def _told(
    about: str,
    monitor: MonitorSettings,
    scorer: Answering,
    count: int,
    scored: Sequence[Scored],
    skew: Skew | None,
    reasons: Counter[str],
    odd: list[str],
    classes: str,
) -> Finding:
    """The finding that a run would go through, with remarks on what is odd."""
    who = "production logged answers to" if monitor.scoring.by == "logged" else "the model answered"
    words = [f"{who} {count - reasons.total()} of {count} inputs"]
    missing = Counter[str]()
    for part in scored:
        missing.update({name: rows for name, rows in part.missing.items() if rows})
    if missing:
        words.append(f"values are missing in {told(missing)}")
    if classes:
        words.append(classes)
    if reasons:
        share = percent(reasons.total() / count)
        odd.append(f"{reasons.total()} cannot be scored ({share}; a round stops above "
                   f"{percent(monitor.round.max_unscorable)}): {told(reasons)}")  # fmt: skip
    if skew is not None and skew.share is not None:
        words.append(f"production's own answers are the same on {percent(1 - skew.share)}")
        chance = skew.by_chance
        if chance is not None and skew.share > max(_BY_CHANCE * chance, 0.02):
            odd.append(
                f"column {skew.column!r} and the model are no more alike than chance would make them "
                f"({percent(1 - chance)}): does it hold predictions of the same inputs?"
            )
    if traits(monitor.problem).of_classes and all(part.classes is None for part in scored):
        odd.append("nothing names the classes, so that labels cannot be checked: give classes")
    if unscored := sum(part.unscored for part in scored):
        (odd if unscored > _UNSCORED * count else words).append(
            f"of {unscored} the scores in {', '.join(monitor.columns.scores[:4])} are missing or no probabilities from "
            "0 to 1: these count as the least sure, and not at all for measures of scores"
        )
    unlike = sum(part.unlike for part in scored)
    if unlike > _UNLIKE * count:
        odd.append(unlike_words(unlike, count, scorer.outputs if isinstance(scorer, Scorer) else None))
    message = "; ".join(words + odd) + ": opmon run would go on"
    return Finding(about, "warning" if odd else "ok", message)


def _identify(monitor: MonitorSettings, rows: pa.Table) -> list[str]:
    """Remarks on odd ids; an error if ids or times cannot be read."""
    columns = monitor.columns
    if columns.timestamp is not None:
        span_of(rows[columns.timestamp].combine_chunks(), columns.timestamp)
    if columns.id is None:
        return []
    ids = ids_of(rows[columns.id].combine_chunks(), columns.id)
    different = len(ids.unique())
    if 2 * different >= len(ids):
        return []
    return [
        f"column {columns.id!r} has {different} different ids in {len(ids)} inputs, and the others count as logged "
        f"twice: is it the id of an input?"
    ]


def _production(
    monitor: MonitorSettings, batches: Sequence[Batch], scored: Sequence[Scored]
) -> tuple[pa.Table, Skew] | None:
    """Production's own answers beside the model's; None where it logs none."""
    name, good = monitor.columns.prediction, [part for part in scored if len(part.rows)]
    if name is None or not good or monitor.scoring.by == "logged":
        return None
    where = np.concatenate([part.rows for part in good])
    own = np.concatenate([part.predictions for part in good])
    logged = pa.chunked_array([batch.rows.column(name) for batch in batches]).combine_chunks()
    given, threshold = logged.take(pa.array(where)), monitor.columns.threshold
    classes = next((part.classes for part in good if part.classes is not None), None)
    return served(name, given, own, classes, monitor.problem, monitor.spellings, threshold)


def _draw(monitor: MonitorSettings, scored: Sequence[Scored]) -> None:
    """Whether the sampler finds the variables it needs."""
    names = dict.fromkeys(name for part in scored for name in part.variables)
    for part in scored:
        size = len(part.rows)
        if size > 1:
            variables = {name: part.variables.get(name, lacking(VARIABLE + name, size)) for name in names}
            frame = Frame(variables, predictions=part.predictions, activations=part.activations, size=size)
            monitor.sampler.plugin.draw(frame, size // 2, np.random.default_rng(0))
