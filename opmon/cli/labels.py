"""``opmon labels``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli._team import show_team
from opmon.cli.common import (
    as_a_file,
    chosen,
    config_option,
    console,
    json_option,
    monitor_option,
    print_json,
    settings_of,
)
from opmon.cli.gold import gold
from opmon.wording import counted

if TYPE_CHECKING:
    from opmon.config import Settings
    from opmon.labels.files import Format
    from opmon.store.engine import Store
    from opmon.types import Json, Task

_TOLD = 10
_MOST_EXPORTED = 100_000
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
@click.option("--annotator", help="Only what this annotator may speak of; nobody else is given it for a while.")
@click.option("--for", "lease", default="1d", show_default=True, help="How long that is, such as 8h or 3d.")
@FORMAT
def export_tasks(
    path: Path | None,
    monitor: str | None,
    output: Path | None,
    number: int | None,
    annotator: str | None,
    lease: str,
    kind: Format | None,
) -> None:
    """Write the open tasks; fill in "label" (or "skip") and hand the file to "opmon labels import"."""
    from opmon.labels.files import write_tasks
    from opmon.store import queue
    from opmon.store.engine import open_store

    settings = settings_of(path)
    if monitor is not None:
        settings.monitor(monitor)
    store = open_store(settings.database.get_secret_value())
    if annotator is not None:
        tasks = _assigned(settings, store, annotator, [monitor] if monitor else list(settings.monitors), number, lease)
    else:
        with store.read() as connection:
            tasks = queue.open_tasks(connection, monitor, number, at=datetime.now(UTC))
    with store.read() as connection:
        tasks = queue.with_bytes(connection, tasks)
    guides = {name: settings.monitors[name].guide for name in {task.monitor for task in tasks} & set(settings.monitors)}
    written = write_tasks(tasks, output if output is not None else as_a_file(), kind, guides)
    click.echo(f"{written} open tasks{f' written to {output}' if output else ''}", err=True)


def _assigned(
    settings: Settings, store: Store, annotator: str, monitors: Sequence[str], number: int | None, lease: str
) -> list[Task]:
    """The tasks that an annotator may speak of, theirs for so long."""
    from dataclasses import replace

    from opmon.durations import duration
    from opmon.labels.queue import LabelQueue

    try:
        until = duration(lease)
    except ValueError as exc:
        raise click.BadParameter(str(exc), param_hint="--for") from exc
    terms = {name: replace(settings.queue_terms[name], lease=until) for name in monitors}
    queue = LabelQueue(store, terms)
    tasks: list[Task] = []
    for name in monitors:
        left = _MOST_EXPORTED if number is None else number - len(tasks)
        if left:
            tasks += queue.take(annotator, name, left, most=_MOST_EXPORTED).tasks
    return tasks


@labels.command("import")
@config_option()
@monitor_option()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option("--annotator", default="import", show_default=True, help="Who, where a row does not say.")
@click.option("--only-asked", is_flag=True, help="Leave out what was not asked: for a table of all truths.")
@click.option("--partial", is_flag=True, help="Take what can be taken, and write the other rows to FILE.refused.csv.")
@FORMAT
@json_option()
def import_labels(
    path: Path | None,
    monitor: str | None,
    file: Path,
    annotator: str,
    only_asked: bool,
    partial: bool,
    kind: Format | None,
    as_json: bool,
) -> None:
    """Take the labels of FILE (or of stdin: -), all or none; importing the same file twice changes nothing."""
    from opmon.labels.files import read_labels
    from opmon.labels.importing import import_file, write_refused
    from opmon.store.engine import open_store

    settings = settings_of(path)
    if monitor is not None:
        settings.monitor(monitor)
    source = sys.stdin if str(file) == "-" else file
    if kind is None and source is sys.stdin:
        kind = "jsonl"
    read = read_labels(source, kind, annotator=annotator, monitor=monitor, partial=partial)
    store, name = open_store(settings.database.get_secret_value()), "stdin" if source is sys.stdin else str(file)
    found = import_file(store, read, name, datetime.now(UTC), only_asked=only_asked, partial=partial)
    beside = Path("stdin.refused.csv") if source is sys.stdin else file.with_name(f"{file.name}.refused.csv")
    if found.refused:
        write_refused(beside, found.refused)
    if as_json:
        counts: dict[str, Json] = {"new": found.new, "unchanged": found.unchanged, "unanswered": found.unanswered}
        counts |= {"not_asked": found.not_asked} if only_asked else {}
        refused: list[Json] = [{"line": each.line, "why": each.why} for each in found.refused]
        print_json(counts | ({"refused": refused} if partial else {}))
    else:
        more = f", {found.not_asked:,} inputs that no label was asked of" if only_asked else ""
        told = (
            f"{counted(found.new, 'label')} recorded, {found.unchanged:,} known already, "
            f"{counted(found.unanswered, 'row')} without an answer"
        )
        click.echo(told + more)
    for each in found.refused[:_TOLD]:
        click.echo(f"  line {each.line} {each.why}", err=True)
    if found.refused:
        click.echo(f"{counted(len(found.refused), 'row')} refused; all of them are in {beside}", err=True)


@labels.command("annotators")
@config_option()
@click.argument("monitor", required=False)
@click.option("--rounds", "count", type=click.IntRange(min=1), default=20, show_default=True, help="The newest rounds.")
@json_option()
def annotators(path: Path | None, monitor: str | None, count: int, as_json: bool) -> None:
    """Show who answered what, how far annotators agree, how often each errs, and who needs a word."""
    from opmon.queries.annotators import team_view
    from opmon.queries.plain import plain
    from opmon.store.engine import open_store

    settings = settings_of(path)
    names = chosen(settings, () if monitor is None else (monitor,))
    store = open_store(settings.database.get_secret_value())
    with store.read() as connection:
        teams = [team_view(connection, name, count) for name in names]
    for team in teams:
        if as_json:
            print_json(plain(team))
        else:
            show_team(console(), team)


labels.add_command(gold)
