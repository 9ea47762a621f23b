"""``opmon rounds``."""

from __future__ import annotations

from pathlib import Path

import click

from opmon.cli.common import config_option, monitor_option, one_monitor, settings_of


@click.group()
def rounds() -> None:
    """Give up a round that cannot go on; «opmon status» shows the rounds and what holds them up."""


@rounds.command()
@config_option()
@monitor_option()
@click.argument("number", type=click.IntRange(min=1))
@click.option("--why", required=True, help="The reason, which is kept.")
def abandon(path: Path | None, monitor: str | None, number: int, why: str) -> None:
    """Never work on round NUMBER again: its files are gone, its model was deleted, nobody will label it.

    Its inputs stay read, its open tasks leave the queue, and it has no estimate. There is no way back.
    """
    from opmon.monitor import Monitor

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    Monitor.from_settings(settings, name).abandon(number, why)
    click.echo(f"round {number} of {name} is given up")
