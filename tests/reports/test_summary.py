from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from opmon.quantities import Quantity
from opmon.reports._drift_columns import ColumnDrift
from opmon.reports.drift import DriftSummary
from opmon.reports.estimate_figure import EstimatePoint
from opmon.reports.failures import Failure
from opmon.reports.pictures import picture_grid
from opmon.reports.summary import RoundSummary, round_page
from opmon.reports.timeline import RoundFacts
from opmon.store.corrections import SETTLED, Corrected
from opmon.types import Estimate, Verdict

TEMPLATES = Path(__file__).parents[2] / "opmon/reports/templates"
SCRIPT = "</title></bdi><script>alert('x')</script>"
ROUND = RoundSummary(
    monitor="digits",
    round=7,
    model="digits-model",
    model_version="3",
    facts=RoundFacts(received=1200, unscorable=2, duplicates=1, asked=100, returned=90, failures=2, skew=0.003),
    estimate=Estimate(0.9731, 0.9512, 0.9861, 100, 1198, 0.9, "SRS, Wilson", notes=("10 answers are missing.",)),
    verdicts=[Verdict("accuracy_below", "alarm", "Accuracy is below 98 %.", 0.97, 0.98)],
    started_at=datetime(2026, 9, 3, tzinfo=UTC),
    ended_at=datetime(2026, 9, 4, tzinfo=UTC),
    sampler="srs",
    design={"budget": 100, "seed": 1234567, "frame": 1198},
    points=[EstimatePoint(6, 0.98, 0.95, 0.99), EstimatePoint(7, 0.9731, 0.9512, 0.9861, alarm=True)],
    threshold=0.98,
    failures=[Failure("a", "8", "3", 0.61, 12.0, payload={"age": 31}), Failure("b", "1", "7")],
    drift=DriftSummary(
        (ColumnDrift("age", True, "K-S p_value", 0.001, 0.05),), {"when": "a point in time always moves"}
    ),
)


class Page(HTMLParser):
    def __init__(self, summary: RoundSummary, tmp_path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: list[str] = []
        self.size = round_page(summary, tmp_path / "new" / "round.html").stat().st_size
        self.feed((tmp_path / "new" / "round.html").read_text(encoding="utf-8"))
        self.text = " ".join(" ".join(self.pieces).split())

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    def all(self, tag: str, attribute: str) -> list[str]:
        return [found.get(attribute) or "" for name, found in self.elements if name == tag]


def test_the_page_tells_the_round(tmp_path: Path) -> None:
    text = Page(ROUND, tmp_path).text
    for words in (
        "97.3 %",
        "95.1 % to 98.6 %",
        "Estimated accuracy",
        "Accuracy is below 98 %.",
        "10 answers are missing.",
        "SRS, Wilson",
        "1,200",
        "90 of 100",
        "0.3 %",
        "2026-09-03 00:00 to 2026-09-04 00:00 UTC",
        "1 of 1 column of the inputs drifted",
        "a point in time always moves",
        "age: 31",
        "seed 1234567 frame 1,198",
    ):
        assert words in text.replace("\N{NO-BREAK SPACE}", " "), words


def test_a_correction_that_changes_nothing_is_told_as_such(tmp_path: Path) -> None:
    same = Corrected(0.97312, 0.95118, 0.98612, 0.009, "", 152, 0.977, 0.97)
    text = Page(replace(ROUND, corrected=same), tmp_path).text.replace("\N{NO-BREAK SPACE}", " ")
    assert f"from 152 checked answers: {SETTLED} 97.3 %" in text
    text = Page(replace(ROUND, corrected=replace(same, value=0.985, high=0.99)), tmp_path).text
    assert "from 152 checked answers: 95.1 % to 99.0 % 98.5 %" in text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_stands_alone(tmp_path: Path) -> None:
    page = Page(ROUND, tmp_path)
    tags = [tag for tag, _ in page.elements]
    assert not {"script", "link", "iframe", "object"} & set(tags)
    sources = page.all("img", "src") + page.all("source", "srcset")
    assert len(sources) == 4
    assert all(source.startswith("data:image/") for source in sources)
    assert not any(name.startswith("on") for _, found in page.elements for name in found)
    assert page.size < 500_000


def test_a_provisional_round_says_so(tmp_path: Path) -> None:
    assert ROUND.estimate is not None
    text = Page(replace(ROUND, estimate=replace(ROUND.estimate, provisional=True)), tmp_path).text
    assert "Provisional accuracy" in text
    assert "answers may still come" in text


def test_a_round_of_which_nothing_is_known(tmp_path: Path) -> None:
    text = Page(RoundSummary("m", 1, "x", "1", RoundFacts(received=0)), tmp_path).text
    for words in (
        "No estimate",
        "No label has come back yet",
        "No rule has judged",
        "no failure is known",
        "not compared",
    ):
        assert words in text


def test_a_round_without_failures_says_so(tmp_path: Path) -> None:
    facts = RoundFacts(received=100, asked=50, returned=50)
    assert "No failure was found among the 50 answers." in Page(replace(ROUND, facts=facts, failures=()), tmp_path).text


def test_ten_thousand_failures_are_bounded(tmp_path: Path) -> None:
    failures = [Failure(str(i), "a", "b", payload={"text": "w" * 9000}) for i in range(10_000)]
    facts = RoundFacts(received=20_000, asked=20_000, returned=20_000, failures=10_000)
    page = Page(replace(ROUND, failures=failures, facts=facts), tmp_path)
    assert "The first 25 of 10,000 failures." in page.text
    assert page.size < 500_000


def test_three_hundred_rounds_stay_below_a_megabyte(tmp_path: Path) -> None:
    points = [EstimatePoint(i, 0.9, 0.85, 0.95, at=datetime(2026, 9, 3, i % 24, tzinfo=UTC)) for i in range(300)]
    assert Page(replace(ROUND, points=points), tmp_path).size < 1_000_000


def test_pictures_are_inlined(tmp_path: Path) -> None:
    picture_grid([np.eye(8)] * 2, ["said 3, is 8"] * 2, tmp_path / "grid.png")
    pictures = (tmp_path / "grid.png").read_bytes()
    page = Page(replace(ROUND, pictures=pictures, pictures_shown=2), tmp_path)
    inlined = page.all("img", "src")[-1].removeprefix("data:image/png;base64,")
    assert base64.b64decode(inlined) == pictures
    assert "2 pictures of 2 failures." in page.text


def test_everything_is_escaped(tmp_path: Path) -> None:
    hostile = replace(
        ROUND,
        monitor=SCRIPT + "\u202eevil",
        model=SCRIPT,
        model_version="v" * 5000,
        estimate=Estimate(-1.5, -3, 0.5, 1, 1, 1.0, SCRIPT, quantity=Quantity(SCRIPT, unit=SCRIPT), notes=(SCRIPT,)),
        verdicts=[Verdict(SCRIPT, "unknown", SCRIPT * 500)],
        sampler=SCRIPT,
        design={SCRIPT: SCRIPT, "none": None},
        failures=[Failure(SCRIPT, "مرحبا", "\U0001f600" * 900, None, 1e300, (SCRIPT,), {SCRIPT: None})],
        drift=DriftSummary((ColumnDrift(SCRIPT, True, SCRIPT),), {SCRIPT: SCRIPT}),
    )
    page = Page(hostile, tmp_path)
    assert "script" not in [tag for tag, _ in page.elements]
    assert page.all("a", "href") == []
    assert "\u202e" not in page.text
    assert page.size < 500_000


def test_a_known_drift_share_is_told_without_the_report(tmp_path: Path) -> None:
    facts = replace(ROUND.facts, drift=0.25)
    text = Page(replace(ROUND, drift=None, facts=facts), tmp_path).text
    assert "25 % of the compared columns drifted." in text


def test_what_cannot_be_scored_is_told_with_the_reasons(tmp_path: Path) -> None:
    losses = {"unscorable": {"column 'age' is empty": 2, SCRIPT: 1}}
    page = Page(replace(ROUND, facts=replace(ROUND.facts, unscorable=3, losses=losses)), tmp_path)
    assert f"0.2 %, and the estimate is of the others: column 'age' is empty (2); {SCRIPT} (1)" in page.text
    assert "script" not in {name for name, _ in page.elements}


def test_what_was_counted_has_no_interval(tmp_path: Path) -> None:
    counted = Estimate(0.9997, 0.9997, 0.9997, 1198, 1198, 1.0, "census")
    text = Page(replace(ROUND, estimate=counted), tmp_path).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "Counted accuracy 99.97 %" in text
    assert "Counted, not estimated: the truth of all 1,198 inputs is known." in text
    assert "99.97 % to" not in text


def test_white_sheets_hold_pictures_alone() -> None:
    """Text on them is white in a dark browser."""
    pages = "".join(each.read_text() for each in TEMPLATES.glob("*.html"))
    assert '<div class="sheet"><img' in pages
    assert pages.count('class="sheet"') == pages.count('<div class="sheet"><img')
