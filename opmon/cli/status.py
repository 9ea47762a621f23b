"""``opmon status``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmon.cli.common import ago, chosen, config_option, console, json_option, monitor_option, print_json, settings_of
from opmon.quantities import ACCURACY, named

if TYPE_CHECKING:
    from opmon.config import MonitorSettings
    from opmon.queries import RollingPoint, RoundView
    from opmon.store.engine import Store
    from opmon.types import Estimate


@click.command()
@config_option()
@monitor_option(multiple=True)
@click.option("-n", "--rounds", "shown", default=5, show_default=True, help="How many of the newest rounds to show.")
@json_option()
def status(path: Path | None, monitors: tuple[str, ...], shown: int, as_json: bool) -> None:
    """How accurate each model is, how sure that is, and what waits for whom."""
    from opmon.store.engine import open_store

    settings = settings_of(path)
    store = open_store(settings.database.get_secret_value())
    found = [_status(store, settings.monitor(name), shown) for name in chosen(settings, monitors)]
    if as_json:
        for entry in found:
            print_json(entry)
        return
    for entry in found:
        _show(entry)


def _status(store: Store, settings: MonitorSettings, shown: int) -> dict[str, Any]:
    from opmon.queries.monitors import monitor_view

    with store.read() as connection:
        view = monitor_view(connection, settings.watch, datetime.now(UTC), shown=shown)
    return {
        "monitor": view.name,
        "quantity": settings.quantity.title,
        "status": view.status,
        "rounds": view.rounds,
        "rules": [rule.name for rule in settings.rules],
        "tasks_open": view.queue.asked - view.queue.spoken,
        "labels_returned": view.queue.spoken,
        "latest": None if view.latest is None else _round(view.latest),
        "rolling": None if view.rolling is None else _rolling(view.rolling),
        "newest": [_round(round_) | _waits(round_) for round_ in view.newest],
    }


def _rolling(point: RollingPoint) -> dict[str, Any]:
    """The last rounds of the newest model version together."""
    estimate = point.estimate
    return {
        **_told(estimate),
        "rounds": list(point.rounds),
    }


def _told(estimate: Estimate | None) -> dict[str, Any]:
    """What is known of an estimate as plain values; ``accuracy`` once more by its name, where it is one."""
    if estimate is None:
        known = ("quantity", "unit", "value", "low", "high", "n", "provisional", "accuracy")
        return dict.fromkeys(known)
    return {
        "quantity": estimate.quantity.name,
        "unit": estimate.quantity.unit,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "provisional": estimate.provisional,
        "accuracy": estimate.value if estimate.quantity == ACCURACY else None,
    }


def _waits(round_: RoundView) -> dict[str, Any]:
    """What a round was asked and told, and what it waits for."""
    return {"asked": round_.queue.asked, "spoken": round_.queue.spoken, "waits_for": round_.waits_for}


def _state(row: dict[str, Any]) -> str:
    """The state as it is shown: with the answers that have come, and "labelled" where none is missing.

    >>> _state({"state": "labelling", "waits_for": "labels", "asked": 40, "spoken": 12})
    'labelling 12/40'
    """
    if row["waits_for"] == "inputs":
        return "gathering"
    if row["state"] != "labelling":
        return str(row["state"])
    return "labelled" if row["spoken"] >= row["asked"] else f"labelling {row['spoken']}/{row['asked']}"


def _round(round_: RoundView) -> dict[str, Any]:
    return {
        "round": round_.number,
        "state": round_.state,
        "model": round_.model,
        "ends_at": round_.ends_at,
        "received": round_.received,
        "inputs": round_.inputs,
        "unscorable": round_.unscorable,
        "duplicates": round_.duplicates,
        "skew": round_.skew,
        "drift_share": round_.drift_share,
        **_told(round_.estimate),
        "failures": round_.failures,
        "verdicts": [vars(verdict) for verdict in round_.verdicts],
        "run_id": round_.run_id,
        "problem": round_.problem,
    }


_WORDS = {"alarm": "red", "advice": "yellow", "unknown": "dim"}
_COLOURS = {"healthy": "green", "degraded": "red", "unknown": "yellow"}


def _show(entry: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    colour, latest = _COLOURS[entry["status"]], entry["latest"]
    head = Text.assemble((entry["monitor"], "bold"), "  ", (entry["status"], f"bold {colour}"))
    if latest is not None:
        head.append(f"  {latest['quantity']} {_interval(latest)} in round {latest['round']} ({ago(latest['ends_at'])})")
    out.print(head)
    rolling = entry["rolling"]
    if rolling is not None and len(rolling["rounds"]) > 1:
        window = f"the last {len(rolling['rounds'])} rounds of this version"
        out.print(f"  {rolling['quantity']} {_interval(rolling)} over {window}")
    out.print(f"  {entry['rounds']} rounds, {entry['tasks_open']} tasks wait for annotators", style="dim")
    if not entry["rules"]:
        out.print("  no rule watches it: whatever happens, nothing will be raised", style="yellow")
    for verdict in (latest or {}).get("verdicts", []):
        word = "advice" if verdict["advice"] else verdict["state"]
        out.print(Text(f"  {word}  {verdict['rule']}: {verdict['message']}", style=_WORDS.get(word, "")))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, justify in (("  round", "right"), ("state", "left"), ("model", "left"), ("inputs", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column(f"{entry['quantity']} [interval]")
    table.add_column("draws", justify="right")
    table.add_column("failures", justify="right")
    for row in entry["newest"]:
        table.add_row(
            str(row["round"]),
            _state(row),
            "v" + row["model"].rpartition("/")[2],
            f"{row['inputs'] if row['inputs'] is not None else row['received']:,}",
            _interval(row),
            "–" if row["n"] is None else str(row["n"]),
            "–" if row["failures"] is None else str(row["failures"]),
        )
    if entry["newest"]:
        out.print(table)
    if any(row["waits_for"] == "run" for row in entry["newest"]):
        out.print("  what does not wait for labels goes on with the next run: opmon run", style="dim")
    for row in entry["newest"]:
        if row["problem"]:
            out.print(Text(f"  round {row['round']}: {row['problem']}", style="yellow"))
    out.print()


def _interval(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return "–"
    mark = " provisional" if row["provisional"] else ""
    interval = named(row["quantity"], row["unit"]).interval(row["value"], row["low"], row["high"])
    return f"{interval}{mark}"
