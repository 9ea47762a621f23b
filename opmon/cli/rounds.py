"""``opmon rounds``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from opmon.cli._causes import cause_lines
from opmon.cli._drift import drift_lines
from opmon.cli._expected import expected_of_round
from opmon.cli._measures import measures_table
from opmon.cli.common import (
    config_option,
    console,
    json_option,
    monitor_option,
    one_monitor,
    print_json,
    settings_of,
)


@click.group()
def rounds() -> None:
    """Show a round, give it up, begin it anew, or have it labelled first; "opmon status" shows what holds rounds up."""


@rounds.command()
@config_option()
@monitor_option()
@click.argument("number", type=click.IntRange(min=1))
@json_option()
def show(path: Path | None, monitor: str | None, number: int, as_json: bool) -> None:
    """Show round NUMBER with all that was measured of it."""
    from rich.text import Text

    from opmon.queries.plain import plain
    from opmon.queries.rounds import round_view
    from opmon.store import rounds as kept
    from opmon.store.engine import open_store
    from opmon.store.measured import Measured

    settings = settings_of(path)
    watch = settings.monitor(one_monitor(settings, monitor)).watch
    with open_store(settings.database.get_secret_value()).read() as connection:
        round_ = kept.get(connection, watch.name, number)
        view = round_view(connection, watch, round_, datetime.now(UTC))
    if as_json:
        print_json(plain(view))
        return
    out, estimate = console(), view.estimate
    out.print(f"round {number} of {watch.name}, {view.state}, {view.inputs or view.received:,} inputs, {view.model}")
    if view.labels_pruned_at is not None:
        gone = f"  its labels were pruned on {view.labels_pruned_at:%Y-%m-%d}: its estimate stays, and changes no more"
        out.print(Text(gone, style="dim"))
    for line in expected_of_round(view):
        out.print(line)
    if estimate is None:
        out.print(Text(f"  no estimate yet{f': {view.problem}' if view.problem else ''}"))
        return
    main = Measured(estimate.quantity.name, estimate.quantity, estimate)
    out.print(measures_table([main, *view.measures], whole=True))
    for each in (main, *view.measures):
        for note in () if each.estimate is None else each.estimate.notes:
            out.print(Text(f"  {each.quantity.name}: {note}", style="dim"))
    for line in drift_lines(view.drift):
        out.print(line)
    for line in cause_lines(view.failure_groups, len(view.failure_groups), view.failure_words):
        out.print(line)


@rounds.command()
@config_option()
@monitor_option()
@click.argument("number", type=click.IntRange(min=1))
@click.option("--why", required=True, help="The reason, which is kept.")
def abandon(path: Path | None, monitor: str | None, number: int, why: str) -> None:
    """Give up round NUMBER for good, for example because its files or its model are gone, or nobody will label it.

    Its inputs stay read, its open tasks leave the queue, and it has no estimate. "opmon rounds reopen" gives its inputs
    to a new round.
    """
    from opmon.monitor import Monitor

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    Monitor.from_settings(settings, name).abandon(number, why)
    click.echo(f"round {number} of {name} is given up")


@rounds.command()
@config_option()
@monitor_option()
@click.argument("number", type=click.IntRange(min=1))
@click.option("--without", multiple=True, metavar="FILE", help="Not this file of the round; a name, path or glob.")
def reopen(path: Path | None, monitor: str | None, number: int, without: tuple[str, ...]) -> None:
    """Give the inputs of round NUMBER, which was given up, to a new round.

    It is read as the configuration says now, such as with other "types", or with "broken: skip". Files that cannot be
    read at all are left out with --without: their inputs stay with the old round.
    """
    from opmon.monitor import Monitor

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    found = Monitor.from_settings(settings, name).reopen(number, without)
    left = f"; left out: {', '.join(found.left_out)}" if found.left_out else ""
    click.echo(f"{found.received} inputs of round {number} of {name} are in round {found.number} now{left}")


@rounds.command()
@config_option()
@monitor_option()
@click.argument("number", type=click.IntRange(min=1))
@click.option("--no", "calm", is_flag=True, help="It is urgent no more.")
def urgent(path: Path | None, monitor: str | None, number: int, calm: bool) -> None:
    """Let annotators meet the tasks of round NUMBER before those of other rounds."""
    from opmon.store import rounds as kept
    from opmon.store.engine import open_store

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    with open_store(settings.database.get_secret_value()).write() as connection:
        round_ = kept.get(connection, name, number)
        kept.update(connection, round_.id, urgent=not calm)
    click.echo(f"round {number} of {name} is {'urgent no more' if calm else 'urgent: its tasks come first'}")
