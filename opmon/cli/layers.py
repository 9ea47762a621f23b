"""``opmon layers``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, console, json_option, monitor_option, print_json
from opmon.cli.subject import subject_of

if TYPE_CHECKING:
    from opmon.stages.models import Reading


@click.command()
@click.argument("model", required=False)
@config_option()
@monitor_option()
@json_option()
def layers(model: str | None, path: Path | None, monitor: str | None, as_json: bool) -> None:
    """List the layers of MODEL whose activations dsa, lsa and the sampler ces can look at: an ONNX file,
    models:/name@alias, or the monitor's own. The one marked is the default; name another with "layer:" or --layer.
    """
    from opmon.scoring.graph.file import read_model
    from opmon.scoring.graph.layers import layers as found_in
    from opmon.scoring.scorer import Scorer

    subject = subject_of(path, monitor, model)
    on_cpu: Reading = {**subject.reading, "device": "cpu"}
    scorer = Scorer.open(subject.path, subject.settings.problem, **on_cpu)
    traceable = found_in(read_model(subject.path), scorer.outputs.score)
    default = next((layer.name for layer in reversed(traceable) if layer.feeds in ("Gemm", "MatMul")), None)
    rows: list[dict[str, object]] = [
        {
            "name": layer.name,
            "shape": layer.shape,
            "neurons": layer.width,
            "made_by": layer.made_by,
            "feeds": layer.feeds,
            "default": layer.name == default,
        }
        for layer in traceable
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    if not rows:
        kinds = sorted({node.op_type for node in read_model(subject.path).graph.node})
        click.echo(
            f"the model has no hidden layer (it is made of {', '.join(kinds[:12])}): confidence, margin, entropy, "
            f"gini, sae and vae are its variables; dsa, lsa, combined and the sampler ces need a layer"
        )
        return
    _show(rows)


def _show(rows: list[dict[str, object]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "layer", "neurons", "made by", "feeds"):
        table.add_column(heading, justify="right" if heading == "neurons" else "left")
    for row in rows:
        mark = "→" if row["default"] else ""
        table.add_row(mark, str(row["name"]), str(row["neurons"] or "?"), str(row["made_by"]), str(row["feeds"]))
    console().print(table)
