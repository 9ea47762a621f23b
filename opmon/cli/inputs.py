"""``opmon inputs``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import (
    ago,
    chosen,
    config_option,
    console,
    json_option,
    monitor_option,
    one_monitor,
    print_json,
    settings_of,
)

if TYPE_CHECKING:
    from opmon.monitor import Monitor
    from opmon.stages.erasing_input import Forgotten


@click.group()
def inputs() -> None:
    """Parts of the log that were set aside (with "broken: quarantine"), and single inputs to be forgotten."""


@inputs.command("list")
@config_option()
@monitor_option()
@json_option()
def list_inputs(path: Path | None, monitor: str | None, as_json: bool) -> None:
    """List what is set aside, since when and why. A file that was repaired is read without a command."""
    from rich.text import Text

    from opmon.store import set_aside
    from opmon.store.engine import open_store

    settings = settings_of(path)
    names = list(settings.monitors) if monitor is None else [settings.monitor(monitor).name]
    with open_store(settings.database.get_secret_value()).read() as connection:
        aside = set_aside.of_monitors(connection, names)
    if as_json:
        for name in names:
            for each in aside.get(name, ()):
                print_json({"monitor": name, "part": each.part, "at": each.at.isoformat(), "why": each.why})
        return
    if not any(aside.values()):
        click.echo("nothing is set aside")
        return
    out = console()
    for name in names:
        for each in aside.get(name, ()):
            out.print(Text.assemble((each.part, "bold"), f"  {name}, {ago(each.at)}"))
            out.print(Text("  " + each.why))


@inputs.command()
@config_option()
@monitor_option()
@click.argument("part")
def retry(path: Path | None, monitor: str | None, part: str) -> None:
    """Try PART again in the next cycle, for example after access was granted or the configuration corrected."""
    from opmon.monitor import Monitor

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    Monitor.from_settings(settings, name).retry_inputs(part)
    click.echo(f"{part} of {name} is read again in the next cycle")


@inputs.command()
@config_option()
@monitor_option(multiple=True)
@click.option("--yes", is_flag=True, help="Do it; else it is only said where the input is.")
@json_option()
@click.argument("input_id", metavar="ID")
def forget(path: Path | None, monitors: tuple[str, ...], yes: bool, as_json: bool, input_id: str) -> int:
    """Remove what the input ID held wherever opmon put it: for whoever has the right to be forgotten.

    From the database, captured files, MLflow, the label provider, and the files of the endpoint and the recorder. Its
    id, prediction, variables, slices, labels and the estimates stay. It may be run again, and should be where something
    could not be reached, or another process was working on a monitor. Backups, exports and production's own log are
    yours to look through. Ends with 3 or 4 while something is left.
    """
    from opmon.cli import DONE, LATER
    from opmon.cli._each import for_each, told
    from opmon.ingest.holding import held_until_rows

    settings = settings_of(path)
    left = False

    def one(monitor: Monitor) -> None:
        nonlocal left
        found = monitor.erase_input(input_id, really=yes)
        found.unreached += held_until_rows(settings, monitor.settings.name, input_id)
        left = left or bool(found.found if not yes else found.unreached)
        _say(monitor.settings.name, input_id, found, yes, as_json)

    kept = for_each(settings, chosen(settings, monitors), one)
    if not yes and left and not as_json:
        click.echo("nothing was removed; opmon inputs forget --yes does it")
    return max(told(kept, "not reached", as_json), LATER if yes and left else DONE)


def _say(name: str, input_id: str, found: Forgotten, yes: bool, as_json: bool) -> None:
    """Where the input was, or is, and where it could not be removed."""
    if as_json:
        print_json(
            {
                "monitor": name,
                "erased": yes,
                "found": found.found,
                "unreached": found.unreached,
                "unknown": found.unknown,
            }
        )
        return
    verb = "removed from" if yes else "is in"
    for place in found.found:
        click.echo(f"{name}: {verb} {place}")
    for place in found.unreached:
        click.echo(f"{name}: not reached: {place}")
    if not found.found:
        click.echo(f"{name}: opmon holds nothing of the input {input_id!r}")
    if found.unknown:
        click.echo(f"{name}: {found.unknown}")


@inputs.command("give-up")
@config_option()
@monitor_option()
@click.argument("part")
def give_up(path: Path | None, monitor: str | None, part: str) -> None:
    """Give PART up: what it holds now is never read; what is written to it later is."""
    from opmon.monitor import Monitor

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    Monitor.from_settings(settings, name).give_up_inputs(part)
    click.echo(f"{part} of {name} is given up")
