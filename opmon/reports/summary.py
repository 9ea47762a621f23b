"""One page per round: how the model does, how sure that is, and what it got wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from opmon import wording
from opmon.failure_words import FAILURE_WORDS, FailureKind
from opmon.quantities import ACCURACY, Quantity
from opmon.reports._page import data_uri, write_page
from opmon.reports.drift import DriftSummary
from opmon.reports.estimate_figure import EstimatePoint, figure_bytes
from opmon.reports.failures import Failure
from opmon.reports.measure_figures import MeasureFigure
from opmon.reports.palette import darkened
from opmon.reports.slice_figure import key_of_names, slice_figure_bytes
from opmon.reports.slices import slice_rows
from opmon.reports.text import percent
from opmon.reports.timeline import RoundFacts
from opmon.store.corrections import SETTLED, Corrected
from opmon.store.measured import Measured
from opmon.types import Document, Estimate, Json, Verdict
from opmon.types.grouped import FailureGroup
from opmon.types.slicing import Sliced
from opmon.wording import counted, told, within

LISTED_FAILURES = 25
"""The most failures the page lists; the dataset holds them all."""
LISTED_MEASURES = 60
"""The most measures that the page lists; measures.json holds them all."""
LISTED_COLUMNS = 30
"""The most drifted columns the page names."""


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """All that a round's page shows. What is None or empty is left out of it, or said to be missing."""

    monitor: str
    round: int
    model: str
    model_version: str
    facts: RoundFacts
    estimate: Estimate | None = None
    verdicts: Sequence[Verdict] = ()
    started_at: datetime | None = None
    """When the oldest input of the round arrived."""
    ended_at: datetime | None = None
    sampler: str = ""
    design: Document = field(default_factory=dict)
    """How the sample was drawn, by name: budget, variable, seed, draws, …"""
    quantity: Quantity = ACCURACY
    """What the monitor estimates."""
    measures: Sequence[Measured] = ()
    """What was measured beside it."""
    measure_figures: Sequence[MeasureFigure] = ()
    """Pictures of measures that a number does not tell, such as a confusion matrix."""
    unit: str = ""
    """The unit of a regression's labels."""
    kind: FailureKind = "wrong"
    """What its failures are."""
    points: Sequence[EstimatePoint] = ()
    """The rounds so far, this one included."""
    threshold: float | None = None
    failures: Sequence[Failure] = ()
    groups: Sequence[FailureGroup] = ()
    """What they have in common."""
    pictures: bytes | None = None
    """The PNG that :func:`opmon.reports.pictures.picture_grid` made of the failures."""
    pictures_shown: int = 0
    drift: DriftSummary | None = None
    drift_words: Sequence[str] = ()
    """What drifted and whether with loss, a sentence each."""
    corrected: Corrected | None = None
    """The estimate corrected for annotators who err, and how far they agree."""
    slices: Sequence[Sliced] = ()
    """What is known of the round's slices."""


def round_page(summary: RoundSummary, path: Path) -> Path:
    """Writes the page of one round: a single HTML file, without scripts, for light and dark screens and phones."""
    return write_page(
        path,
        "round.html",
        round=summary,
        headline=_headline(summary.estimate),
        measure_figures=[
            {"source": data_uri(each.content, "image/png"), "text": each.text, "key": each.key}
            for each in summary.measure_figures
        ],
        measures=[_measure_row(each, summary.estimate) for each in summary.measures[:LISTED_MEASURES]],
        figures=_figures(summary),
        pictures=None if summary.pictures is None else data_uri(summary.pictures, "image/png"),
        failures=summary.failures[:LISTED_FAILURES],
        slices=slice_rows(summary.slices, summary.quantity),
        slice_figures=_slice_figures(summary),
        slice_key=key_of_names(summary.slices, summary.estimate) if summary.estimate else "",
        words=FAILURE_WORDS[summary.kind],
        facts=[*_facts(summary.facts), *_agreement(summary)],
        design={name: _setting(name, value) for name, value in summary.design.items()},
        drift_words=summary.drift_words or _drift_words(summary.drift, summary.facts.drift),
        drifted=[column for column in summary.drift.columns if column.drifted][:LISTED_COLUMNS]
        if summary.drift
        else [],
        skipped=_by_reason(summary.drift),
    )


def _setting(name: str, value: Json) -> Json:
    """A setting of the sampler as it is read; a seed is a name and no amount."""
    return f"{value:,}" if type(value) is int and name != "seed" else value


def _measure_row(one: Measured, main: Estimate | None) -> Mapping[str, object]:
    """A measure as a row of the table: its name, value and interval, or why there is none, and what to know of it."""
    if one.estimate is None:
        return {"name": one.quantity.title, "value": "–", "interval": "", "notes": [f"not known: {one.why}"]}
    estimate, told = one.estimate, set(() if main is None else main.notes)
    value, low, high = one.quantity.texts(estimate.value, estimate.low, estimate.high)
    notes = [note for note in estimate.notes if note not in told]
    interval = "counted" if estimate.counted else f"{low} to {high}"
    return {"name": one.quantity.title, "value": value, "interval": interval, "notes": notes}


def _headline(estimate: Estimate | None) -> Mapping[str, str] | None:
    if estimate is None:
        return None
    value, low, high = estimate.quantity.texts(estimate.value, estimate.low, estimate.high)
    level = wording.percent(estimate.level)
    interval = "" if estimate.counted else f"{low} to {high}"
    return {"name": estimate.quantity.title, "value": value, "interval": interval, "level": level}


def _figures(summary: RoundSummary) -> Mapping[str, str] | None:
    """The figure of the estimates for wide and narrow, light and dark screens."""
    if not summary.points:
        return None
    figures: dict[str, str] = {}
    for name, width in (("wide", 900), ("narrow", 360)):
        light = figure_bytes(
            summary.points,
            kind="svg",
            quantity=summary.quantity,
            threshold=summary.threshold,
            title=summary.quantity.caption + (" over the rounds" if name == "wide" else ""),
            width=width,
        )
        for ground, figure in (("light", light), ("dark", darkened(light))):
            figures[f"{ground}_{name}"] = data_uri(figure, "image/svg+xml")
    return figures


def _slice_figures(summary: RoundSummary) -> Mapping[str, str] | None:
    """The figure of the slices, likewise."""
    if not any(each.value is not None for each in summary.slices) or summary.estimate is None:
        return None
    figures: dict[str, str] = {}
    for name, width in (("wide", 900), ("narrow", 360)):
        light = slice_figure_bytes(summary.slices, summary.estimate, kind="svg", width=width)
        for ground, figure in (("light", light), ("dark", darkened(light))):
            figures[f"{ground}_{name}"] = data_uri(figure, "image/svg+xml")
    return figures


def _facts(facts: RoundFacts) -> list[tuple[str, str, str]]:
    """What happened, as (name, value, remark)."""
    rows = [
        ("Inputs received", f"{facts.received:,}", ""),
        ("Unscorable", f"{facts.unscorable:,}", _unscorable_remark(facts)),
        *_left_out(facts),
        ("Duplicates", f"{facts.duplicates:,}", "logged more than once, counted once" if facts.duplicates else ""),
        ("Labels", f"{facts.returned:,} of {facts.asked:,}", f"response {percent(facts.response)}"),
    ]
    if facts.arrived is not None:
        rows.append(("Truths", f"{facts.arrived:,} of {facts.asked:,}", _lag_remark(facts)))
    if facts.failures is not None:
        rows.append(("Failures exposed", f"{facts.failures:,}", _failure_remark(facts)))
    if facts.skew is not None:
        rows.append(("Serving skew", percent(facts.skew), "inputs where the registered model answers otherwise"))
    return rows


def _agreement(summary: RoundSummary) -> Iterator[tuple[str, str, str]]:
    """How far annotators agree, and the estimate corrected for their errors, or why there is none."""
    found = summary.corrected
    if found is None:
        return
    alpha = "" if found.alpha is None else f"Krippendorff's alpha {found.alpha:.2f}"
    if found.agreement is not None:
        yield (
            "Agreement",
            percent(found.agreement),
            f"of pairs of answers to one input are the same; {alpha}".rstrip("; "),
        )
    elif found.alpha is not None:
        yield "Agreement", f"{found.alpha:.2f}", "Krippendorff's alpha"
    if found.interval is not None:
        value, low, high = summary.quantity.texts(*found.interval)
        same = summary.estimate is not None and not found.moves(summary.estimate)
        bounds = SETTLED if same else f"{low} to {high}"
        yield "Corrected for annotators who err", value, f"from {found.checks:,} checked answers: {bounds}"
    elif found.why:
        yield "Corrected for annotators who err", "–", found.why


_REMARKS = {
    "filtered": ("Left out", "rows that do not fit inputs.where: no inputs of this monitor"),
    "thinned": ("Thinned", "logged with a greater probability than others, left out so that all speak alike"),
    "unlogged": ("Not logged or read", "production had them; they are not in the log, or came where it had been read"),
    "late": ("Late", "answered before the end of the round before; they count like the others"),
}


def _left_out(facts: RoundFacts) -> Iterator[tuple[str, str, str]]:
    for kind, (name, remark) in _REMARKS.items():
        if facts.left_out(kind):
            why = f": {told(Counter(facts.losses[kind]))}" if kind == "unlogged" else ""
            yield name, f"{facts.left_out(kind):,}", remark + why


def _unscorable_remark(facts: RoundFacts) -> str:
    if not facts.unscorable:
        return ""
    reasons = facts.losses.get("unscorable", {})
    why = f": {told(Counter(reasons))}" if reasons else ""
    return f"{percent(facts.unscorable / max(1, facts.received))}, and the estimate is of the others{why}"


def _lag_remark(facts: RoundFacts) -> str:
    if facts.lag_median is None or facts.lag_ninety is None:
        return ""
    return f"came by themselves, half of them {within(facts.lag_median)}, 90 % {within(facts.lag_ninety)}"


def _failure_remark(facts: RoundFacts) -> str:
    if facts.failure_rate is None:
        return ""
    return f"{percent(facts.failure_rate)} of the answers; not an estimate of the failure rate"


def _drift_words(drift: DriftSummary | None, share: float | None) -> list[str]:
    """What drifted of the inputs and of the model's answers, a sentence each."""
    if drift is None:
        known = share is not None
        return [f"{percent(share, 0)} of the compared columns drifted." if known else "The inputs were not compared."]
    if not drift.columns:
        return [f"No drift report: {drift.problem or 'no column can be compared'}."]
    told = ["The inputs have no column of single values to compare."]
    if drift.inputs:
        columns = counted(len(drift.inputs), "column of the inputs", "columns of the inputs")
        told = [f"{sum(each.drifted for each in drift.inputs)} of {columns} drifted ({percent(drift.share, 0)})."]
    if drift.answers:
        moved = f"{sum(each.drifted for each in drift.answers)} of {len(drift.answers)} drifted"
        told.append(f"Of the model's own answer and variables, {moved} ({percent(drift.answers_share, 0)}).")
    return told


def _by_reason(drift: DriftSummary | None) -> Mapping[str, list[str]]:
    """The columns that were not compared, under the reason they share."""
    reasons: dict[str, list[str]] = {}
    for name, reason in (drift.skipped if drift else {}).items():
        reasons.setdefault(reason, []).append(name)
    return reasons
