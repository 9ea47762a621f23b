"""``opmon status``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli._causes import cause_lines
from opmon.cli._drift import drift_lines
from opmon.cli._expected import expected_lines
from opmon.cli._measures import measures_table
from opmon.cli._slices import rolling_lines, slice_lines
from opmon.cli.common import ago, chosen, config_option, console, json_option, monitor_option, print_json, settings_of
from opmon.wording import counted, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from opmon.queries import MonitorView, RoundView
    from opmon.store.corrections import Corrected
    from opmon.store.truths import Read
    from opmon.types import Estimate

MANY = 10
"""So many monitors, each with its rounds, fill more than a screen: more have a line each."""
_ROUNDS = 5
_HELP = f"How many of the newest rounds to show: {_ROUNDS}; of more than {MANY} monitors a line each."


@click.command()
@config_option()
@monitor_option(multiple=True)
@click.option("-n", "--rounds", "shown", type=click.IntRange(min=0), help=_HELP)
@json_option()
def status(path: Path | None, monitors: tuple[str, ...], shown: int | None, as_json: bool) -> None:
    """Show how accurate each model is, how sure that is, and what waits for whom."""
    from opmon.queries.monitors import monitor_views, with_drift
    from opmon.queries.plain import plain
    from opmon.store.engine import open_store

    settings = settings_of(path)
    store = open_store(settings.database.get_secret_value())
    watches = [settings.monitor(name).watch for name in chosen(settings, monitors)]
    brief = shown is None and len(watches) > MANY
    rounds = (1 if brief else _ROUNDS) if shown is None else shown
    with store.read() as connection:
        views = monitor_views(connection, watches, datetime.now(UTC), shown=rounds)
        views = views if brief else [with_drift(connection, view) for view in views]
    if as_json:
        for view in views:
            print_json(plain(view))
    elif brief:
        console().print(_overview(views))
    else:
        out = console()
        for view in views:
            _show(out, view)


_WORDS = {"alarm": "red", "advice": "yellow", "unknown": "dim"}
_COLOURS = {"healthy": "green", "degraded": "red", "unknown": "yellow", "unwatched": "yellow"}


def _overview(views: Sequence[MonitorView]) -> Table:
    """One line for each monitor."""
    from rich.text import Text

    table = _table(("monitor", "left"), ("status", "left"), ("estimate", "left"), ("round", "right"),
                   ("tasks", "right"), ("last success", "left"), ("what needs a person", "left"))  # fmt: skip
    for view in views:
        table.add_row(
            Text(view.name, style="bold"),
            Text(view.status, style=_COLOURS[view.status]),
            _interval(None if view.latest is None else view.latest.estimate),
            str(view.rounds),
            str(view.queue.open),
            ago(view.last_success_at),
            Text(_first_need(view), style="yellow", overflow="ellipsis", no_wrap=True),
        )
    return table


def _first_need(view: MonitorView) -> str:
    others = len(view.needs) - 1
    return "" if others < 0 else view.needs[0].message + (f" (and {others} more)" if others else "")


def _show(out: Console, view: MonitorView) -> None:
    from rich.text import Text

    out.print(_head(view))
    for note in () if view.latest is None or view.latest.estimate is None else view.latest.estimate.notes:
        out.print(Text(f"  {note}", style="dim"))
    for line in () if view.latest is None else slice_lines(view.latest):
        out.print(line)
    rolling = view.rolling
    if rolling is not None and len(rolling.rounds) > 1:
        window = f"the last {len(rolling.rounds)} rounds of this version"
        out.print(Text(f"  {rolling.estimate.quantity.name} {_interval(rolling.estimate)} over {window}"))
        for line in rolling_lines(rolling):
            out.print(line)
    for line in expected_lines(view):
        out.print(line)
    if view.latest is not None and view.latest.measures:
        together = () if rolling is None else rolling.measures
        numbers = 0 if rolling is None else len(rolling.rounds)
        out.print(measures_table(view.latest.measures, together=together, rounds=numbers))
    told = f"  {counted(view.rounds, 'round')}, {counted(view.queue.spoken, 'label')}, "
    told += f"{counted(view.queue.open, 'task')} {'waits' if view.queue.open == 1 else 'wait'} for annotators"
    told += f", {view.queue.further:,} of them for a further opinion" if view.queue.further else ""
    out.print(told, style="dim")
    if view.truth is not None:
        out.print(_truth(view.truth), style="dim")
    if not view.rules:
        out.print("  no rule watches it: whatever happens, nothing will be raised", style="yellow")
    for verdict in () if view.latest is None else view.latest.verdicts:
        word = "advice" if verdict.advice else verdict.state
        out.print(Text(f"  {word}  {verdict.rule}: {verdict.message}", style=_WORDS.get(word, "")))
    for line in () if view.latest is None else drift_lines(view.latest.drift):
        out.print(line)
    if view.latest is not None:
        for line in cause_lines(view.latest.failure_groups, words=view.latest.failure_words):
            out.print(line)
    if view.newest:
        out.print(_rounds(view))
    for row in view.newest[:1]:
        if row.state == "closed" and row.estimate is None and row.problem:
            out.print(Text(f"  round {row.number} has no estimate: {row.problem}", style="yellow"))
    for row in view.newest:
        left = _left_out(row)
        if left:
            out.print(f"  round {row.number}, {left}", style="dim")
        if row.corrected is not None and row.estimate is not None:
            out.print(Text(f"  round {row.number}, {_corrected(row.corrected, row.estimate)}"), style="dim")
    if any(round_.waits_for == "run" for round_ in view.newest):
        out.print("  what does not wait for labels goes on with the next run: opmon run", style="dim")
    for need in view.needs:
        if need.kind != "labels":
            where = f"round {need.round}: " if need.kind == "round" else ""
            out.print(Text(f"  {where}{need.message}", style="yellow"))
    out.print()


def _truth(read: Read) -> str:
    """What was read of truth that arrives by itself."""
    until = "" if read.known_until is None else f", known until {read.known_until:%Y-%m-%d %H:%M} UTC"
    refused = f"; {read.left_out}" if read.left_out else ""
    return f"  {counted(read.taken, 'truth')} arrived by themselves{until}{refused}"


def _head(view: MonitorView) -> Text:
    from rich.text import Text

    head = Text.assemble((view.name, "bold"), "  ", (view.status, f"bold {_COLOURS[view.status]}"))
    if view.latest is not None and view.latest.estimate is not None:
        estimate = view.latest.estimate
        where = f"in round {view.latest.number} ({ago(view.latest.ends_at)})"
        head.append(f"  {estimate.quantity.name} {_interval(estimate)} {where}")
    return head


def _rounds(view: MonitorView) -> Table:
    fails = not all(row.failure_words.picked for row in view.newest)
    table = _table(("  round", "right"), ("state", "left"), ("model", "left"), ("inputs", "right"),
                   (f"{view.quantity} [interval]", "left"), ("draws", "right"),
                   *([("failures", "right")] if fails else []))  # fmt: skip
    for row in view.newest:
        found = "–" if row.failures is None else str(row.failures)
        table.add_row(
            str(row.number),
            _state(row),
            "v" + row.model.rpartition("/")[2],
            f"{row.inputs if row.inputs is not None else row.received:,}",
            _interval(row.estimate),
            "–" if row.estimate is None else str(row.estimate.n),
            *([found] if fails else []),
        )
    return table


def _corrected(found: Corrected, plain: Estimate) -> str:
    """The estimate corrected for annotators who err, or why there is none, and how far they agree."""
    if found.interval is None:
        said = found.why
    else:
        said = plain.quantity.interval(*found.interval) if found.moves(plain) else "the same"
    agree = "" if found.agreement is None else f"; {percent(found.agreement, 0)} of pairs of answers agree"
    return f"corrected for annotators who err: {said}{agree}"


_LEFT_OUT = {"filtered": "filtered", "thinned": "thinned", "unlogged": "never logged or read"}


def _left_out(row: RoundView) -> str:
    """What is left out of a round, and what came late, in words; empty where nothing is."""
    counts = {kind: sum(reasons.values()) for kind, reasons in row.losses.items()}
    found = {"unscorable": row.unscorable, "logged twice": row.duplicates}
    found |= {name: counts.get(kind) for kind, name in _LEFT_OUT.items()}
    words = ", ".join(f"{count:,} {name}" for name, count in found.items() if count)
    late = f"{counts['late']:,} of its inputs came late" if counts.get("late") else ""
    return "; ".join(filter(None, (words and f"left out: {words}", late)))


def _table(*columns: tuple[str, str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, justify in columns:
        table.add_column(Text(heading), justify=justify)  # type: ignore[arg-type]
    return table


def _state(row: RoundView) -> str:
    """The state as shown: with the number of answers so far, and "labelled" if none is missing."""
    if row.waits_for == "inputs":
        return "gathering"
    if row.state != "labelling":
        return str(row.state)
    if row.waits_for == "truth":
        return f"awaits truth {row.spoken}/{row.asked}"
    return "labelled" if row.spoken >= row.asked else f"labelling {row.spoken}/{row.asked}"


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    mark = " provisional" if estimate.provisional else " census" if estimate.method == "census" else ""
    return f"{estimate.quantity.interval(estimate.value, estimate.low, estimate.high)}{mark}"
