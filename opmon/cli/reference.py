"""``opmon reference``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, json_option, monitor_option, print_json
from opmon.cli.subject import Subject, subject_of
from opmon.wording import told as told_reasons

if TYPE_CHECKING:
    from opmon.abc import Head
    from opmon.scoring.reference.fitted import Reference
    from opmon.scoring.reference.fitting import Fit
    from opmon.types import Batch


@click.command()
@click.argument("data", nargs=-1, required=True)
@config_option()
@monitor_option()
@click.option("--model", help="An ONNX file or models:/name@alias instead of the monitor's model.")
@click.option("--label", help="The column with the true class or number: gives the accuracy on these inputs.")
@click.option("--layer", help="The layer to trace [the monitor's, else the last hidden one].")
@click.option(
    "--limit", type=click.IntRange(min=2), default=60_000, show_default=True, help="Keep at most so many traces."
)
@click.option("--fit", "--autoencoder", "names", multiple=True, help="Fit this variable as well, such as sae or vae.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the subsample and the variables that learn.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write a file, not to MLflow.")
@json_option()
def reference(
    data: tuple[str, ...],
    path: Path | None,
    monitor: str | None,
    model: str | None,
    label: str | None,
    layer: str | None,
    limit: int,
    names: tuple[str, ...],
    seed: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Fit a reference on training DATA (files, folders or globs; Parquet, CSV, JSON lines) and keep it with the model.

    dsa, lsa, combined, sae and vae compare production's inputs with it. Run it once for each version of the model.
    """
    subject = subject_of(path, monitor, model)
    fit, fitted = _fit(subject, data, label, layer, limit, _learning(subject, names), seed, quiet=as_json)
    rejected = fit.received - fitted.seen
    where = _keep(subject, fit, fitted, output)
    facts = {
        **fitted.describe(),
        "unscorable": rejected,
        "reasons": dict(fit.refused.most_common(20)),
        "kept_in": where,
    }
    if not subject.settings.quantity.share and fitted.accuracy is not None:
        del facts["accuracy"]
        facts[subject.settings.quantity.name.replace(" ", "_")] = 1 - fitted.accuracy
    if as_json:
        print_json(facts)
        return
    click.echo(f"{fitted.seen} training inputs read, {rejected} could not be scored; {len(fitted.traces)} traces kept")
    if fit.refused:
        click.echo(f"not scored: {told_reasons(fit.refused)}")
    if fitted.seen > len(fitted.traces):
        click.echo("the traces are a sample, stratified by predicted class: raise --limit for more")
    if fitted.layer is not None:
        click.echo(f"layer {fitted.layer}, {fitted.traces.shape[1]} neurons")
    if fitted.accuracy is not None:
        quantity = subject.settings.quantity
        value = fitted.accuracy if quantity.share else 1 - fitted.accuracy
        click.echo(f"{quantity.name} on {fitted.labelled} labelled training inputs: {quantity.text(value)}")
    click.echo(f"kept in {where}")


def _fit(
    subject: Subject,
    data: tuple[str, ...],
    label: str | None,
    layer: str | None,
    limit: int,
    heads: Sequence[Head],
    seed: int,
    quiet: bool,
) -> tuple[Fit, Reference]:
    from opmon.scoring.reference.fitting import open_fit

    fit = open_fit(
        subject.path,
        subject.settings.problem,
        layer=layer or subject.settings.layer,
        limit=limit,
        label=label,
        heads=heads,
        seed=seed,
        **subject.reading,
    )
    return fit, fit.run(_counted(batches(data), quiet))


def _learning(subject: Subject, names: Sequence[str]) -> list[Head]:
    """The variables to fit: those that are named, and those of the monitor that learn."""
    from opmon import plugins
    from opmon.errors import InputError

    named: list[Head] = [plugins.make("head", name) for name in names]
    for name, head in zip(names, named, strict=True):
        if head.fitted_as is None:
            raise InputError(f"--fit {name}: the variable {name!r} learns nothing of its own from training data")
    return named + [head for head in subject.settings.heads.values() if head.fitted_as is not None]


def batches(data: tuple[str, ...]) -> Iterator[Batch]:
    """All rows at these files, folders or globs."""
    from opmon.errors import NotFoundError
    from opmon.sources.files import Files

    for place in data:
        source = Files(place, settle_seconds=0.001)
        slices = source.pending({})
        if not slices:
            raise NotFoundError(f"there is nothing to read at {place!r}")
        yield from source.read(slices)


def _counted(batches: Iterator[Batch], quiet: bool) -> Iterator[Batch]:
    """The batches, with a running count on a terminal."""
    import sys

    count, shown = 0, sys.stderr.isatty() and not quiet
    for batch in batches:
        yield batch
        count += batch.rows.num_rows
        if shown:
            click.echo(f"\r{count:,} inputs", nl=False, err=True)
    if shown:
        click.echo("\r", nl=False, err=True)


def _keep(subject: Subject, fit: Fit, fitted: Reference, output: Path | None) -> str:
    """Write the reference to a file, or keep it with its model version; where that is."""
    from opmon.errors import InputError

    if output is not None:
        fitted.save(output)
        return str(output)
    if subject.registry is None or subject.version is None:
        raise InputError("say with --output where to write the reference of a model that is a file")
    from opmon.stages.models import REFERENCES, publish_reference

    publish_reference(fitted, subject.registry, subject.version, subject.folder / "references", fit.sample)
    return f"MLflow experiment {REFERENCES}, for {subject.version.uri}"
