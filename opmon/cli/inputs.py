"""``opmon inputs``."""

from __future__ import annotations

from pathlib import Path

import click

from opmon.cli.common import (
    ago,
    config_option,
    console,
    json_option,
    monitor_option,
    one_monitor,
    print_json,
    settings_of,
)


@click.group()
def inputs() -> None:
    """Parts of the log that cannot be read, which a source with "broken: quarantine" sets aside."""


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
@monitor_option()
@click.argument("part")
def forget(path: Path | None, monitor: str | None, part: str) -> None:
    """Give PART up: what it holds now is never read; what is written to it later is."""
    from opmon.monitor import Monitor

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    Monitor.from_settings(settings, name).forget_inputs(part)
    click.echo(f"{part} of {name} is given up")
