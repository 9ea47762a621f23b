"""``opmon labels gold``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, console, json_option, monitor_option, one_monitor, print_json, settings_of
from opmon.wording import counted

if TYPE_CHECKING:
    from opmon.adjudication import Asked
    from opmon.config import MonitorSettings, Settings
    from opmon.labels.gold import Gold


@click.group()
def gold() -> None:
    """Inputs of known truth that are slipped in among the tasks, to measure annotators by."""


@gold.command("list")
@config_option()
@monitor_option()
@json_option()
def list_gold(path: Path | None, monitor: str | None, as_json: bool) -> None:
    """List the inputs of the gold file, how often each was asked, and what annotators made of it."""
    from rich.table import Table
    from rich.text import Text

    from opmon.store import checked
    from opmon.store.engine import open_store

    settings = settings_of(path)
    watched = _watched(settings, monitor)
    found = _read(settings, watched, None)
    with open_store(settings.database.get_secret_value()).read() as connection:
        times, tasks = checked.gold_asked(connection, watched.name), checked.gold_said(connection, watched.name, None)
    if as_json:
        for each in found:
            said = _said(each, tasks)
            print_json({"input_id": each.input_id, "truth": each.truth, "asked": times.get(each.input_id, 0)} | said)
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, justify in (("input", "left"), ("truth", "left"), ("asked", "right"), ("right", "right"),
                             ("wrong", "right"), ("skipped", "right")):  # fmt: skip
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for each in found:
        counts = (str(times.get(each.input_id, 0)), *map(str, _said(each, tasks).values()))
        table.add_row(Text(each.input_id), Text(each.truth), *counts)
    console().print(table)


@gold.command()
@config_option()
@monitor_option()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def add(path: Path | None, monitor: str | None, file: Path) -> None:
    """Add the inputs of FILE, with their truth, to the gold file, all or none; what is there stays as it is."""
    from opmon.errors import InputError
    from opmon.labels.gold import append

    settings = settings_of(path)
    watched = _watched(settings, monitor)
    assert watched.labels.gold is not None
    target = watched.labels.gold.file
    if target.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InputError(f"{target}: inputs can be added to a .jsonl file only; add the rows of {file} to it yourself")
    there = {each.input_id: each for each in _read(settings, watched, None)} if target.exists() else {}
    new = _read(settings, watched, file)
    other = next((each for each in new if each.input_id in there and there[each.input_id].truth != each.truth), None)
    if other is not None:
        raise InputError(
            f"{file}: line {other.line} says that input {other.input_id!r} is {other.truth!r}, and {target} that it is "
            f"{there[other.input_id].truth!r}; nothing was added"
        )
    added = [each for each in new if each.input_id not in there]
    append(target, added)
    click.echo(f"{counted(len(added), 'input')} added to {target}, {len(new) - len(added):,} there already")


def _watched(settings: Settings, monitor: str | None) -> MonitorSettings:
    from opmon.errors import InputError

    watched = settings.monitor(one_monitor(settings, monitor))
    if watched.labels.gold is None:
        raise InputError(f"monitor {watched.name!r} has no gold file: write labels: {{gold: {{file: gold.jsonl}}}}")
    return watched


def _read(settings: Settings, watched: MonitorSettings, file: Path | None) -> tuple[Gold, ...]:
    """The monitor's gold file, or another as one of it; classes are those of its newest round, where it had one."""
    from opmon.stages.asking import gold_of
    from opmon.store import rounds
    from opmon.store.engine import open_store

    with open_store(settings.database.get_secret_value()).read() as connection:
        newest = rounds.newest(connection, watched.name, 5)
    return gold_of(watched, next((round_.classes for round_ in newest if round_.classes), None), file)


def _said(each: Gold, tasks: list[Asked]) -> dict[str, int]:
    """The last word of every annotator on every task of this input, counted."""
    own = [task for task in tasks if task.input_id == each.input_id]
    right = sum(answer == task.gold for task in own for answer in task.answered.values())
    answered, spoken = sum(len(task.answered) for task in own), sum(len(task.annotators) for task in own)
    return {"right": right, "wrong": answered - right, "skipped": spoken - answered}
