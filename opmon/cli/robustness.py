"""``opmon robustness``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from opmon.cli._robustness_words import as_json_of, show, show_answer
from opmon.cli.common import config_option, json_option, monitor_option, print_json
from opmon.wording import percent, points_between, signed_points

FOLDER = click.option(
    "--from", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path("robustness"), show_default=True,
    help="The folder that 'opmon robustness run' wrote, or one downloaded from MLflow.",
)  # fmt: skip


@click.group()
def robustness() -> None:
    """Map how well the model holds under combined perturbations: some are measured, the rest predicted."""


@robustness.command("run")
@click.argument("data", nargs=-1, required=True)
@config_option()
@monitor_option()
@click.option("--model", help="An ONNX file or models:/name@alias instead of the monitor's model.")
@click.option("--label", help="The column with the truth; without it, right is the model's own unperturbed answer.")
@click.option("--kind", type=click.Choice(["image", "text", "table"]), help="What the inputs are.")
@click.option("-p", "--perturbation", "perturbations", multiple=True, help="One of them, such as zoom; again for more.")
@click.option("-n", "--inputs", type=click.IntRange(min=2), help="At most so many inputs [1000].")
@click.option(
    "--beyond-pairs",
    type=click.IntRange(min=0),
    help="Tests of three or more that are run [24 and up].",
)
@click.option("--half-width", type=float, help="How well each test is known [0.03].")
@click.option("--ordered", is_flag=True, help="A then B and B then A are two tests.")
@click.option("-q", "--query", "queries", multiple=True, help="Asked of the result; again for more.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the inputs and the perturbations.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("robustness"),
              show_default=True, help="The folder for the result, its figures and its page.")  # fmt: skip
@json_option()
def run(
    data: tuple[str, ...], path: Path | None, monitor: str | None, model: str | None, label: str | None,
    kind: str | None, perturbations: tuple[str, ...], inputs: int | None, beyond_pairs: int | None,
    half_width: float | None, ordered: bool, queries: tuple[str, ...], seed: int, output: Path, as_json: bool,
) -> None:  # fmt: skip
    """Map the robustness of a model on DATA (files, folders or globs; Parquet, CSV, JSON lines).

    The perturbations are those of the monitor's "robustness:", or given by --kind and -p. Encoded pictures are read as
    numbers from 0 to 1 unless opmon.yaml says otherwise. After a stop the same command goes on where it was.
    """
    from opmon.cli._robustness_run import bars, mapped, settings_with
    from opmon.cli.subject import subject_of

    subject = subject_of(path, monitor, model)
    given = {
        "kind": kind, "perturbations": list(perturbations) or None, "max_inputs": inputs, "beyond_pairs": beyond_pairs,
        "half_width": half_width, "ordered": ordered or None, "relation": "label" if label else "own",
        "queries": {f"q{number}": text for number, text in enumerate(queries, start=1)} or None,
    }  # fmt: skip
    settings = settings_with(subject, {key: value for key, value in given.items() if value is not None})
    with bars(quiet=as_json) as progress:
        result = mapped(subject, settings, data, label, seed, output, progress)
    answers = {name: result.ask(text) for name, text in settings.questions.items()}
    if as_json:
        print_json(as_json_of(result, answers, output))
        return
    show(result, answers)
    click.echo(f"written to {output}: robustness.html shows it, 'opmon robustness query' asks it")


@robustness.command("query")
@click.argument("question")
@FOLDER
@click.option("-w", "--worst", type=click.IntRange(min=0), default=5, show_default=True, help="So many worst tests.")
@json_option()
def query(question: str, folder: Path, worst: int, as_json: bool) -> None:
    """Ask QUESTION, such as "zoom > 2 or (brightness == 5 and blur == 1)", of a finished tomography.

    Names of perturbations or P1 to Pk, and or not, comparisons, order, severity_sum, quality; Q1 to Q12 by name.
    """
    from opmon.reports.robustness_files import read_tomography

    result = read_tomography(folder)
    answer = result.ask(question, worst)
    if as_json:
        print_json(asdict(answer))
        return
    show_answer(answer)


@robustness.command("compare")
@click.argument("first", type=click.Path(path_type=Path, file_okay=False))
@click.argument("second", type=click.Path(path_type=Path, file_okay=False))
@click.option("-q", "--query", "queries", multiple=True, help="Compared as well; again for more.")
@json_option()
def compare(first: Path, second: Path, queries: tuple[str, ...], as_json: bool) -> None:
    """Set two tomographies of the same space side by side, such as those of two model versions.

    Two that used the same inputs are compared input by input, which tells smaller differences from chance.
    """
    from opmon.reports.robustness_files import read_tomography
    from opmon.robustness.comparison import compared

    before, after = read_tomography(first), read_tomography(second)
    questions = {"all": "all", **{q: q for q in queries}}
    comparisons = {name: compared(before, after, text) for name, text in questions.items()}
    if as_json:
        for name, one in comparisons.items():
            print_json({"query": name, "first": one.first.value, "second": one.second.value,
                        "difference": one.difference, "low": one.low, "high": one.high, "level": one.level,
                        "beyond_chance": one.beyond_chance, "paired": one.paired})  # fmt: skip
        return
    if comparisons["all"].paired:
        click.echo(f"on the same {before.inputs:,} inputs, one by one")
    else:
        click.echo(f"on different inputs ({before.inputs:,} and {after.inputs:,}), which is part of what differs")
    for name, one in comparisons.items():
        words = "" if one.beyond_chance else ", may be chance"
        click.echo(f"{name}: {percent(one.first.value)} → {percent(one.second.value)}, "
                   f"{signed_points(one.difference)} ({points_between(one.low, one.high)}{words})")  # fmt: skip
