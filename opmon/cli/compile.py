"""``opmon compile``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, json_option, monitor_option, print_json
from opmon.cli.subject import Subject, subject_of
from opmon.problems import traits

if TYPE_CHECKING:
    from opmon.abc import Head
    from opmon.scoring.reference.fitted import Reference


@click.command("compile")
@click.argument("model", required=False)
@config_option()
@monitor_option()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write."
)
@click.option("--variable", "variables", multiple=True, help="A variable to compute [all of the monitor's].")
@click.option(
    "--reference", type=click.Path(path_type=Path, dir_okay=False), help="A reference file [the model's own]."
)
@click.option("--raw", is_flag=True, help="Give dsa and lsa as <name>_raw too, before they are brought to 0…1.")
@json_option()
def compile_(
    model: str | None,
    path: Path | None,
    monitor: str | None,
    output: Path,
    variables: tuple[str, ...],
    reference: Path | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Write MODEL (the monitor's, an address, an ONNX file) as one ONNX file with its auxiliary variables as outputs.

    The model's own outputs stay the same, bit for bit: the file can be served in its place, and gives the variables at
    no extra cost.
    """
    from opmon.scoring.graph.export import write_monitor_graph

    subject = subject_of(path, monitor, model)
    written = write_monitor_graph(
        subject.path,
        output,
        subject.settings.problem,
        _heads(subject, variables),
        reference=_reference(subject, reference),
        layer=subject.settings.layer,
        raw=raw,
        classes=subject.settings.classes,
        output=subject.settings.output,
        scores=subject.settings.scores,
    )
    if as_json:
        print_json({"file": str(output), "outputs": list(written)})
        return
    click.echo(f"{output} gives: {', '.join(written)}")


def _heads(subject: Subject, names: tuple[str, ...]) -> Mapping[str, Head]:
    from opmon import plugins
    from opmon.stages.models import bound_heads

    free = ("confidence", "margin", "entropy", "gini") if traits(subject.settings.problem).of_classes else ()
    known = subject.settings.heads
    chosen = {name: known.get(name) or plugins.make("head", name) for name in names or (*free, *known)}
    return bound_heads(chosen, subject.registry, subject.folder)


def _reference(subject: Subject, path: Path | None) -> Reference | None:
    from opmon.scoring.reference.fitted import Reference
    from opmon.stages.models import find_reference

    path = path or subject.settings.reference
    if path is None and subject.registry is not None and subject.version is not None:
        path = find_reference(subject.settings, subject.registry, subject.version, subject.folder)
    return None if path is None else Reference.load(path)
