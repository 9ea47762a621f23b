"""``opmon robustness``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmon.cli.common import config_option, console, json_option, monitor_option, print_json
from opmon.wording import percent, points_between, signed_points

if TYPE_CHECKING:
    from opmon.cli.subject import Subject
    from opmon.config.robustness import RobustnessSettings
    from opmon.robustness.result import Answer, Tomography
    from opmon.robustness.run import Progress

FOLDER = click.option(
    "--from", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path("robustness"), show_default=True,
    help="The folder that 'opmon robustness run' wrote, or one downloaded from MLflow.",
)  # fmt: skip


@click.group()
def robustness() -> None:
    """How right the model stays under combined perturbations: measured in part, the rest predicted."""


@robustness.command("run")
@click.argument("data", nargs=-1, required=True)
@config_option()
@monitor_option()
@click.option("--model", help="An ONNX file or models:/name@alias instead of the monitor's model.")
@click.option("--label", help="The column with the truth; without it, right is the model's own unperturbed answer.")
@click.option("--kind", type=click.Choice(["image", "text", "table"]), help="What the inputs are.")
@click.option("-p", "--perturbation", "perturbations", multiple=True, help="One of them, such as zoom; again for more.")
@click.option("-n", "--inputs", type=click.IntRange(min=2), help="At most so many inputs [1000].")
@click.option(
    "--beyond-pairs",
    type=click.IntRange(min=0),
    help="Tests of three or more that are run [24 and up].",
)
@click.option("--half-width", type=float, help="How well each test is known [0.03].")
@click.option("--ordered", is_flag=True, help="A then B and B then A are two tests.")
@click.option("-q", "--query", "queries", multiple=True, help="Asked of the result; again for more.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the inputs and the perturbations.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("robustness"),
              show_default=True, help="The folder for the result, its figures and its page.")  # fmt: skip
@json_option()
def run(
    data: tuple[str, ...], path: Path | None, monitor: str | None, model: str | None, label: str | None,
    kind: str | None, perturbations: tuple[str, ...], inputs: int | None, beyond_pairs: int | None,
    half_width: float | None, ordered: bool, queries: tuple[str, ...], seed: int, output: Path, as_json: bool,
) -> None:  # fmt: skip
    """Map the robustness of a model on DATA (files, folders or globs; Parquet, CSV, JSON lines).

    The perturbations are those of the monitor's "robustness:", or given by --kind and -p. Encoded pictures are read as
    numbers from 0 to 1 unless opmon.yaml says otherwise. Stopped half-way, the same command goes on where it was.
    """
    from opmon.cli.subject import subject_of

    subject = subject_of(path, monitor, model)
    given = {
        "kind": kind, "perturbations": list(perturbations) or None, "max_inputs": inputs, "beyond_pairs": beyond_pairs,
        "half_width": half_width, "ordered": ordered or None, "relation": "label" if label else "own",
        "queries": {f"q{number}": text for number, text in enumerate(queries, start=1)} or None,
    }  # fmt: skip
    settings = _settings(subject, {key: value for key, value in given.items() if value is not None})
    with _progress(quiet=as_json) as progress:
        result = _mapped(subject, settings, data, label, seed, output, progress)
    answers = {name: result.ask(text) for name, text in settings.questions.items()}
    if as_json:
        print_json(_told(result, answers, output))
        return
    _show(result, answers)
    click.echo(f"written to {output}: robustness.html shows it, 'opmon robustness query' asks it")


@robustness.command("query")
@click.argument("question")
@FOLDER
@click.option("-w", "--worst", type=click.IntRange(min=0), default=5, show_default=True, help="So many worst tests.")
@json_option()
def query(question: str, folder: Path, worst: int, as_json: bool) -> None:
    """Ask QUESTION, such as "zoom > 2 or (brightness == 5 and blur == 1)", of a finished tomography.

    Names of perturbations or P1 to Pk, and or not, comparisons, order, severity_sum, quality; Q1 to Q12 by name.
    """
    from opmon.reports.robustness import read_tomography

    result = read_tomography(folder)
    answer = result.ask(question, worst)
    if as_json:
        print_json(asdict(answer))
        return
    _show_answer(answer)


@robustness.command("compare")
@click.argument("first", type=click.Path(path_type=Path, file_okay=False))
@click.argument("second", type=click.Path(path_type=Path, file_okay=False))
@click.option("-q", "--query", "queries", multiple=True, help="Compared as well; again for more.")
@json_option()
def compare(first: Path, second: Path, queries: tuple[str, ...], as_json: bool) -> None:
    """Set two tomographies of the same space side by side, such as those of two model versions.

    Made of the same inputs they are compared input by input, which tells smaller differences from chance.
    """
    from opmon.reports.robustness import read_tomography
    from opmon.robustness.comparison import compared

    before, after = read_tomography(first), read_tomography(second)
    found = {name: compared(before, after, text) for name, text in {"all": "all", **{q: q for q in queries}}.items()}
    if as_json:
        for name, one in found.items():
            print_json({"query": name, "first": one.first.value, "second": one.second.value,
                        "difference": one.difference, "low": one.low, "high": one.high, "level": one.level,
                        "beyond_chance": one.beyond_chance, "paired": one.paired})  # fmt: skip
        return
    if found["all"].paired:
        click.echo(f"on the same {before.inputs:,} inputs, one by one")
    else:
        click.echo(f"on different inputs ({before.inputs:,} and {after.inputs:,}), which is part of what differs")
    for name, one in found.items():
        words = "" if one.beyond_chance else ", may be chance"
        click.echo(f"{name}: {percent(one.first.value)} → {percent(one.second.value)}, "
                   f"{signed_points(one.difference)} ({points_between(one.low, one.high)}{words})")  # fmt: skip


def _settings(subject: Subject, given: dict[str, Any]) -> RobustnessSettings:
    """Those of the monitor with what the command line says in their place."""
    from pydantic import ValidationError

    from opmon.config.robustness import RobustnessSettings
    from opmon.errors import InputError

    known = subject.settings.robustness
    values = {} if known is None else known.model_dump(mode="json")
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


def _mapped(
    subject: Subject, settings: RobustnessSettings, data: tuple[str, ...], label: str | None, seed: int, output: Path,
    progress: Progress,
) -> Tomography:  # fmt: skip
    from opmon.reports.robustness import robustness_report
    from opmon.scoring.scorer import Scorer
    from opmon.stages.checkpoints import CheckpointFile, content_key
    from opmon.stages.tomography import gallery, mapped
    from opmon.stages.tomography_model import open_traced, prepared

    rows = _rows(data, settings.max_inputs, label, seed)
    told = [None if label is None else row.get(label) for row in rows]
    truth = [None if value is None or value != value else str(value) for value in told]  # NaN: no label either
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
    result = mapped(ready, settings, seed, progress=progress, kept=kept)
    robustness_report(result, output, title=f"Robustness of {subject.title}", queries=settings.questions,
                      gallery=gallery(ready, settings, result, seed))  # fmt: skip
    kept.path.unlink(missing_ok=True)
    return result


def _encoded(rows: list[dict[str, Any]]) -> Any:
    """The only column with encoded pictures, where nothing says how inputs are read; None where there is none."""
    from opmon.scoring.inputs.images import ImageInput

    columns = [name for name, value in (rows[0] if rows else {}).items() if isinstance(value, bytes)]
    return ImageInput(columns[0]) if len(columns) == 1 else None


def _rows(data: tuple[str, ...], limit: int, label: str | None, seed: int) -> list[dict[str, Any]]:
    """At most ``limit`` rows, each equally likely to be among them (a reservoir: the data is read once)."""
    import numpy as np

    from opmon.cli.reference import _batches
    from opmon.errors import InputError

    rng, seen = np.random.default_rng([seed, 0xDA7A]), 0
    kept: list[dict[str, Any]] = []
    for batch in _batches(data):
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
def _progress(quiet: bool) -> Iterator[Progress]:
    """Bars with the time left on a terminal, nothing elsewhere."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def heard(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield heard


def _told(result: Tomography, answers: dict[str, Answer], output: Path) -> dict[str, Any]:
    whole = result.ask("all")
    return {
        "tests": len(result.tests),
        "measured": int(result.measured.sum()),
        "inputs": result.inputs,
        "inferences": result.inferences,
        "saved": result.saved,
        "unperturbed": float(result.share[0]),
        "aggregate": asdict(whole),
        "queries": {name: asdict(answer) for name, answer in answers.items()},
        "written": str(output),
    }


def _show(result: Tomography, answers: dict[str, Answer]) -> None:
    whole = result.ask("all")
    click.echo(
        f"{len(result.tests):,} tests on {result.inputs:,} inputs: {int(result.measured.sum()):,} measured, "
        f"{whole.predicted:,} predicted, {percent(result.saved, 0)} of the inferences saved"
    )
    click.echo(f"unperturbed {percent(result.share[0])}, mean of all tests {percent(whole.value)} ({_interval(whole)})")
    for name, answer in answers.items():
        click.echo(f"{name:>12}: {percent(answer.value)} ({_interval(answer)})  {answer.tests} tests")


def _show_answer(answer: Answer) -> None:
    level = percent(answer.level)
    click.echo(f"{percent(answer.value)} still right on average ({_interval(answer)}, {level} interval)")
    click.echo(f"as a sample of production: {percent(answer.population_low)} to {percent(answer.population_high)}")
    click.echo(f"{answer.tests} tests: {answer.measured} measured, {answer.predicted} predicted")
    if answer.quality is not None:
        click.echo(f"mean distance from the originals {answer.quality:.3g}")
    for case in answer.worst:
        how = "measured" if case.measured else "predicted"
        click.echo(f"  {percent(case.share, 1):>7} ({percent(case.low)} to {percent(case.high)}, {how})  {case.label}")


def _interval(answer: Answer) -> str:
    return f"{percent(answer.low)} to {percent(answer.high)}"
