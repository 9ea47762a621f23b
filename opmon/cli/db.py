"""``opmon db``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, json_option, print_json, settings_of
from opmon.wording import counted, size

if TYPE_CHECKING:
    from opmon.store.engine import Store


@click.group()
def db() -> None:
    """The database: bring its tables up to date, check it, copy it to a file, put a copy back."""


@db.command()
@config_option()
@json_option()
def upgrade(path: Path | None, as_json: bool) -> None:
    """Bring the tables up to date, and make them where there are none. "opmon run" and "opmon serve" do so, too."""
    from opmon.store import migrate

    store = _store(path)
    before = migrate.schema_of(store)
    migrate.upgrade(store)
    if as_json:
        print_json({"database": store.where, "from": before, "to": migrate.HEAD})
    elif before == migrate.HEAD:
        click.echo(f"{store.where} was up to date (schema {before})")
    else:
        done = "got its tables" if before is None else f"was brought from schema {before}"
        click.echo(
            f"{store.where} {done} {'(' if before is None else 'to '}schema {migrate.HEAD}"
            f"{')' if before is None else ''}"
        )


@db.command()
@config_option()
@json_option()
def check(path: Path | None, as_json: bool) -> int:
    """Tell whether the database can be right: its schema, its pages, rows that name what is not there, and whether the
    files that open rounds need are there. Nothing is changed.
    """
    from opmon.checks.kept import check_kept
    from opmon.cli import DONE, LATER

    found = list(check_kept(settings_of(path)))
    for finding in found:
        if as_json:
            print_json(finding.as_dict())
        else:
            mark = {"ok": "✔", "warning": "!", "problem": "✘"}[finding.level]
            click.echo(f"{mark} {finding.about}  {finding.message}")
    return LATER if any(finding.level == "problem" for finding in found) else DONE


@db.command()
@config_option()
@json_option()
@click.argument("file", type=click.Path(path_type=Path))
def backup(path: Path | None, file: Path, as_json: bool) -> None:
    """Copy the whole database to FILE, while opmon works, as it is at one moment.

    FILE is a SQLite database, of PostgreSQL too: "opmon db restore" puts it back into either. It is whole or not there,
    and only you may read it: it holds what annotators saw and said. Models, frames and figures are MLflow's to keep.
    """
    from opmon.store.backup import backup as write

    made = write(_store(path), file)
    if as_json:
        print_json({"file": str(made.path), "schema": made.schema, "rows": made.rows, "bytes": made.bytes})
        return
    click.echo(f"{made.path} holds {counted(made.rows, 'row')} at schema {made.schema}, {size(made.bytes)}")


@db.command()
@config_option()
@json_option()
@click.option("--replace", is_flag=True, help="Lose what the database holds now.")
@click.argument("file", type=click.Path(path_type=Path))
def restore(path: Path | None, file: Path, replace: bool, as_json: bool) -> None:
    """Put a backup into the database that the configuration names, of either kind, and bring it up to date.

    All of it is there afterwards, or what was there before. To move from SQLite to PostgreSQL: back up, name the new
    one in "database", restore.
    """
    from opmon.store.restoring import restore as put_back

    store = _store(path)
    restored = put_back(file, store, replace=replace)
    if as_json:
        print_json({"database": store.where, "schema": restored.schema, "rows": restored.copied.rows})
        return
    rows = restored.copied.rows
    click.echo(
        f"{store.where} holds what {file} holds: {counted(rows['rounds'], 'round')}, "
        f"{counted(rows['labels'], 'label')}, {counted(restored.copied.total, 'row')} in all"
    )
    click.echo("Rounds that were opened after the backup are opened again; answers given after it are not there.")


def _store(path: Path | None) -> Store:
    from opmon.store.engine import connect

    return connect(settings_of(path).database.get_secret_value())
