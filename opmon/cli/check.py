"""``opmon check``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli import DONE, LATER, WRONG
from opmon.cli.common import chosen, config_option, console, json_option, monitor_option, print_json, settings_of

if TYPE_CHECKING:
    from opmon.checks import Finding


@click.command()
@config_option()
@monitor_option(multiple=True)
@json_option()
def check(path: Path | None, monitors: tuple[str, ...], as_json: bool) -> int:
    """Tell whether the database, MLflow, the model and the source answer, and what is wrong if not."""
    from opmon.checks import check_monitor, check_services

    settings = settings_of(path)
    names = chosen(settings, monitors)
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

    for finding in check_services(settings):
        tell(finding)
    for name in names:
        for finding in check_monitor(settings, name):
            tell(finding)
    problems = [finding for finding in found if finding.level == "problem"]
    if not as_json:
        click.echo(_conclusion(found, len(problems)))
    if not problems:
        return DONE
    return WRONG if any(finding.needs_change for finding in problems) else LATER


def _conclusion(found: Sequence[Finding], problems: int) -> str:
    """What all of it comes to."""
    if problems:
        return f"{problems} of {len(found)} checks found a problem"
    warnings = sum(finding.level == "warning" for finding in found)
    if not warnings:
        return "all is well"
    return f"nothing stops a run, but {warnings} of {len(found)} checks found something to look at"
