"""``opmon init``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from opmon.setup import Proposal


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("opmon.yaml"))
@click.option("--from", "model", help="Look at this registered model, such as models:/name@champion, and at --source.")
@click.option(
    "--source",
    help="The log: a file, folder or glob of Parquet, CSV, JSONL, also s3://…, gs://…, abfs://…; a Delta table's "
    "folder; a table, as postgresql+psycopg://user@host/db#table; mlflow:EXPERIMENT; or the keys of any source, as "
    "'{type: …, …}'.",
)
@click.option("--tracking-uri", help="Where MLflow is [default: MLFLOW_TRACKING_URI, else sqlite:///mlflow.db].")
@click.option("--trust", is_flag=True, help="Allow opmon to run code in the model, where the model has no ONNX file.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(
    path: Path, model: str | None, source: str | None, tracking_uri: str | None, trust: bool, force: bool
) -> int | None:
    """Write a commented configuration to PATH [default: opmon.yaml].

    With --from and --source it is written for that model and log, and checked: the output says "ready", or what to
    change.
    """
    if (model is None) != (source is None):
        raise click.UsageError("give both --from models:/name@alias and --source PATH, or neither")
    path = path / "opmon.yaml" if path.is_dir() else path
    _require_free(path, force)
    if model is None or source is None:
        from opmon.config import render_example

        _write(path, render_example(), force)
        click.echo(f"wrote {path}\nNext: put your model and source in, then run 'opmon check'.")
        return None
    return _for_model(path, model, source, _address(tracking_uri), trust, force)


def _for_model(path: Path, model: str, source: str, tracking_uri: str, trust: bool, force: bool) -> int:
    from opmon.cli.check import checked
    from opmon.cli.common import settings_of
    from opmon.setup import propose

    with tempfile.TemporaryDirectory() as kept:  # what was fetched and converted to look at it is there for the check
        proposal = propose(model, source, tracking_uri, path.absolute().parent, Path(kept), trust)
        _tell(path, proposal, force)
        return checked(settings_of(path), [proposal.monitor], folder=Path(kept))


def _tell(path: Path, proposal: Proposal, force: bool) -> None:
    """Write the configuration, and say what stands in it and why."""
    _write(path, proposal.text, force)
    click.echo(f"wrote {path} for the monitor {proposal.monitor!r}")
    for choice in proposal.choices:
        click.echo(f"  {'? ' if choice.guessed else '  '}{choice}")
    for remark in proposal.remarks:
        click.echo(f"  ! {remark}")
    if any(choice.guessed for choice in proposal.choices):
        click.echo("Look at what has a ?: neither the model nor the log says it.")


def _address(given: str | None) -> str:
    """MLflow's address; that of a SQLite file is relative to the current folder."""
    address = given or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"
    scheme, _, rest = address.partition(":///")
    return f"{scheme}:///{Path(rest).absolute()}" if scheme.startswith("sqlite") and rest else address


def _require_free(path: Path, force: bool) -> None:
    from opmon.errors import InputError

    if path.exists() and not force:
        raise InputError(f"{path} is there already; name another file, or replace it with --force")


def _write(path: Path, text: str, force: bool) -> None:
    from opmon.errors import InputError

    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as exc:
        raise InputError(f"{path} cannot be written: {exc.strerror}") from exc
