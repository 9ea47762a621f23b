"""What MLflow's pages show of opmon's Markdown, whatever models, measures, units, causes and rules are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from markdown_it import MarkdownIt

from opmon.quantities import Quantity
from opmon.reports.notes import RoundNote, RuleNote, model_note, round_note, timeline_note, version_note
from opmon.types import Estimate
from tests.security.attacked import GUIDELINES, HOSTILE

MARKDOWN = (
    "[a](javascript:attacked())",
    "![c](https://evil.example.com/x.png)",
    "[a]: https://evil.example.com",
    "<https://evil.example.com>",
    "`<script>attacked()</script>`",
    "&lt;script&gt;attacked()&lt;/script&gt;",
    "&#60;script&#62;attacked()&#60;/script&#62;",
    "-->\n<script>attacked()</script>",
    "a\n\n# b\n\n| c | d |\n|---|---|\n| e | f |",
    "\\<script>attacked()</script>",
    "\\\\[a](https://evil.example.com)",
    "</td></tr></table><script>attacked()</script>",
    "*a* _b_ **c** ~~d~~ \u202e",
    GUIDELINES,
)
TAGS = {"h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "img", "a", "code"}


def note(text: str) -> RoundNote:
    """All that somebody may call something, called so."""
    quantity = Quantity("measure", text, text[:50])
    return RoundNote(
        monitor="digits",
        model=text,
        version=text,
        round=12,
        status="degraded",
        why=text,
        estimate=Estimate(0.842, 0.791, 0.886, n=200, frame_size=1000, response=0.9, method="sups", quantity=quantity),
        ended_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        inputs=1000,
        asked=200,
        answered=180,
        failures=31,
        threshold=0.9,
        rules=[RuleNote(text, "alarm", text), RuleNote(text, "ok", text, advises=True)],
        page="https://opmon.example.com/monitors/digits",
        timeline="#/runs/t",
        run="#/runs/r",
        picture="get-artifact?path=accuracy.png&run_uuid=t",
    )


@pytest.mark.parametrize("text", [*HOSTILE, *MARKDOWN])
@pytest.mark.parametrize("made", [timeline_note, round_note, version_note, model_note], ids=lambda made: made.__name__)
def test_names_are_text_in_the_descriptions_of_mlflow(text: str, made: Callable[[RoundNote], str]) -> None:
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(made(note(text)))
    assert set(re.findall(r"<\s*/?\s*([a-zA-Z!]\w*)", shown)) <= TAGS, shown
    led = re.findall(r'(?:href|src)="([^"]*)"', shown)
    assert all(each.startswith(("#/runs/", "https://opmon.example.com/", "get-artifact?")) for each in led), led
    assert shown.count("<table>") <= 1
    assert shown.count("<h2>") <= 1
