"""The work of ``opmon robustness run``: read inputs, run the model on them perturbed, write the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmon.cli.common import console

if TYPE_CHECKING:
    from rich.progress import TaskID

    from opmon.cli.subject import Subject
    from opmon.config.robustness import RobustnessSettings
    from opmon.robustness.result import Tomography
    from opmon.robustness.run import Progress
    from opmon.scoring.inputs.images import ImageInput
    from opmon.types import Document


def settings_with(subject: Subject, given: dict[str, object]) -> RobustnessSettings:
    """The monitor's settings, overridden by the options of the command line."""
    from pydantic import ValidationError

    from opmon.config.robustness import RobustnessSettings
    from opmon.errors import InputError

    known = subject.settings.robustness
    values: dict[str, Any] = {} if known is None else known.model_dump(mode="json")
    if "kind" not in {**values, **given} or "perturbations" not in {**values, **given}:
        raise click.UsageError(
            "say what is perturbed: --kind image -p zoom -p brightness, or robustness: in opmon.yaml"
        )
    values |= {"min_inputs": 2} | given
    values["max_inputs"] = max(int(values.get("max_inputs", 1000)), 2)
    try:
        return RobustnessSettings.model_validate(values)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = [*first["loc"], *([first["ctx"]["key"]] if "key" in first.get("ctx", {}) else [])]
        raise InputError(f"{'.'.join(map(str, where))}: {first['msg']}".lstrip(": ")) from None


def mapped(
    subject: Subject, settings: RobustnessSettings, data: tuple[str, ...], label: str | None, seed: int, output: Path,
    progress: Progress,
) -> Tomography:  # fmt: skip
    """The tomography of the model on the inputs at ``data``, written to ``output`` with its report."""
    from opmon.reports.robustness import robustness_report
    from opmon.scoring.scorer import Scorer
    from opmon.stages.checkpoints import CheckpointFile, content_key
    from opmon.stages.tomography import mapped as tomography
    from opmon.stages.tomography_examples import gallery, shown_inputs
    from opmon.stages.tomography_model import open_traced, prepared

    rows = _rows(data, settings.max_inputs, label, seed)
    labels = [None if label is None else row.get(label) for row in rows]
    truth = [None if value is None or value != value else str(value) for value in labels]  # NaN: no label either
    plain = [{name: value for name, value in row.items() if name != label} for row in rows]
    watched = subject.settings
    reading = subject.reading
    if settings.kind == "image" and reading["reading"] is None and watched.inputs == type(watched.inputs)():
        reading["reading"] = _encoded(plain)
    scorer = Scorer.open(subject.path, watched.problem, **reading)
    traced = open_traced(subject.path, watched) if settings.kind == "image" and settings.quality else None
    ready = prepared(scorer, settings, plain, truth, None, traced)
    if ready.left_out:
        click.echo(f"{ready.left_out} of {len(rows)} inputs are left out: no label, or not fit for the model", err=True)
    kept = CheckpointFile(output / "checkpoint.npz", content_key(subject.path, ready, settings, seed))
    result = tomography(ready, settings, seed, progress=progress, kept=kept)
    robustness_report(result, output, title=f"Robustness of {subject.title}", queries=settings.questions,
                      gallery=gallery(ready, shown_inputs(ready, settings, result, seed)))  # fmt: skip
    kept.path.unlink(missing_ok=True)
    return result


def _encoded(rows: Sequence[Document]) -> ImageInput | None:
    """The only column with encoded pictures, if nothing says how inputs are read; else None."""
    from opmon.scoring.inputs.images import ImageInput

    columns = [name for name, value in (rows[0] if rows else {}).items() if isinstance(value, bytes)]
    return ImageInput(columns[0]) if len(columns) == 1 else None


def _rows(data: tuple[str, ...], limit: int, label: str | None, seed: int) -> list[Document]:
    """At most ``limit`` rows, each equally likely to be among them (a reservoir: the data is read once)."""
    import numpy as np

    from opmon.cli.reference import batches
    from opmon.errors import InputError

    rng, seen = np.random.default_rng([seed, 0xDA7A]), 0
    kept: list[Document] = []
    for batch in batches(data):
        if label is not None and label not in batch.rows.schema.names:
            raise InputError(f"there is no column {label!r}; there are: {', '.join(batch.rows.schema.names)}")
        places = [len(kept) + i if len(kept) + i < limit else -1 for i in range(batch.rows.num_rows)]
        for i, place in enumerate(places):
            at = place if place >= 0 else int(rng.integers(0, seen + i + 1))
            if at < limit:
                row = batch.rows.slice(i, 1).to_pylist()[0]
                if place >= 0:
                    kept.append(row)
                else:
                    kept[at] = row
        seen += batch.rows.num_rows
    return kept


@contextmanager
def bars(quiet: bool) -> Iterator[Progress]:
    """Progress bars with the time left on a terminal; nothing elsewhere."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def heard(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield heard
