"""How a tomography and its answers are printed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from opmon.wording import percent

if TYPE_CHECKING:
    from pathlib import Path

    from opmon.robustness.result import Answer, Tomography


def as_json_of(result: Tomography, answers: dict[str, Answer], output: Path) -> dict[str, object]:
    """A tomography and the answers to the saved questions, for scripts."""
    whole = result.ask("all")
    return {
        "tests": len(result.tests),
        "measured": int(result.measured.sum()),
        "inputs": result.inputs,
        "inferences": result.inferences,
        "saved": result.saved,
        "unperturbed": float(result.share[0]),
        "aggregate": asdict(whole),
        "queries": {name: asdict(answer) for name, answer in answers.items()},
        "written": str(output),
    }


def show(result: Tomography, answers: dict[str, Answer]) -> None:
    """Print a tomography in a few lines."""
    whole = result.ask("all")
    click.echo(
        f"{len(result.tests):,} tests on {result.inputs:,} inputs: {int(result.measured.sum()):,} measured, "
        f"{whole.predicted:,} predicted, {percent(result.saved, 0)} of the inferences saved"
    )
    click.echo(f"unperturbed {percent(result.share[0])}, mean of all tests {percent(whole.value)} ({_interval(whole)})")
    for name, answer in answers.items():
        click.echo(f"{name:>12}: {percent(answer.value)} ({_interval(answer)})  {answer.tests} tests")


def show_answer(answer: Answer) -> None:
    """Print the answer to one question, with the worst tests."""
    level = percent(answer.level)
    click.echo(f"{percent(answer.value)} still right on average ({_interval(answer)}, {level} interval)")
    click.echo(f"as a sample of production: {percent(answer.population_low)} to {percent(answer.population_high)}")
    click.echo(f"{answer.tests} tests: {answer.measured} measured, {answer.predicted} predicted")
    if answer.quality is not None:
        click.echo(f"mean distance from the originals {answer.quality:.3g}")
    for case in answer.worst:
        how = "measured" if case.measured else "predicted"
        click.echo(f"  {percent(case.share, 1):>7} ({percent(case.low)} to {percent(case.high)}, {how})  {case.label}")


def _interval(answer: Answer) -> str:
    return f"{percent(answer.low)} to {percent(answer.high)}"
