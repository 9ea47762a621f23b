"""What MLflow's pages say of a monitor, in Markdown: on a timeline, a round, a model version, a registered model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from opmon import wording
from opmon.binding import bound
from opmon.types import Estimate, VerdictState

LONGEST = 1_500
"""So much of a rule's message is in a note."""
MOST = 5_000
"""MLflow keeps no more characters of the description of a version or of a registered model."""
_MARKS = re.compile(r"([\\`*_{}\[\]|#~])")

STATUS = {
    "healthy": "Healthy",
    "degraded": "Degraded",
    "unknown": "Not known yet",
    "unwatched": "Measured",
}
"""How a model version stands, as the first words of a note."""


@dataclass(frozen=True, slots=True)
class RuleNote:
    """How one rule stands, and why."""

    rule: str
    state: VerdictState
    message: str
    advises: bool = False


@dataclass(frozen=True, slots=True)
class RoundNote:
    """What is told of a round and of how its model version stands since."""

    monitor: str
    model: str
    version: str
    round: int
    status: str
    why: str
    estimate: Estimate
    ended_at: datetime
    inputs: int
    asked: int
    answered: int
    failures: int | None
    """None where inputs are only more or less far off, and neither right nor wrong."""
    threshold: float | None = None
    rules: Sequence[RuleNote] = ()
    drift: Sequence[str] = ()
    """What drifted and whether with loss, a sentence each."""
    page: str | None = None
    """The monitor's page in opmon."""
    timeline: str | None = None
    """The run of the timeline, in MLflow's own pages."""
    run: str | None = None
    """The run of the round, likewise."""
    picture: str | None = None


def timeline_note(note: RoundNote) -> str:
    """The description of a timeline's run: how the model version does, as of its last round."""
    return _joined(
        f"## {STATUS[note.status]}: {plain(note.model)} version {plain(note.version)} in production, as of round "
        f"{note.round}",
        _why(note),
        _table(note),
        _drift(note),
        None if note.picture is None else f"![{note.estimate.quantity.caption} over the rounds]({note.picture})",
        _rules(note),
        _links(note, ("This round", note.run)),
        f"opmon watches this model version in production under the name `{note.monitor}`. In every round people label "
        f"a few inputs; from these the {plain(note.estimate.quantity.name)} on all inputs is estimated, with an "
        f"interval. A step of the charts is a round; `..._provisional` is what was known before all labels were in, "
        f"`..._revised` what later labels have made of it.",
    )


def round_note(note: RoundNote) -> str:
    """The description of a round's run."""
    wrong, them = "what the model got wrong", "the failures"
    if note.failures is None:
        wrong, them = "its largest errors", "these"
    return _joined(
        f"## Round {note.round} of {plain(note.monitor)}: {_headline(note.estimate)}",
        _table(note),
        _drift(note),
        _rules(note),
        _links(note, ("All rounds of this version", note.timeline)),
        "Among the artifacts, `round.html` is the round on one page, `frame.parquet` all of its inputs, "
        f"`labels.parquet` what people said, and `failures/failures.parquet` {wrong}. To retrain on {them}: "
        f'`opmon.load_failures("{note.monitor}", rounds=[{note.round}])`.',
    )


def version_note(note: RoundNote) -> str:
    """The section of a model version's description."""
    return _joined(
        f"**{STATUS[note.status]}** in production as of {_moment(note.ended_at)}, says opmon's monitor "
        f"{plain(note.monitor)}. {_why(note)}",
        _table(note),
        _links(note, ("Timeline", note.timeline), ("Last round", note.run)),
    )


def brief_note(note: RoundNote) -> str:
    """The same where there is no room for it: how the version does, and where more is told."""
    return _joined(
        f"**{STATUS[note.status]}** in production as of {_moment(note.ended_at)}, says opmon's monitor "
        f"{plain(note.monitor)}.",
        _links(note, ("Timeline", note.timeline)),
    )


def model_note(note: RoundNote) -> str:
    """The section of a registered model's description: it changes only where the status does, or the version."""
    return _joined(
        f"opmon watches version {plain(note.version)} in production ({plain(note.monitor)}): "
        f"**{STATUS[note.status].lower()}** since round {note.round}, with inputs until {_moment(note.ended_at)}.",
        _links(note, ("Timeline", note.timeline)),
    )


def with_section(description: str, monitor: str, text: str) -> str:
    """``description`` with the section of a monitor as it should be: in its place where it is there, else at the end.

    The section stands between two HTML comments, which a reader does not see; all around it stays as people wrote it.

    >>> with_section("Ours.", "digits", "Healthy")
    'Ours.\\n\\n<!-- opmon digits -->\\nHealthy\\n<!-- /opmon digits -->'
    >>> with_section(with_section("Ours.", "digits", "Healthy") + " Yours.", "digits", "Degraded")
    'Ours.\\n\\n<!-- opmon digits -->\\nDegraded\\n<!-- /opmon digits --> Yours.'
    """
    begin, end, whole = _section(monitor)
    section = f"{begin}\n{text}\n{end}"
    if whole.search(description) is None:
        return f"{description.rstrip()}\n\n{section}".lstrip()
    return whole.sub(lambda _: section, description)


def with_room(description: str, monitor: str, *texts: str) -> str:
    """``description`` with the first of ``texts`` as the section that MLflow has room for; without one where it has
    room for none, for an old section would say what is no longer so.

    What people wrote stays. There is room for as much as there is already: some stores of MLflow know no limit.

    >>> with_room("x" * 4_950, "digits", "Healthy, and why.", "Healthy.") == "x" * 4_950
    True
    >>> with_room("x" * 4_940, "digits", "Healthy, and why.", "Healthy.")[4_940:]
    '\\n\\n<!-- opmon digits -->\\nHealthy.\\n<!-- /opmon digits -->'
    """
    most = max(MOST, len(description))
    wished = (with_section(description, monitor, text) for text in texts)
    return next((whole for whole in wished if len(whole) <= most), _section(monitor)[2].sub("", description))


def has_section(description: str, monitor: str) -> bool:
    """Whether the monitor is told of there."""
    return _section(monitor)[2].search(description) is not None


def _section(monitor: str) -> tuple[str, str, re.Pattern[str]]:
    """How the section of a monitor begins, how it ends, and all of it."""
    begin, end = f"<!-- opmon {monitor} -->", f"<!-- /opmon {monitor} -->"
    inner = rf"(?:(?!{re.escape(begin)}).)*?"  # a comment whose other half somebody has removed is no section
    return begin, end, re.compile(re.escape(begin) + inner + re.escape(end), re.DOTALL)


def plain(text: str) -> str:
    """A text without marks that Markdown or HTML would take for their own.

    >>> plain("a_b <b>|")
    'a\\\\_b &lt;b&gt;\\\\|'
    """
    quoted = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", " ".join(quoted.split()))


def _joined(*parts: str | None) -> str:
    return bound("\n\n".join(part.strip() for part in parts if part))


def _why(note: RoundNote) -> str:
    alarms = [rule for rule in note.rules if rule.state == "alarm" and not rule.advises]
    if alarms:
        names = ", ".join(plain(rule.rule) for rule in alarms)
        return f"{wording.counted(len(alarms), 'rule has', 'rules have')} raised an alarm: {names}."
    if note.status == "healthy":
        return "No rule has raised an alarm."
    return f"{plain(_capital(note.why)[:LONGEST])}."


def _headline(estimate: Estimate) -> str:
    value, low, high = estimate.quantity.texts(estimate.value, estimate.low, estimate.high)
    told = "provisional " if estimate.provisional else ""
    sure = "counted" if estimate.counted else f"{low} to {high}"
    return f"{told}{plain(estimate.quantity.name)} {value} ({sure})"


def _table(note: RoundNote) -> str:
    estimate = note.estimate
    value, low, high = estimate.quantity.texts(estimate.value, estimate.low, estimate.high)
    sure = f"{wording.percent(estimate.level, 0)} interval {low} to {high}"
    if estimate.counted:
        sure = f"counted over all {wording.counted(estimate.frame_size, 'input')}"
    name = plain(estimate.quantity.title[:1].upper() + estimate.quantity.title[1:])
    rows = [
        (f"{'Provisional ' if estimate.provisional else ''}{name}", f"**{value}**, {sure}"),
        ("Threshold", None if note.threshold is None else estimate.quantity.threshold(note.threshold)),
        ("Round", f"{note.round}, inputs until {_moment(note.ended_at)}"),
        ("Labels", f"{note.answered:,} of {note.asked:,} asked for, out of {wording.counted(note.inputs, 'input')}"),
        ("Failures among them", None if note.failures is None else f"{note.failures:,}"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows if text is not None)])


_SAID = {"alarm": "alarm", "ok": "no alarm", "unknown": "says nothing yet"}


def _rules(note: RoundNote) -> str | None:
    said = [
        f"- **{plain(rule.rule)}**: {_SAID[rule.state]}{' (advice)' if rule.advises else ''}. "
        f"{plain(_capital(rule.message)[:LONGEST])}"
        for rule in note.rules
    ]
    return "\n".join(["**Rules**", "", *said]) if said else None


def _drift(note: RoundNote) -> str | None:
    said = [f"- {plain(sentence[:LONGEST])}" for sentence in note.drift]
    return "\n".join(["**Drift** (advice)", "", *said]) if said else None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _links(note: RoundNote, *own: tuple[str, str | None]) -> str | None:
    named = [*own, ("Monitor in opmon", note.page)]
    found = [f"[{name}]({address})" for name, address in named if address is not None]
    return " · ".join(found) or None


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
