"""``opmon check``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli import DONE, LATER, WRONG
from opmon.cli.common import chosen, config_option, console, json_option, monitor_option, print_json, settings_of

if TYPE_CHECKING:
    from rich.table import Table

    from opmon.checks import Finding
    from opmon.config import Settings


@click.command()
@config_option()
@monitor_option(multiple=True)
@json_option()
def check(path: Path | None, monitors: tuple[str, ...], as_json: bool) -> int:
    """Tell whether the database, MLflow, the model and the source answer, and what is wrong if not."""
    settings = settings_of(path)
    return checked(settings, chosen(settings, monitors), as_json)


def checked(settings: Settings, names: Sequence[str], as_json: bool = False, folder: Path | None = None) -> int:
    """Check the monitors and print what was found; returns the exit code.

    Models are kept in ``folder`` meanwhile, which may hold them already.
    """
    from opmon.checks import check_monitor, check_services

    found: list[Finding] = []
    out = console()

    def tell(finding: Finding) -> None:
        found.append(finding)
        if as_json:
            print_json(finding.as_dict())
        else:
            mark = {"ok": "[green]✔[/]", "warning": "[yellow]![/]", "problem": "[red]✘[/]"}[finding.level]
            out.print(f"{mark} [bold]{finding.about}[/]  ", end="")
            out.print(finding.message, markup=False)
            if finding.rows:
                out.print(_table(finding.rows))

    for finding in check_services(settings):
        tell(finding)
    for name in names:
        for finding in check_monitor(settings, name, folder):
            tell(finding)
    problems = [finding for finding in found if finding.level == "problem"]
    if not as_json:
        shown = {finding.about for finding in found if finding.rows}
        click.echo(_conclusion(found, len(problems), tried={f"{name}: trial" for name in names} <= shown))
    if not problems:
        return DONE
    return WRONG if any(finding.needs_change for finding in problems) else LATER


def _table(rows: Sequence[Sequence[str]]) -> Table:
    """A table of inputs as opmon sees them, one to a line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*rows[0], box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


def _conclusion(found: Sequence[Finding], problems: int, tried: bool) -> str:
    """The conclusion: ready only if a trial of every monitor went through."""
    if problems:
        return f"not ready: {problems} of {len(found)} checks found a problem"
    warnings = sum(finding.level == "warning" for finding in found)
    look = f", but {warnings} of {len(found)} checks found something to look at" if warnings else ""
    if not tried:
        return f"not ready: there are no inputs yet to try it on{look}"
    return f"ready: opmon run would go through{look}"
