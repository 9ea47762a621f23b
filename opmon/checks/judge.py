"""Whether the judge answers: it is tried on five inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from opmon.abc import Registry
from opmon.checks.finding import Finding, trouble
from opmon.checks.sample import Sample, spread
from opmon.config import MonitorSettings
from opmon.config.kinds import JudgeSettings
from opmon.durations import show_duration
from opmon.errors import OpmonError
from opmon.jobs.model import Answering
from opmon.problems import traits
from opmon.stages.judging import question_of
from opmon.stages.models import way_of
from opmon.stages.payloads import payload_of
from opmon.stages.truth import vocabulary_of
from opmon.values import canonical_classes
from opmon.wording import counted

TRIED = 5


def look_at_judge(
    monitor: MonitorSettings, registry: Registry, scorer: Answering, sample: Sample, folder: Path
) -> Finding | None:
    """How many of five inputs the judge answers, and how often as the model does; None where there is none."""
    judge = monitor.judge
    if judge is None or not sample.rows.num_rows:
        return None
    about = f"{monitor.name}: judge"
    rows = sample.rows.slice(0, TRIED).combine_chunks()
    try:
        own, classes = _of_model(monitor, scorer, rows)
        said = _of_judge(monitor, judge, registry, rows, classes, folder)
    except OpmonError as exc:
        return trouble(about, exc, f"A round waits {show_duration(judge.wait)} for it, and then goes on without.")
    answered = {row: answer for row, answer in said.items() if answer is not None}
    alike = sum(own.get(row) == answer for row, answer in answered.items())
    what = "its answers count as labels, which nobody checks" if judge.as_labels else "its answers assist the estimate"
    message = (
        f"{judge.type} answered {len(answered)} of {counted(rows.num_rows, 'input')}, {alike} of them as the model "
        f"does; {what}"
    )
    return Finding(about, "ok" if answered else "problem", message, needs_change=not answered)


def _of_model(
    monitor: MonitorSettings, scorer: Answering, rows: pa.Table
) -> tuple[Mapping[int, str], Sequence[str] | None]:
    """What the monitored model answers, by row, and its classes."""
    own: dict[int, str] = {}
    classes: Sequence[str] | None = None
    for part in scorer.score(spread(rows)):
        named = canonical_classes(part.predictions) if traits(monitor.problem).one_class else part.predictions
        own |= dict(zip(part.rows.tolist(), map(str, np.asarray(named).tolist()), strict=True))
        classes = classes or part.classes
    return own, classes


def _of_judge(
    monitor: MonitorSettings,
    judge: JudgeSettings,
    registry: Registry,
    rows: pa.Table,
    classes: Sequence[str] | None,
    folder: Path,
) -> Mapping[int, str | None]:
    """What the judge answers, by row; None where it is none of what may be answered."""
    if judge.plugin.registered is not None:
        model = registry.resolve(judge.plugin.registered)
        return {**_of_model(monitor, way_of(monitor, registry, model, folder, plain=True).open(), rows)[0]}
    guide = monitor.guide
    guide = guide if guide.classes else replace(guide, classes=dict.fromkeys(classes or (), ""))
    questions = [
        question_of(payload_of(row, monitor.columns, monitor.hidden, monitor.judged_column)) for row in rows.to_pylist()
    ]
    different = list({question.key: question for question in questions}.values())
    found = {opinion.key: opinion for opinion in judge.plugin.answer(different, guide)}
    vocabulary = vocabulary_of(monitor, classes)
    said: dict[int, str | None] = {}
    for row, question in enumerate(questions):
        opinion = found.get(question.key)
        scores = {} if opinion is None else opinion.scores
        answer = max(scores, key=scores.__getitem__) if scores else None if opinion is None else opinion.answer
        named = None if answer is None else vocabulary.named(pa.array([answer]))[0][0].as_py()
        said[row] = None if named is None else str(named)
    return said
