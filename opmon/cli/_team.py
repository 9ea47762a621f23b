"""The annotators of a monitor as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opmon.wording import counted, percent

if TYPE_CHECKING:
    from rich.console import Console

    from opmon.annotators import Agreement
    from opmon.queries.annotators import AnnotatorView, TeamView

_COLUMNS = (
    ("  annotator", "left"),
    ("answers", "right"),
    ("skips", "right"),
    ("seconds", "right"),
    ("agreement", "right"),
    ("gold right", "right"),
    ("errs on", "left"),
)


def show_team(out: Console, team: TeamView) -> None:
    """Print how far the annotators agree, what each has said, and what needs a person."""
    from rich.table import Table
    from rich.text import Text

    where = f"the newest {counted(team.rounds, 'round')}"
    if not team.annotators:
        out.print(Text.assemble((team.monitor, "bold"), f"  nobody has answered or skipped a task in {where}"))
        return
    out.print(Text.assemble((team.monitor, "bold"), f"  {counted(team.inputs, 'input')} of {where} with two answers"))
    for name, found in (("agreement", team.agreement), ("kappa", team.kappa), ("Krippendorff's alpha", team.alpha)):
        if found is not None and found.value is not None:
            out.print(f"  {name} {_measure(found, share=name == 'agreement')}", style="dim")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, justify in _COLUMNS:
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for view in team.annotators:
        table.add_row(*_row(view))
    out.print(table)
    for need in team.needs:
        out.print(Text(f"  {need}", style="yellow"))
    if not any(view.error for view in team.annotators) and team.agreement is not None:
        out.print("  nothing checks these answers: ask several with labels.overlap, or add labels.gold", style="dim")


def _row(view: AnnotatorView) -> tuple[str, ...]:
    error = view.error
    return (
        f"  {view.annotator}",
        f"{view.answers:,}",
        f"{view.skips:,}",
        "–" if view.seconds is None else f"{view.seconds:.1f}",
        "–" if view.agreement is None else percent(view.agreement, 0),
        f"{view.gold_right} of {view.gold}" if view.gold else "–",
        "–" if error is None else f"{percent(error.error, 0)} [{percent(error.low, 0)}, {percent(error.high, 0)}]",
    )


def _measure(found: Agreement, *, share: bool) -> str:
    def text(value: float) -> str:
        return percent(value) if share else f"{value:.2f}"

    value = "–" if found.value is None else text(found.value)
    bounds = "" if found.low is None or found.high is None else f" [{text(found.low)}, {text(found.high)}]"
    return f"{value}{bounds}{f', {found.note}' if found.note else ''}"
