"""``opmon prune``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli._each import for_each, told
from opmon.cli.common import chosen, config_option, json_option, monitor_option, print_json, settings_of
from opmon.wording import counted, size

if TYPE_CHECKING:
    from opmon.monitor import Monitor
    from opmon.stages.erasing import Erased


@click.command()
@config_option()
@monitor_option(multiple=True)
@click.option("--yes", is_flag=True, help="Do it; else it is only said what would go.")
@json_option()
def prune(path: Path | None, monitors: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Remove what closed rounds have kept for as long as "keep" says, from the database, the disk and MLflow.

    keep: {payloads: 90d, frames: 1y, artifacts: 2y, rounds: 3y}. Estimates, verdicts and events stay; so do labels, but
    for "rounds", which removes tasks and labels of rounds long past. A monitor that another process is working on
    is waited for a little; where it is not free by then, it is named at the end.
    """
    settings, something = settings_of(path), False

    def one(monitor: Monitor) -> None:
        nonlocal something
        name, keeps = monitor.settings.name, monitor.settings.keep.given
        found = monitor.prune(really=yes) if keeps else ()
        if as_json:
            print_json({"monitor": name, "erased": yes, "rounds": [asdict(each) for each in found]})
            return
        if not keeps:
            click.echo(f"{name}: kept for ever; to have it removed: keep: {{payloads: 90d, frames: 1y, rounds: 3y}}")
            return
        something = something or any(each.kinds for each in found)
        for line in _lines(found, yes, monitor.settings.newest_kept):
            click.echo(f"{name}: {line}" if not line.startswith(" ") else line)

    kept = for_each(settings, chosen(settings, monitors), one)
    if not yes and not as_json and (something or not kept):
        click.echo("nothing was removed; opmon prune --yes does it" if something else "there is nothing to remove")
    return told(kept, "not pruned", as_json)


def _lines(found: Sequence[Erased], yes: bool, newest: int) -> Iterator[str]:
    """What went, or would go, of a monitor, and what stays although it is old enough."""
    going = [each for each in found if each.kinds]
    files, shown = sum(each.files for each in going), sum(each.tasks for each in going)
    what = f"{counted(files, 'file')} and what {counted(shown, 'task')} showed"
    verb = "removed" if yes else "would be removed"
    yield f"{size(sum(each.bytes for each in going))} of {counted(len(going), 'round')} {verb}: {what}"
    emptied = [each for each in going if "rounds" in each.kinds]
    if emptied:
        tasks, labels = sum(each.emptied for each in emptied), sum(each.labels for each in emptied)
        yield (
            f"  with {counted(tasks, 'task')} and {counted(labels, 'label')} of {counted(len(emptied), 'round')}, "
            f"whose estimates stay and will not change any more"
        )
    if any(each.unreached for each in going):
        yield "  the registry removes no files for opmon: those of the rounds' runs are to be removed there"
    reasons = Counter(each.stays for each in found if each.stays)
    for why, count in sorted(reasons.items()):
        yield f"  the labels of {counted(count, 'round')} stay, old as they are: {why}"
    if reasons:
        yield f"  the newest {newest} rounds, and those of each model version in use, always keep their labels"
