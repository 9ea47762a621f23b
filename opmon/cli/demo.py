"""``opmon demo``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from opmon.cli.common import console, json_option, print_json


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("opmon-demo"),
    show_default="./opmon-demo",
    help="Where everything is made; one that an earlier demo made is made anew.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Another one, another story."
)
@json_option()
@click.option("--no-color", is_flag=True, help="Print without colours.")
def demo(folder: Path, seed: int, as_json: bool, no_color: bool) -> None:
    """See it work: a model in production drifts, opmon notices, it is retrained and recovers.

    Needs no network and no server, and takes about a minute. The digits come with
    scikit-learn, drift and annotators are simulated; everything else is opmon as it runs in production.
    """
    from opmon.demo.folder import Folder
    from opmon.demo.plot import Hour, Plan
    from opmon.demo.story import Story

    logging.getLogger("opmon.stages").setLevel(logging.ERROR)  # the alarm is shown anyway
    story = Story(Folder.prepare(folder), Plan(seed=seed))
    if as_json:
        for happening in story.tell():
            if isinstance(happening, Hour):
                print_json(happening.row())
        story.figure()
        print_json({"summary": story.summary()})
        return
    from opmon.demo.terminal import show

    show(story, console(no_color=no_color))
