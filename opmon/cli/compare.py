"""``opmon compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, json_option, monitor_option, one_monitor, print_json, settings_of

if TYPE_CHECKING:
    from opmon.decisions.measure_comparison import MeasureComparison


@click.command()
@config_option()
@monitor_option()
@click.argument("first")
@click.argument("second")
@click.option("-n", "--rounds", "newest", type=click.IntRange(min=1), help="Only so many of the newest rounds [all].")
@click.option("--alpha", default=0.05, show_default=True, help="The probability of a wrong decision.")
@click.option(
    "--measure",
    "measures",
    multiple=True,
    help="By this measure, as the configuration lists it [the main one]; can be given several times.",
)
@click.option("--fresh", is_flag=True, help="Only rounds opened after both were registered: neither learned from them.")
@json_option()
def compare(
    path: Path | None,
    monitor: str | None,
    first: str,
    second: str,
    newest: int | None,
    alpha: float,
    measures: tuple[str, ...],
    fresh: bool,
    as_json: bool,
) -> None:
    """Is version SECOND of the model better than FIRST, on the inputs that were labelled anyway?

    A version is a number (3, v3), an alias (@challenger) or an address (models:/digits/3). Both answer the same
    labelled inputs: few labels show a small difference, and no new ones are asked for. Of the accuracy you may look
    after every round; of other measures the interval holds for one look. Versions that cannot be asked, because their
    answers are logged or were judged, are compared by the rounds that each answered; -n then says how many of each.
    """
    from opmon.errors import ModelError
    from opmon.monitor import Monitor
    from opmon.problems import traits

    settings = settings_of(path)
    name = one_monitor(settings, monitor)
    watched, own = Monitor.from_settings(settings, name), settings.monitor(name)
    one, two = (address(own.model, version) for version in (first, second))
    asks = own.scoring.by != "logged" and own.main_measure is None and traits(own.problem).right_or_wrong
    found = watched.compare(one, two, newest, alpha, fresh=fresh) if asks and not measures else None
    sliced = found is not None and bool(own.slices)
    others: Sequence[MeasureComparison] = ()
    try:
        if found is None or sliced:
            others = watched.compare_measures(one, two, measures, newest, alpha, fresh=fresh)
    except ModelError as exc:
        if found is None:
            raise
        click.echo(f"slices are not compared: {exc}", err=True)
    if as_json:
        told = {
            "monitor": name,
            "first": one,
            "second": two,
            **({} if found is None else {**asdict(found), "words": found.words(one, two)}),
        }
        print_json({**told, "measures": [shown(each, one, two) for each in others]})
        return
    if found is not None:
        click.echo(found.words(one, two))
    for each in others:
        click.echo(each.words(one, two))


def shown(found: MeasureComparison, first: str, second: str) -> dict[str, object]:
    """A comparison by a measure as JSON, with its sentence."""
    from opmon.kept_quantities import as_kept

    own = {name: value for name, value in asdict(found).items() if name != "quantity"}
    return {**as_kept(found.quantity), **own, "winner": found.winner, "words": found.words(first, second)}


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
