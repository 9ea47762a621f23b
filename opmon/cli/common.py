"""Options and printing shared by the commands."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

    from opmon.config import Settings

Command = TypeVar("Command", bound=Callable[..., object] | click.Command)


_WIDTH = 10_000
"""Characters of a line where nobody sees it on a terminal."""


class Decorator(Protocol):
    """Adds an option to a command, or to the function that becomes one."""

    def __call__(self, command: Command, /) -> Command: ...


def config_option() -> Decorator:
    return click.option(
        "-c",
        "--config",
        "path",
        type=click.Path(path_type=Path),
        envvar="OPMON_CONFIG",
        help="The configuration file [default: opmon.yaml].",
    )


def json_option() -> Decorator:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def monitor_option(multiple: bool = False) -> Decorator:
    return click.option(
        "-m", "--monitor", "monitors" if multiple else "monitor", multiple=multiple, help="Only this monitor."
    )


def log_format_option() -> Decorator:
    return click.option(
        "--log-format",
        "form",
        type=click.Choice(["auto", "text", "json"]),
        default="auto",
        help="How the log reads; auto: text on a terminal, JSON elsewhere.",
    )


def settings_of(path: Path | None) -> Settings:
    from opmon.config import load

    return load(path)


def chosen(settings: Settings, names: Sequence[str]) -> list[str]:
    """The monitors named on the command line, or all."""
    for name in names:
        settings.monitor(name)
    return list(dict.fromkeys(names)) or list(settings.monitors)


def one_monitor(settings: Settings, name: str | None) -> str:
    """The monitor named on the command line, or the only one there is."""
    if name is not None:
        return settings.monitor(name).name
    if len(settings.monitors) > 1:
        raise click.UsageError(f"say which monitor with --monitor: {', '.join(settings.monitors)}")
    return next(iter(settings.monitors))


def print_json(value: object) -> None:
    """Print one line of JSON; an infinite bound, which JSON cannot say, is null."""
    text = json.dumps(_finite(value), default=_plain, ensure_ascii=False, allow_nan=False)
    click.echo(text, file=as_a_file())


def as_a_file() -> TextIO:
    """Standard output for what programs read: in UTF-8 as every file of opmon's, whatever the terminal speaks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


def console(stderr: bool = False, *, no_color: bool = False) -> Console:
    """Where a command prints; what goes to a file or another program is neither broken nor cut, for it is searched."""
    from opmon.cli._terminal import Terminal

    seen = sys.stdout.isatty()
    width = None if seen or stderr or "COLUMNS" in os.environ else _WIDTH
    return Terminal(stderr=stderr, highlight=False, soft_wrap=not seen, no_color=no_color or None, width=width)


def ago(moment: datetime | None) -> str:
    """
    >>> from datetime import timedelta
    >>> ago(None), ago(datetime.now(UTC) - timedelta(hours=5)), ago(datetime.now(UTC) + timedelta(days=2, hours=1))
    ('–', '5 h ago', 'in 2 d')
    """
    if moment is None:
        return "–"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= size:
            text = f"{abs(seconds) / size:.0f} {unit}"
            return f"{text} ago" if seconds > 0 else f"in {text}"
    return "just now"


def _finite(value: object) -> object:
    """The value with null for a number that is not finite, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> object:
    """A JSON value in place of a moment, a set, or a number or array of NumPy; text for all else."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, set | tuple):
        return list(value)
    numpy = sys.modules.get("numpy")  # not imported: there is nothing of it
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return _finite(value.tolist())
    return str(value)
