"""A report on one monitor as a file of its own, to be mailed, filed or printed: it asks nobody for anything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from opmon.quantities import Quantity
from opmon.queries.period import PeriodView, RaisedView
from opmon.queries.savings import LabelsView
from opmon.reports.slices import slice_rows
from opmon.web import words
from opmon.web.assets import assets
from opmon.web.charts import NARROW, WIDE, marks_of, timeline, told
from opmon.web.templating import rendered
from opmon.web.versions import against
from opmon.wording import counted, percent

GENERATOR = "opmon report"
"""What such a file says of itself near its beginning."""
_DRAWN, _LISTED = 1000, 100
"""So many of the newest rounds are drawn, and so many are in the table."""
_SHEETS = ("opmon.css", "watching.css")


def printed(period: PeriodView, quantity: Quantity) -> str:
    """The file."""
    latest = period.now.latest
    marks = marks_of(period.points[-_DRAWN:], period.now.foreseen.waiting)
    alt = told(marks, quantity, period.threshold)
    return rendered(
        "report.html",
        {
            "generator": GENERATOR,
            "sheets": [assets()[name][0].decode() for name in _SHEETS],
            "period": period,
            "view": period.now,
            "latest": latest,
            "needs": words.told_once(period.now.needs),
            "quantity": quantity,
            "meaning": words.MEANING[period.now.status],
            "told": alt if marks else "",
            "charts": [
                timeline(marks, alt, quantity=quantity, line=period.threshold, size=size)
                for size in (WIDE, NARROW)
                if marks
            ],
            "has_rolling": any(mark.rolling is not None for mark in marks),
            "has_alarm": any(mark.alarm for mark in marks),
            "has_provisional": any(mark.provisional for mark in marks),
            "listed": period.rounds[:_LISTED],
            "drawn": sum(not mark.expected for mark in marks),
            "slices": []
            if latest is None or latest.estimate is None
            else slice_rows(latest.slices, latest.estimate.quantity),
            "saved": saved_words(period.labels),
            "left_out": left_out_words(period.labels),
            "compared": " ".join(against(one, two, quantity) for two, one in pairwise(period.versions)),
            "raised_words": raised_words(period.raised),
            "outcome_words": outcome_words,
        },
    )


def saved_words(labels: LabelsView) -> str:
    """What sampling saved, in a sentence; empty where it cannot be said.

    >>> saved_words(LabelsView(700, 0, 5, 600, 1000, {}))
    '5 rounds took 600 labels; simple random sampling would have needed about 1,000: 400 saved (40 %).'
    >>> saved_words(LabelsView(60, 0, 1, 60, 50, {}))
    '1 round took 60 labels; simple random sampling would have needed about 50, 10 fewer.'
    """
    if not labels.rounds:
        return ""
    took = f"{counted(labels.rounds, 'round')} took {counted(labels.taken, 'label')}"
    plain = f"simple random sampling would have needed about {labels.plain:,}"
    if labels.saved == 0:
        return f"{took}; {plain}, as many."
    if labels.saved < 0:
        return f"{took}; {plain}, {-labels.saved:,} fewer."
    return f"{took}; {plain}: {labels.saved:,} saved ({percent(labels.saved / labels.plain, 0)})."


def left_out_words(labels: LabelsView) -> list[str]:
    """Why rounds are in no such comparison.

    >>> left_out_words(LabelsView(0, 0, 0, 0, 0, {"the estimate is not final yet": 2}))
    ['2 rounds are not compared: the estimate is not final yet.']
    """
    return [
        f"{counted(count, 'round')} {'is' if count == 1 else 'are'} not compared: {why}."
        for why, count in labels.left_out.items()
    ]


def raised_words(raised: Sequence[RaisedView]) -> str:
    """What was raised and what came of it, in two sentences."""
    if not raised:
        return "No alarm was raised, and none stood."
    parts = {
        "recovered": "ended with the model's recovery",
        "changed": "ended because the rule was changed",
        "stands": "not over yet",
        "over": "over because another version is watched now",
    }
    counts = [(sum(each.outcome == kind for each in raised), said) for kind, said in parts.items()]
    taken = sum(each.event.acknowledged_at is not None for each in raised)
    ended = ", ".join(f"{count} {said}" for count, said in counts if count)
    words = {0: "Nobody has taken on any of them.", len(raised): "Each of them was taken on by somebody."}
    if len(raised) == 1:
        words = {0: "Nobody has taken it on.", 1: "Somebody has taken it on."}
    said = words.get(taken, f"Somebody has taken on {taken} of them.")
    return f"{counted(len(raised), 'alarm')}: {ended}. {said}"


def outcome_words(each: RaisedView) -> str:
    """What came of one alarm."""
    when = "" if each.ended_at is None else f" on {each.ended_at:%d %b %Y, %H:%M} UTC"
    return {
        "recovered": f"recovered{when}",
        "changed": f"ended{when}: the rule was changed",
        "stands": "still stands",
        "over": "over: another version is watched now",
    }[each.outcome]
