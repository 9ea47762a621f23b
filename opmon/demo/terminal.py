"""The demo on a terminal: a line for every hour, with its interval drawn, and what to look at when it is over."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.binding import BLANK, bound
from opmon.demo.plot import Alarm, Hour, Retrained
from opmon.demo.story import Story
from opmon.wording import percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LEFT, RIGHT = 0.60, 1.0
"""The accuracies at the ends of the drawn scale."""
WIDTH = 31
"""Characters of the drawn scale: the lines fit into 80 columns."""
COLUMNS = "{:>4}{:>6}{:>6}{:>7}{:>9}  {:<12} "


def show(story: Story, console: Console) -> None:
    """Run the demo and print it."""
    started = time.monotonic()
    _opening(story, console)
    with console.status("") as status:
        story.progress = lambda what: status.update(f"[dim]{what}[/dim]")
        for happening in story.tell():
            match happening:
                case Hour():
                    if happening.window == 1:
                        _heading(story, console)
                    if happening.drift and not (len(story.hours) > 1 and story.hours[-2].drift):
                        console.print(_rule(" the inputs begin to drift: rotation, noise, another mix of digits "))
                    console.print(line(happening, story.plan.threshold))
                case Alarm():
                    _alarm(happening, story, console)
                case Retrained():
                    _retrained(happening, console)
        story.progress("drawing the figure")
        story.figure()
    _closing(story, console, time.monotonic() - started)


def line(hour: Hour, threshold: float) -> Text:
    """One hour: what is true, what opmon says, and the interval as a bar."""
    from rich.text import Text

    drift = percent(hour.drift, 0) if hour.drift else "–"
    interval = f"{percent(hour.low, 1).removesuffix(' %')}–{percent(hour.high, 1)}"
    shares = (drift, percent(hour.true, 1), percent(hour.estimate, 1))
    numbers = (hour.window, f"v{hour.model_version}", *shares, interval)
    text = Text(COLUMNS.format(*numbers), no_wrap=True)
    text.append_text(bar(hour, threshold))
    if hour.alarm:
        text.append("▲", style="bold red")
    return text


def bar(hour: Hour, threshold: float) -> Text:
    """``━`` the interval, ``●`` the estimate, ``◆`` the true accuracy (red outside of it), ``┊`` the threshold."""
    from rich.text import Text

    cells = [(" ", "")] * WIDTH
    cells[place(threshold)] = ("┊", "yellow")
    colour = "red" if hour.degraded else "cyan"
    for cell in range(place(hour.low), place(hour.high) + 1):
        cells[cell] = ("━", colour)
    cells[place(hour.estimate)] = ("●", f"bold {colour}")
    cells[place(hour.true)] = ("◆", "bold green" if hour.inside else "bold red")
    text = Text()
    for character, style in cells:
        text.append(character, style=style)
    return text


def place(accuracy: float) -> int:
    """The cell of an accuracy on the drawn scale.

    >>> place(0.6), place(0.8), place(1.0), place(0.1)
    (0, 15, 30, 0)
    """
    share = (accuracy - LEFT) / (RIGHT - LEFT)
    return round(min(max(share, 0.0), 1.0) * (WIDTH - 1))


def _opening(story: Story, console: Console) -> None:
    plan, people = story.plan, story.annotators
    console.print("[bold]opmon demo[/bold]: a model of handwritten digits, watched in production\n")
    _say(
        console,
        f"Every hour production logs {plan.window_size:,} inputs. opmon reads them, scores them with the registered "
        f"model, draws {plan.budget} that are worth a label and estimates the accuracy from the answers. "
        f"Two annotators answer each task; each slips in {percent(people.mistakes)} of the cases, both skip "
        f"{percent(people.illegible)}, and where they differ a third one decides. The rule alarms when the evidence "
        f"against {percent(plan.threshold)} is enough to be wrong once in twenty lives of a healthy model.",
    )
    console.print()


def _heading(story: Story, console: Console) -> None:
    scale = [" "] * (WIDTH + 2)
    for accuracy in (0.6, 0.7, 0.8, 0.9, 1.0):
        word, at = percent(accuracy, 0), place(accuracy)
        start = min(max(at - len(word) // 2, 0), WIDTH + 1 - len(word))
        scale[start : start + len(word)] = word
    console.print(
        f"[dim]━ 95 % interval  ● estimate  [/dim][green]◆[/green][dim] true accuracy (opmon does not know it)  "
        f"[/dim][yellow]┊[/yellow][dim] {percent(story.plan.threshold)}[/dim]"
    )
    heading = COLUMNS.format("hour", "model", "drift", "true", "estimate", "interval")
    console.print(f"[bold]{heading}{''.join(scale).rstrip()}[/bold]")


def _alarm(alarm: Alarm, story: Story, console: Console) -> None:
    console.print(_rule(" alarm ", "red"))
    _say(console, alarm.message, style="red")
    if alarm.tag == alarm.event:
        tagged = f"models:/digits/{story.hours[-1].model_version}"
        _say(console, f"opmon.retrain is set on {tagged}: somebody retrains, which takes an hour.", style="red")


def _retrained(retrained: Retrained, console: Console) -> None:
    console.print(_rule(f" version {retrained.version} answers ", "green"))
    _say(
        console,
        f"Retrained on the old training data, on {retrained.labelled:,} inputs that annotators labelled in production "
        f"and once more on the {retrained.failures} failures among them. The drift goes on; version "
        f"{retrained.version} has not seen the digits of these hours.",
        style="green",
    )


def _closing(story: Story, console: Console, seconds: float) -> None:
    hours = story.hours
    inside = sum(hour.inside for hour in hours)
    console.print(_rule(" what happened "))
    _say(
        console,
        f"• {len(hours)} hours in {seconds:.0f} seconds. The 95 % interval held the true accuracy in {inside} of them; "
        f"it is meant to miss one in twenty.",
    )
    alarms = [hour.window for hour in hours if hour.alarm]
    begun = next((hour.window for hour in hours if hour.drift), None)
    if alarms and begun is not None:
        _say(
            console,
            f"• The drift began in hour {begun} and the trigger fired in hour {alarms[0]}, "
            f"{'once' if len(alarms) == 1 else f'{len(alarms)} times'}.",
        )
        _recovery(story, console)
    else:
        _say(console, "• The trigger never fired: with this seed the model stands the drift. Try another --seed.")
    _next_steps(story, console)


def _recovery(story: Story, console: Console) -> None:
    old = story.without_retraining
    recovered = story.hours[-len(old) :] if old else []
    if recovered:
        true = sum(hour.true for hour in recovered) / len(recovered)
        _say(
            console,
            f"• Version {recovered[-1].model_version} answered {percent(true)} of the drifted inputs rightly; version "
            f"{story.hours[0].model_version} would have answered {percent(sum(old) / len(old))} of the same ones.",
        )


def _next_steps(story: Story, console: Console) -> None:
    folder = story.folder
    alarm_page = (
        ((folder.alarm_page.name, "opmon's page on the hour of the alarm"),) if folder.alarm_page.exists() else ()
    )
    files = (
        (folder.figure.name, "the figure: estimated and true accuracy of every hour"),
        *alarm_page,
        ("production/", "what production logged"),
        ("opmon.yaml", "the monitor"),
    )
    opmon, mlflow = (command(name, folder.path) for name in ("opmon", "mlflow"))
    console.print(f"\n[bold]Look at it[/bold]\n  cd {_shown(folder.path)}", soft_wrap=True)
    console.print(f"  {opmon} status      (or: events list, check, run)", soft_wrap=True)
    for name, words in files:
        console.print(f"  {name:<17} {words}")
    console.print("\n[bold]See MLflow's pages on it[/bold]")
    console.print(f"  {mlflow} server --backend-store-uri sqlite:///mlflow.db --port 5000", soft_wrap=True)
    console.print("  then http://127.0.0.1:5000: the experiment opmon/digits, the model digits")


def command(name: str, folder: Path) -> str:
    """How to call a command of this Python's environment from ``folder``: by its name where the shell finds it."""
    if shutil.which(name):
        return name
    return _shown(Path(sys.executable).parent / name, folder)


def _shown(path: Path, start: Path | None = None) -> str:
    """The shortest form of a path from the current folder."""
    relative = os.path.relpath(path, start)
    return relative if len(relative) < len(str(path)) else str(path)


def _say(console: Console, text: str, style: str | None = None) -> None:
    width = min(console.width, 100)
    lines = textwrap.fill(bound(text), width, subsequent_indent="  " if text.startswith("•") else "")
    console.print(lines.replace(BLANK, " "), style=style)


def _rule(title: str, colour: str = "yellow") -> Text:
    from rich.text import Text

    return Text(f"──{title}".ljust(79, "─"), style=colour)
