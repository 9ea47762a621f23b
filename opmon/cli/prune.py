"""``opmon prune``."""

from __future__ import annotations

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
    """Erase what annotators saw of the inputs of closed rounds, once it was kept for "labels.keep_payloads".

    Labels and estimates stay. What was logged to MLflow (drawn-*.parquet and failures/ of each round's run) stays there
    until it is deleted there.
    """
    from opmon.monitor import Monitor

    settings = settings_of(path)
    names = chosen(settings, monitors)
    for name in names:
        keep = settings.monitors[name].labels.keep_payloads
        found = Monitor.from_settings(settings, name).erase_payloads(really=yes) if keep is not None else ()
        if as_json:
            told = [{"round": each.round, "tasks": each.tasks, "bytes": each.bytes} for each in found]
            print_json({"monitor": name, "erased": yes, "rounds": told})
            continue
        if keep is None:
            click.echo(f"{name}: kept for ever; to have it erased: labels: {{keep_payloads: 90d}}")
            continue
        total, tasks = sum(each.bytes for each in found), sum(each.tasks for each in found)
        verb = "erased" if yes else "would be erased"
        click.echo(f"{name}: {size(total)} of {counted(tasks, 'task')} in {counted(len(found), 'round')} {verb}")
        runs = sum(each.run_id is not None for each in found)
        if runs and yes:
            click.echo(
                f"  MLflow keeps what was logged of it, in {counted(runs, 'run')}: drawn-*.parquet and failures/"
            )
    if not yes and not as_json:
        click.echo("nothing was erased; opmon prune --yes does it")
