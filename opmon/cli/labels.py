"""``opmon labels``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, json_option, monitor_option, print_json, settings_of

if TYPE_CHECKING:
    from opmon.labels.files import Format
    from opmon.labels.rows import ImportedLabel
    from opmon.store.engine import Connection
    from opmon.types import Label

_TOLD = 10
FORMAT = click.option(
    "--format", "kind", type=click.Choice(["jsonl", "csv", "label-studio"]), help="If the file's name does not say."
)


@click.group()
def labels() -> None:
    """Hand tasks to annotators and take their labels back, as JSONL, CSV or Label Studio's files."""


@labels.command("export")
@config_option()
@monitor_option()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A .jsonl, .csv or (Label Studio) .json file [stdout].",
)
@click.option("-n", "--number", type=click.IntRange(min=1), help="At most so many tasks.")
@FORMAT
def export_tasks(
    path: Path | None, monitor: str | None, output: Path | None, number: int | None, kind: Format | None
) -> None:
    """Write the open tasks; fill in "label" (or "skip") and hand the file to "opmon labels import"."""
    from opmon.labels.files import write_tasks
    from opmon.store import queue
    from opmon.store.engine import open_store

    settings = settings_of(path)
    if monitor is not None:
        settings.monitor(monitor)
    store = open_store(settings.database.get_secret_value())
    with store.read() as connection:
        tasks = queue.with_bytes(connection, queue.open_tasks(connection, monitor, number, at=datetime.now(UTC)))
    guides = {name: settings.monitors[name].guide for name in {task.monitor for task in tasks} & set(settings.monitors)}
    written = write_tasks(tasks, output if output is not None else sys.stdout, kind, guides)
    click.echo(f"{written} open tasks{f' written to {output}' if output else ''}", err=True)


@labels.command("import")
@config_option()
@monitor_option()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option("--annotator", default="import", show_default=True, help="Who, where a row does not say.")
@click.option("--only-asked", is_flag=True, help="Leave out what was not asked: for a table of all truths.")
@FORMAT
@json_option()
def import_labels(
    path: Path | None,
    monitor: str | None,
    file: Path,
    annotator: str,
    only_asked: bool,
    kind: Format | None,
    as_json: bool,
) -> None:
    """Take the labels of FILE (or of stdin: -), all or none; importing the same file twice changes nothing."""
    from opmon.labels.files import read_labels
    from opmon.store import queue
    from opmon.store.engine import open_store

    settings = settings_of(path)
    if monitor is not None:
        settings.monitor(monitor)
    source = sys.stdin if str(file) == "-" else file
    if kind is None and source is sys.stdin:
        kind = "jsonl"
    found = read_labels(source, kind, annotator=annotator, monitor=monitor)
    store, now = open_store(settings.database.get_secret_value()), datetime.now(UTC)
    with store.write() as connection:
        given = _labels(connection, found.labels, now, only_asked)
        recorded = queue.record(connection, given, now)
    not_asked = len(found.labels) - len(given)
    if as_json:
        counts = {"new": recorded.new, "unchanged": recorded.unchanged, "unanswered": found.unanswered}
        print_json(counts | ({"not_asked": not_asked} if only_asked else {}))
        return
    more = f", {not_asked:,} inputs that no label was asked of" if only_asked else ""
    click.echo(
        f"{recorded.new} labels recorded, {recorded.unchanged} known already, {found.unanswered} rows without an "
        f"answer{more}"
    )


def _labels(connection: Connection, imported: Sequence[ImportedLabel], now: datetime, only_asked: bool) -> list[Label]:
    """The labels with the numbers of their tasks; an error if a line names no task of this database."""
    from opmon.errors import InputError
    from opmon.store.matching import match
    from opmon.types import Label

    matched = match(connection, imported, only_asked=only_asked)
    if matched.problems:
        told = "".join(f"\n  {problem}" for problem in matched.problems[:_TOLD])
        more = f"\n  … and {len(matched.problems) - _TOLD:,} more" if len(matched.problems) > _TOLD else ""
        raise InputError(f"no label was recorded, because of {len(matched.problems):,} lines:{told}{more}")
    pairs = zip(imported, matched.task_ids, strict=True)
    return [Label(task, line.annotator, line.truth, line.at or now) for line, task in pairs if task is not None]
