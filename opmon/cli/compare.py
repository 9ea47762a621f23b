"""``opmon compare``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from opmon.cli.common import config_option, json_option, monitor_option, one_monitor, print_json, settings_of


@click.command()
@config_option()
@monitor_option()
@click.argument("first")
@click.argument("second")
@click.option("-n", "--rounds", "newest", type=click.IntRange(min=1), help="Only so many of the newest rounds [all].")
@click.option("--alpha", default=0.05, show_default=True, help="The probability of a wrong decision.")
@click.option("--fresh", is_flag=True, help="Only rounds opened after both were registered: neither learned from them.")
@json_option()
def compare(
    path: Path | None,
    monitor: str | None,
    first: str,
    second: str,
    newest: int | None,
    alpha: float,
    fresh: bool,
    as_json: bool,
) -> None:
    """Is version SECOND of the model better than FIRST, on the inputs that were labelled anyway?

    A version is a number (3, v3), an alias (@challenger) or an address (models:/digits/3). Both answer the same
    labelled inputs: few labels show a small difference, and no new ones are asked for.
    """
    from opmon.monitor import Monitor

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    watched = Monitor.from_settings(settings, name)
    one, two = (address(settings.monitor(name).model, version) for version in (first, second))
    found = watched.compare(one, two, newest, alpha, fresh=fresh)
    if as_json:
        print_json({"monitor": name, "first": one, "second": two, **asdict(found)})
        return
    click.echo(found.words(one, two))


def address(model: str, version: str) -> str:
    """
    >>> address("models:/digits@champion", "v3"), address("models:/digits/1", "@challenger")
    ('models:/digits/3', 'models:/digits@challenger')
    """
    from opmon.registry.addresses import model_of, version_address

    found = version if version.startswith("models:/") else version_address(model_of(model), version)
    if found is None:
        raise click.UsageError(f"a version is a number, @alias or models:/name/3; got {version!r}")
    return found
