"""``opmon events``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from opmon.cli.common import ago, config_option, console, json_option, monitor_option, print_json, settings_of


@click.group()
def events() -> None:
    """What rules raised, and whether every action has taken it."""


@events.command("list")
@config_option()
@monitor_option()
@click.option("-n", "--number", default=20, show_default=True, help="How many of the newest.")
@json_option()
def list_events(path: Path | None, monitor: str | None, number: int, as_json: bool) -> None:
    """The newest events."""
    from opmon.store.engine import open_store
    from opmon.triggers import outbox

    settings = settings_of(path)
    store = open_store(settings.database.get_secret_value())
    if monitor is not None:
        settings.monitor(monitor)
    with store.read() as connection:
        found = outbox.listing(connection, monitor, number)
    if as_json:
        for event in found:
            print_json(event)
        return
    if not found:
        click.echo("no events: no rule has raised an alarm yet")
        return
    from rich.text import Text

    out = console()
    for event in found:
        alarm = event["type"] == "opmon.alarm"
        kind = (event["type"].removeprefix("opmon."), "bold red" if alarm else "bold green")
        where = f"  {event['monitor']}, round {event['body']['round']}, {ago(event['created_at'])}  "
        out.print(Text.assemble(kind, where, (event["id"], "dim")))
        out.print(Text("  " + event["body"]["message"]))
        for delivery in event["deliveries"]:
            out.print(Text("  " + _delivery(delivery), style="yellow" if delivery["state"] != "delivered" else ""))


def _delivery(delivery: dict[str, Any]) -> str:
    tries = f", attempt {delivery['attempts']}" if delivery["attempts"] > 1 else ""
    why = f": {delivery['problem']}" if delivery["problem"] else ""
    return f"{delivery['action']} {delivery['state']}{tries}{why}"


@events.command()
@config_option()
@click.argument("event")
def show(path: Path | None, event: str) -> None:
    """Everything about one event, as JSON."""
    from opmon.store.engine import open_store
    from opmon.triggers import outbox

    store = open_store(settings_of(path).database.get_secret_value())
    with store.read() as connection:
        print_json(outbox.get(connection, event))


@events.command()
@config_option()
@click.argument("event")
def replay(path: Path | None, event: str) -> None:
    """Send an event again to every action that has not taken it; the next «opmon run» does it."""
    from opmon.store.engine import open_store
    from opmon.triggers import outbox

    store = open_store(settings_of(path).database.get_secret_value())
    with store.write() as connection:
        count = outbox.replay(connection, event, datetime.now(UTC))
    click.echo(
        f"{count} deliveries of {event} will be tried by the next «opmon run» or by «opmon serve»"
        if count
        else f"every action has taken {event} already; nothing to send"
    )
