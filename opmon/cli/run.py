"""``opmon run``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from opmon.cli import DONE, HELD, LATER
from opmon.cli.common import chosen, config_option, console, json_option, monitor_option, print_json, settings_of
from opmon.errors import LeaseHeld, OpmonError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from opmon.abc import Registry
    from opmon.config import Settings
    from opmon.stages.toolbox import Progress


class Result(TypedDict):
    """The result of a run of one monitor; no counts if it could not begin."""

    monitor: str
    problems: list[str]
    exit_code: int
    opened: NotRequired[int]
    closed: NotRequired[int]
    waiting: NotRequired[int]
    delivered: NotRequired[int]
    undelivered: NotRequired[int]


@click.command()
@config_option()
@monitor_option(multiple=True)
@json_option()
def run(path: Path | None, monitors: tuple[str, ...], as_json: bool) -> int:
    """Move every monitor as far as it can go, once: for cron, or by hand.

    Safe at any time, even after a kill: what was begun is finished, and nothing is done twice.
    """
    from opmon import disk
    from opmon.config.registry import registry_of

    settings = settings_of(path)
    disk.require_writes(settings.state)
    registry = registry_of(settings)
    results, faults = [], []
    with _progress(quiet=as_json) as progress:
        for name in chosen(settings, monitors):
            try:
                results.append(_run_one(settings, registry, name, progress))
            except Exception as exc:  # noqa: BLE001 - raised below: the other monitors come first
                faults.append(exc)
    if as_json:
        for result in results:
            print_json(result)
    else:
        _show(results)
    if faults:
        raise faults[0]
    return max((result["exit_code"] for result in results), default=DONE)


def _run_one(settings: Settings, registry: Registry, name: str, progress: Progress) -> Result:
    """The result of a run of one monitor, with the reason if nothing was done."""
    from opmon.monitor import Monitor

    try:
        cycle = Monitor.from_settings(settings, name, registry=registry, progress=progress).advance()
    except LeaseHeld as exc:
        return {"monitor": name, "problems": [str(exc)], "exit_code": HELD}
    except OpmonError as exc:
        return {"monitor": name, "problems": [str(exc)], "exit_code": LATER}
    return {
        "monitor": name,
        "opened": cycle.opened,
        "closed": cycle.closed,
        "waiting": cycle.waiting,
        "delivered": cycle.delivered,
        "undelivered": cycle.undelivered,
        "problems": [str(problem) for problem in cycle.problems],
        "exit_code": LATER if cycle.problems or cycle.undelivered else DONE,
    }


def _show(results: list[Result]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("monitor", "opened", "closed", "wait for labels", "events sent", "events kept"):
        table.add_column(heading, justify="left" if heading == "monitor" else "right")
    for result in results:
        numbers = (result.get(key, "–") for key in ("opened", "closed", "waiting", "delivered", "undelivered"))
        table.add_row(result["monitor"], *(str(number) for number in numbers))
    console().print(table)
    for result in results:
        for problem in result["problems"]:
            click.echo(f"{result['monitor']}: {problem}", err=True)


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress]:
    """A progress bar on a terminal; nothing elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from opmon.stages.toolbox import silent

    terminal = console(stderr=True)
    if quiet or not terminal.is_terminal:
        yield silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield tell
