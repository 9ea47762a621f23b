"""``opmon report``."""

from __future__ import annotations

import os
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from opmon.cli.common import as_a_file, config_option, json_option, print_json, settings_of
from opmon.durations import duration
from opmon.errors import InputError
from opmon.wording import counted

_HEAD = 2000
"""A report says what it is in so many bytes."""


@click.command()
@click.argument("monitor", required=False)
@config_option()
@click.option(
    "--since", "asked", default="30d", show_default=True, help="How far back: a time such as 30d or 4w, or a date."
)
@click.option("-o", "--output", help="The file to write, - for standard output [default: MONITOR-report.html].")
@click.option("--force", is_flag=True, help="Replace a file that is no report.")
@json_option()
def report(monitor: str | None, path: Path | None, asked: str, output: str | None, force: bool, as_json: bool) -> None:
    """Write one HTML file on MONITOR: how it stands and why, its estimates, alarms and labels in that time.

    The file asks nobody for anything: it can be mailed, put into a ticket, or printed to PDF.
    """
    from opmon.queries.period import period_view
    from opmon.store.engine import open_store
    from opmon.web.printed import printed

    if as_json and output is not None:
        raise click.UsageError("--json is printed; --output is where the HTML file goes: give one of them")
    now = datetime.now(UTC)
    since = since_of(asked, now)
    settings = settings_of(path)
    if monitor is None and len(settings.monitors) > 1:
        raise click.UsageError(f"say which monitor: {', '.join(settings.monitors)}")
    own = settings.monitor(monitor or next(iter(settings.monitors)))
    file = None if as_json or output == "-" else Path(output or default_name(own.name))
    if file is not None:
        _require_writable(file, force)
    with open_store(settings.database.get_secret_value()).read() as connection:
        period = period_view(connection, own.watch, own.plans_from, own.threshold, since, now)
    if as_json:
        from opmon.queries.plain import plain

        saved = period.labels.saved if period.labels.rounds else None
        print_json({"monitor": own.name, "saved": saved, **cast("dict[str, object]", plain(period))})
        return
    text = printed(period, own.quantity)
    if file is None:
        click.echo(text, file=as_a_file(), nl=False)
        return
    _write(file, text)
    rounds = counted(len(period.rounds), "round")
    click.echo(f"wrote {file}: {period.quiet or f'{rounds} since {since:%Y-%m-%d}'}")


def since_of(asked: str, now: datetime) -> datetime:
    """The moment that ``--since`` says; a date begins at midnight, UTC.

    >>> now = datetime(2026, 11, 19, tzinfo=UTC)
    >>> since_of("2w", now).isoformat(), since_of("2026-10-01", now).isoformat()
    ('2026-11-05T00:00:00+00:00', '2026-10-01T00:00:00+00:00')
    """
    text = asked.strip()
    try:
        if re.fullmatch(r"[\d.]+\s*[a-z]", text):
            return now - duration(text)
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        own = f" ({exc})" if str(exc).startswith("must be longer") else ""
        raise InputError(
            f"--since is a time such as 30d, 4w or 1y, or a date such as {now:%Y-%m-%d}; got {asked!r}{own}"
        ) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if moment > now:
        raise InputError(f"--since lies in the past; got {asked!r}, and it is {now:%Y-%m-%d %H:%M} UTC")
    return moment


def default_name(monitor: str) -> str:
    """The file that a report is written to, in this folder whatever the monitor is called.

    >>> default_name("digits"), default_name("../fraud/eu west")
    ('digits-report.html', 'fraud_eu_west-report.html')
    """
    plain = re.sub(r"[^\w.-]+", "_", monitor).strip("._-")
    return f"{plain or 'monitor'}-report.html"


def _require_writable(file: Path, force: bool) -> None:
    """Refuse what is no place for a file, and to replace a file that is no report."""
    if file.is_dir():
        raise InputError(f"{file} is a folder: name the file in it with --output")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent}: make it, or name another file with --output")
    if file.exists() and not force and not _is_report(file):
        raise InputError(
            f"{file} is there and is no report of opmon: name another --output, or replace it with --force"
        )


def _is_report(file: Path) -> bool:
    from opmon.web.printed import GENERATOR

    with file.open("rb") as opened:
        return f'<meta name="generator" content="{GENERATOR}">'.encode() in opened.read(_HEAD)


def _write(file: Path, text: str) -> None:
    """Write the file whole or not at all."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
