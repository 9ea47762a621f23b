"""``opmon init``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("opmon.yaml"))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(path: Path, force: bool) -> None:
    """Write a commented configuration to PATH [default: opmon.yaml]."""
    from opmon.config import render_example
    from opmon.errors import InputError

    if path.is_dir():
        path = path / "opmon.yaml"
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(render_example())
    except FileExistsError as exc:
        raise InputError(f"{path} is there already; name another file, or replace it with --force") from exc
    except OSError as exc:
        raise InputError(f"{path} cannot be written: {exc.strerror}") from exc
    click.echo(f"wrote {path}\nNext: put your model and source in, then run 'opmon check'.")
