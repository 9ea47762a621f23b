"""``opmon audit``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, console, json_option, print_json, settings_of
from opmon.durations import duration

if TYPE_CHECKING:
    from opmon.store.audit import Entry


@click.command()
@config_option()
@click.option(
    "--since", default="30d", show_default=True, help="A moment such as 2026-11-01, or how long ago: 12h, 7d."
)
@click.option("--who", default=None, help="Only what this person did.")
@click.option("--act", default=None, help='Only what is called so, such as "refused" or "signed in".')
@click.option("-n", "--number", type=click.IntRange(1), default=None, help="How many of the newest [all].")
@json_option()
def audit(path: Path | None, since: str, who: str | None, act: str | None, number: int | None, as_json: bool) -> None:
    """Who did what, when and from where, newest first.

    It has sign-ins, refusals, changed answers, events that were acknowledged or sent again, tokens that were made or
    taken away. It is kept for "web: keep_audit".
    """
    from opmon.store import audit as table
    from opmon.store.engine import open_store

    begin = _moment(since)
    if act is not None and act not in list(table.Act):
        raise click.BadParameter(f"there is no {act!r}; there are: {', '.join(table.Act)}", param_hint="--act")
    chosen = None if act is None else table.Act(act)
    with open_store(settings_of(path).database.get_secret_value()).read() as connection:
        found = table.listing(connection, begin, who=who, act=chosen, limit=number)
    if as_json:
        for entry in found:
            print_json(_plain(entry))
    elif found:
        _show(found)
    else:
        click.echo(f"nothing was noted since {begin:%Y-%m-%d %H:%M} UTC")


def _show(entries: Sequence[Entry]) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table("when (UTC)", "who", "by", "from", "what", "monitor", "about", box=None, pad_edge=False)
    for each in entries:
        what = each.act if each.times == 1 else f"{each.act} × {each.times:,}"
        cells = (each.who or "–", each.known_by or "–", each.origin, what, each.monitor or "", each.about)
        shown.add_row(f"{each.at:%Y-%m-%d %H:%M:%S}", *(Text(cell) for cell in cells))
    console().print(shown)


def _plain(entry: Entry) -> dict[str, object]:
    return {
        "at": entry.at,
        "act": entry.act,
        "who": entry.who,
        "known_by": entry.known_by,
        "origin": entry.origin,
        "monitor": entry.monitor,
        "about": entry.about,
        "times": entry.times,
    }


def _moment(text: str) -> datetime:
    """A moment, or one so long ago; without a zone it is in UTC."""
    try:
        return datetime.now(UTC) - duration(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except ValueError:
        words = (
            f"must be a moment such as 2026-11-01 or 2026-11-01T08:00+01:00, or how long ago, such as 7d; got {text!r}"
        )
        raise click.BadParameter(words, param_hint="--since") from None
