"""``opmon events``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import ago, config_option, console, json_option, monitor_option, print_json, settings_of
from opmon.wording import counted

if TYPE_CHECKING:
    from opmon.queries.events import DeliveryView


@click.group()
def events() -> None:
    """What rules raised, and whether every action has taken it."""


@events.command("list")
@config_option()
@monitor_option()
@click.option("-n", "--number", default=20, show_default=True, help="How many of the newest.")
@click.option("--open", "only_open", is_flag=True, help="Only those that nobody has acknowledged.")
@json_option()
def list_events(path: Path | None, monitor: str | None, number: int, only_open: bool, as_json: bool) -> None:
    """The newest events."""
    from opmon.queries.events import newest_events
    from opmon.queries.plain import plain
    from opmon.store.engine import open_store

    settings = settings_of(path)
    store = open_store(settings.database.get_secret_value())
    if monitor is not None:
        settings.monitor(monitor)
    with store.read() as connection:
        found = newest_events(connection, monitor, number, only_open=only_open)
    if as_json:
        for event in found:
            print_json(plain(event))
        return
    if not found:
        click.echo("no events that nobody has acknowledged" if only_open else "no events: no rule has raised one yet")
        return
    from rich.text import Text

    out = console()
    for event in found:
        kind = (event.type.removeprefix("opmon."), _STYLES.get(event.type, "bold"))
        round_ = "" if event.round is None else f", round {event.round}"
        where = f"  {event.monitor}{round_}, {ago(event.created_at)}  "
        out.print(Text.assemble(kind, where, (event.id, "dim")))
        out.print(Text("  " + event.message))
        if event.acknowledged_at is not None:
            note = f": {event.note}" if event.note else ""
            taken = f"  acknowledged by {event.acknowledged_by} {ago(event.acknowledged_at)}{note}"
            out.print(Text(taken, style="dim"))
        for delivery in event.deliveries:
            out.print(Text("  " + _delivery(delivery), style="yellow" if delivery.state != "delivered" else ""))


_STYLES = {
    "opmon.alarm": "bold red",
    "opmon.recovered": "bold green",
    "opmon.changed": "bold yellow",
    "opmon.advice": "bold yellow",
    "opmon.silent": "bold red",
    "opmon.heard": "bold green",
}


def _delivery(delivery: DeliveryView) -> str:
    tries = f", attempt {delivery.attempts}" if delivery.attempts > 1 else ""
    why = f": {delivery.problem}" if delivery.problem else ""
    if delivery.state == "pending" and delivery.next_at > datetime.now(UTC):
        why += f", next try at {delivery.next_at:%Y-%m-%d %H:%M} UTC"
    return f"{delivery.action} {delivery.state}{tries}{why}"


@events.command()
@config_option()
@click.argument("event")
def show(path: Path | None, event: str) -> None:
    """Everything about one event, as JSON."""
    from opmon.queries import events as queries
    from opmon.queries.plain import plain
    from opmon.store.engine import open_store

    store = open_store(settings_of(path).database.get_secret_value())
    with store.read() as connection:
        print_json(plain(queries.event(connection, event)))


@events.command()
@config_option()
@click.argument("event")
def replay(path: Path | None, event: str) -> None:
    """Send an event again to every action that has not taken it; the next "opmon run" does it."""
    from opmon.store import audit, outbox
    from opmon.store.engine import open_store

    store, now = open_store(settings_of(path).database.get_secret_value()), datetime.now(UTC)
    with store.write() as connection:
        count = outbox.replay(connection, event, now)
        if count:
            audit.note(connection, audit.of_command(now, audit.Act.REPLAYED, event))
    click.echo(
        f"{counted(count, 'delivery', 'deliveries')} of {event} will be tried by the next 'opmon run' or 'opmon serve'"
        if count
        else f"every action has taken {event} already; nothing to send"
    )


@events.command()
@config_option()
@click.argument("event")
@click.option("--by", default=None, help="Who takes it on [default: you].")
@click.option("--note", default=None, help="What is done about it.")
def ack(path: Path | None, event: str, by: str | None, note: str | None) -> None:
    """Note that somebody deals with an event; it is then gone from "opmon events list --open"."""
    from opmon.store import audit, outbox
    from opmon.store.engine import open_store

    store, now = open_store(settings_of(path).database.get_secret_value()), datetime.now(UTC)
    with store.write() as connection:
        new = outbox.acknowledge(connection, event, (by or audit.this_user())[:200], note, now)
        if new:
            about = f"{event}, for {by}" if by else event
            audit.note(connection, audit.of_command(now, audit.Act.ACKNOWLEDGED, about))
    click.echo(f"{event} is acknowledged" if new else f"{event} was acknowledged before; nothing was changed")
