"""``opmon prune``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from opmon.cli.common import chosen, config_option, json_option, monitor_option, print_json, settings_of
from opmon.wording import counted, size


@click.command()
@config_option()
@monitor_option(multiple=True)
@click.option("--yes", is_flag=True, help="Do it; else it is only said what would go.")
@json_option()
def prune(path: Path | None, monitors: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove what closed rounds have kept for as long as "keep" says, from the database, the disk and MLflow.

    keep: {payloads: 90d, frames: 1y, artifacts: 2y}. Estimates, labels, verdicts and events stay.
    """
    from opmon.monitor import Monitor

    settings = settings_of(path)
    for name in chosen(settings, monitors):
        found = Monitor.from_settings(settings, name).prune(really=yes) if settings.monitors[name].keep.given else ()
        if as_json:
            print_json({"monitor": name, "erased": yes, "rounds": [asdict(each) for each in found]})
            continue
        if not settings.monitors[name].keep.given:
            click.echo(f"{name}: kept for ever; to have it removed: keep: {{payloads: 90d, frames: 1y, artifacts: 2y}}")
            continue
        total = size(sum(each.bytes for each in found))
        files, tasks = sum(each.files for each in found), sum(each.tasks for each in found)
        what = f"{counted(files, 'file')} and what {counted(tasks, 'task')} showed"
        verb = "removed" if yes else "would be removed"
        click.echo(f"{name}: {total} of {counted(len(found), 'round')} {verb}: {what}")
        if any(each.unreached for each in found):
            click.echo("  the registry removes no files for opmon: those of the rounds' runs are to be removed there")
    if not yes and not as_json:
        click.echo("nothing was removed; opmon prune --yes does it")
