"""``opmon annotators``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import ago, config_option, console, json_option, print_json, settings_of

if TYPE_CHECKING:
    from opmon.store.annotators import Annotator

_ROLES = ("annotator", "operator", "viewer")


@click.group()
def annotators() -> None:
    """Who may use the pages and the API: invite people, list them, take their tokens away."""


@annotators.command("add")
@config_option()
@click.argument("name")
@click.option("--role", type=click.Choice(_ROLES), default="annotator", show_default=True, help="What they may do.")
@click.option("-m", "--monitor", "monitors", multiple=True, help="Only this monitor; may be given again [all].")
@click.option("--expires", "lasts", default=None, help="How long the token is good, such as 90d [until revoked].")
@json_option()
def add(path: Path | None, name: str, role: str, monitors: tuple[str, ...], lasts: str | None, as_json: bool) -> None:
    """Invite somebody: prints a token and a link with it, once.

    An annotator labels, a viewer only looks, an operator may do both and whatever else the pages offer. From the first
    token on everybody needs one, on this machine too.
    """
    from opmon.store import annotators as table
    from opmon.store import audit
    from opmon.store.engine import open_store
    from opmon.web.secrets import link_with, new_token, sha256_of, usable_name

    settings = settings_of(path)
    for monitor in monitors:
        settings.monitor(monitor)
    name, token = usable_name(name), new_token()
    limited, now = tuple(dict.fromkeys(monitors)) or None, datetime.now(UTC)
    new = table.Annotator(name, role, limited, now, expires_at=_end(now, lasts))
    with open_store(settings.database.get_secret_value()).write() as connection:
        table.add(connection, new, sha256_of(token))
        about = f"{name}, {role} of {', '.join(limited or ('all monitors',))}"
        audit.note(connection, audit.of_command(now, audit.Act.INVITED, about))
    link = link_with(settings.web.address, token)
    if as_json:
        print_json({**_as_json(new), "token": token, "link": link})
        return
    click.echo(f"{name} is invited as {role}. This is shown once:\n\n  token  {token}\n  link   {link}\n")
    click.echo("Whoever has the link is let in under this name: send it as you would send a password.")


@annotators.command("list")
@config_option()
@json_option()
def list_(path: Path | None, as_json: bool) -> None:
    """Tell who was invited, and who still is; tokens cannot be shown again."""
    from rich.table import Table

    from opmon.store import annotators as table
    from opmon.store.engine import open_store

    with open_store(settings_of(path).database.get_secret_value()).read() as connection:
        known = table.everybody(connection)
    if as_json:
        print_json([_as_json(each) for each in known])
        return
    if not known:
        click.echo("nobody was invited yet: opmon annotators add NAME")
        return
    shown = Table("name", "role", "monitors", "invited", "token", box=None, pad_edge=False)
    for each in known:
        shown.add_row(each.name, each.role, ", ".join(each.monitors or ("all",)), ago(each.created_at), _state(each))
    console().print(shown)


@annotators.command("revoke")
@config_option()
@click.argument("name")
def revoke(path: Path | None, name: str) -> None:
    """Take somebody's token away; what they said stays. Within two seconds no server takes it any more."""
    from opmon.store import annotators as table
    from opmon.store import audit
    from opmon.store.engine import open_store

    now = datetime.now(UTC)
    with open_store(settings_of(path).database.get_secret_value()).write() as connection:
        table.revoke(connection, name, now)
        audit.note(connection, audit.of_command(now, audit.Act.REVOKED, name))
    click.echo(f"{name} is signed out everywhere, and the token is worth nothing any more (within two seconds)")


def _end(now: datetime, lasts: str | None) -> datetime | None:
    from opmon.durations import duration

    try:
        return None if lasts is None else now + duration(lasts)
    except ValueError as exc:
        raise click.BadParameter(f"{exc}; got {lasts!r}", param_hint="--expires") from None


def _state(annotator: Annotator) -> str:
    if annotator.revoked_at is not None:
        return f"taken away {ago(annotator.revoked_at)}"
    if annotator.expires_at is None:
        return "works"
    over = annotator.expires_at <= datetime.now(UTC)
    return f"{'ran out on' if over else 'works until'} {annotator.expires_at:%Y-%m-%d %H:%M} UTC"


def _as_json(annotator: Annotator) -> dict[str, object]:
    return {
        "name": annotator.name,
        "role": annotator.role,
        "monitors": None if annotator.monitors is None else list(annotator.monitors),
        "created_at": annotator.created_at,
        "revoked_at": annotator.revoked_at,
        "expires_at": annotator.expires_at,
    }
