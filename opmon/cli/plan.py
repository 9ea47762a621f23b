"""``opmon plan``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, console, json_option, monitor_option, one_monitor, print_json, settings_of
from opmon.wording import counted, percent

if TYPE_CHECKING:
    from opmon.queries.planning import Known
    from opmon.samplers.advisor import Advice
    from opmon.samplers.planning import Plan


@click.command()
@config_option()
@monitor_option()
@click.option(
    "--half-width",
    type=float,
    help="The interval wanted: ± this much [0.03, which is 3 points, of recall and the like 0.05; of a regression a "
    "tenth of its newest estimate, but no less than half of the interval that it has].",
)
@click.option("--inputs", type=click.IntRange(min=1), help="Inputs in a round [those of the newest round].")
@click.option("--accuracy", type=float, help="What to expect of a classifier [the newest estimate].")
@click.option("--aim", type=float, help="0: the least error … 1: the most failures [the monitor's own, or 0.5].")
@click.option("--one-wave", is_flag=True, help="Labels cannot come back before the rest is drawn.")
@json_option()
def plan(
    path: Path | None,
    monitor: str | None,
    half_width: float | None,
    inputs: int | None,
    accuracy: float | None,
    aim: float | None,
    one_wave: bool,
    as_json: bool,
) -> None:
    """Tell how many labels an interval of the wanted width needs, and which sampler should draw them.

    What the options leave open is taken from the monitor's newest round; with --inputs no configuration is needed.
    """
    from opmon.queries.planning import Known, budget_for
    from opmon.samplers.advisor import advise

    known = Known() if inputs is not None and path is None and monitor is None else _known(path, monitor)
    size = inputs or known.inputs
    if size is None:
        raise click.UsageError("no round has a final estimate yet: say how many inputs one has with --inputs")
    expected, aim = _expected(known, accuracy), known.aim if aim is None else aim
    planned = budget_for(known, _wanted(known, half_width), size, expected, aim)
    advice = advise(
        size,
        planned.budget,
        problem=known.problem,
        variables=known.variables,
        aim=aim,
        waves=not one_wave,
        measure=known.main,
        aims=known.aims,
    )
    if as_json:
        print_json(_as_json(size, expected, known, planned, advice) | {"aim": aim})
    else:
        _show(size, expected, known, planned, advice)


def _expected(known: Known, accuracy: float | None) -> float | None:
    """The expected value of what is estimated."""
    if accuracy is None:
        return known.expected
    if not known.quantity.share:
        raise click.UsageError("--accuracy is of a classifier; what to expect of a regression its newest round tells")
    return accuracy


def _wanted(known: Known, half_width: float | None) -> float:
    """The half-width asked for, or the usual one."""
    wanted = known.usual_half_width if half_width is None else half_width
    if wanted is None:
        raise click.UsageError(
            f"say with --half-width how narrow the interval shall be: a {known.quantity.title} has no usual one, "
            f"and no round with errors was estimated yet"
        )
    return wanted


def _known(path: Path | None, monitor: str | None) -> Known:
    """What the configuration and the newest estimated round of a monitor tell."""
    from opmon.queries.planning import learned
    from opmon.store.engine import open_store

    settings = settings_of(path)
    chosen = settings.monitor(one_monitor(settings, monitor))
    with open_store(settings.database.get_secret_value()).read() as connection:
        return learned(connection, chosen.name, chosen.plans_from)


def _as_json(size: int, expected: float | None, known: Known, planned: Plan, advice: Advice) -> dict[str, object]:
    return {
        "inputs": size,
        "quantity": known.quantity.name,
        "unit": known.quantity.unit,
        "expected": expected,
        "accuracy": expected if known.quantity.share else None,
        "budget": planned.budget,
        "half_width": planned.half_width,
        "plain_budget": planned.plain_budget,
        "hopeful_budget": planned.hopeful_budget,
        "gain": known.gain,
        "notes": planned.notes,
        "sampler": {"type": advice.sampler, "budget": planned.asked, **advice.parameters},
        "reasons": advice.reasons,
        "alternatives": [
            {"type": other.sampler, **other.parameters, "reason": other.reason} for other in advice.alternatives
        ],
    }


def _show(size: int, expected: float | None, known: Known, planned: Plan, advice: Advice) -> None:
    from rich.text import Text

    out = console()
    quantity = known.quantity
    what = f"{percent(known.level)} interval of ± {quantity.difference(planned.half_width)}"
    over = f" over {counted(size, 'input')}"
    when = "" if expected is None else f", if the {quantity.name} is about {quantity.text(expected)}"
    give = "gives" if planned.budget == 1 else "give"
    out.print(Text.assemble((counted(planned.budget, "label"), "bold"), f" {give} a {what}{over}{when}"))
    out.print(f"  simple random sampling needs {'about ' if known.main else ''}{planned.plain_budget:,}")
    if planned.hopeful_budget is not None and planned.hopeful_budget < planned.budget:
        out.print(
            f"  {planned.hopeful_budget:,} are enough if the variables foretell failures as those of other models do; "
            "the first rounds will tell"
        )
    if known.gain is not None:
        out.print(f"  the monitor's last intervals were {known.gain:.2f} times as wide as simple random sampling's")
    for note in planned.notes:
        out.print(Text(f"  {note}", style="yellow"))
    parameters = "".join(f", {name}: {value}" for name, value in advice.parameters.items())
    out.print(
        Text.assemble("\nsampler: ", (f"{{type: {advice.sampler}, budget: {planned.asked}{parameters}}}", "bold"))
    )
    for reason in advice.reasons:
        out.print(Text(f"  {reason}"))
    for other in advice.alternatives:
        out.print(Text.assemble("  or ", (other.sampler, "bold"), f": {other.reason}"))
