"""What MLflow's pages say of a monitor: plain, true, and only in its own place."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from opmon.binding import bound
from opmon.reports.notes import (
    RoundNote,
    RuleNote,
    brief_note,
    has_section,
    model_note,
    round_note,
    timeline_note,
    version_note,
    with_room,
    with_section,
)
from opmon.types import Estimate

NOTE = RoundNote(
    monitor="digits",
    model="digits",
    version="3",
    round=12,
    status="degraded",
    why="an alarm stands",
    estimate=Estimate(0.842, 0.791, 0.886, n=200, frame_size=1000, response=0.9, method="sups"),
    ended_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    inputs=1000,
    asked=200,
    answered=180,
    failures=31,
    threshold=0.9,
    rules=[RuleNote("floor", "alarm", "accuracy is below 90 % | <script>")],
    page="https://opmon.example.com/monitors/digits",
    timeline="#/runs/t",
    run="#/runs/r",
    picture="get-artifact?path=accuracy.png&run_uuid=t",
)


def test_a_timeline_says_how_its_version_does_and_why() -> None:
    text = timeline_note(NOTE)
    assert text.startswith("## Degraded: digits version 3 in production, as of round ")
    for part in (
        "1 rule has raised an alarm: floor.",
        "| Accuracy | **84.2 %**, 95 % interval 79.1 % to 88.6 % |",
        "| Threshold | 90 % |",
        "| Labels | 180 of 200 asked for, out of 1,000 inputs |",
        "![Accuracy over the rounds](get-artifact?path=accuracy.png&run_uuid=t)",
        "[This round](#/runs/r)",
        "[Monitor in opmon](https://opmon.example.com/monitors/digits)",
    ):
        assert bound(part) in text
    assert "<script>" not in text
    assert r"\| &lt;script&gt;" in text


def test_what_was_counted_has_no_interval() -> None:
    text = round_note(replace(NOTE, estimate=Estimate(0.807, 0.807, 0.807, 300, 300, 1.0, "census")))
    assert bound("accuracy 80.7 % (counted)") in text
    assert bound("**80.7 %**, counted over all 300 inputs |") in text
    assert "interval" not in text


def test_what_is_not_known_is_left_out() -> None:
    text = timeline_note(replace(NOTE, page=None, picture=None, threshold=None, rules=[], status="unwatched"))
    for part in ("Monitor in opmon", "![", "Threshold", "Rules", "None"):
        assert part not in text


def test_what_no_rule_watches_is_measured_in_production() -> None:
    note = replace(NOTE, rules=[], status="unwatched", why="no rule watches it")
    begin = "## Measured: digits version 3 in production, as of round 12\n\nNo rule watches it."
    assert timeline_note(note).startswith(begin)
    begin = "**Measured** in production as of 2026-03-01 12:00 UTC, says opmon's monitor digits. No rule watches it."
    assert version_note(note).replace("\xa0", " ").startswith(begin)
    assert "(digits): **measured** since round 12" in bound(model_note(note)).replace("\xa0", " ")


def test_a_round_says_how_its_failures_are_loaded() -> None:
    assert 'opmon.load_failures("digits", rounds=[12])' in round_note(NOTE)


def test_sections_leave_what_people_wrote_alone_and_are_the_same_when_written_again() -> None:
    own = "# Digits\n\nAsk Ann before you change it."
    once = with_section(own, "digits", version_note(NOTE))
    both = with_section(once, "digits-eu", model_note(NOTE))
    edited = both.replace("Ask Ann", "Ask Ben") + "\n\nP.S. Trained in March."
    after = with_section(edited, "digits", "Healthy again.")
    assert with_section(both, "digits", version_note(NOTE)) == both
    assert after.startswith("# Digits\n\nAsk Ben before you change it.")
    assert after.endswith("P.S. Trained in March.")
    assert "Healthy again." in after
    assert bound("84.2 %") not in after.partition("<!-- /opmon digits -->")[0]
    assert "opmon digits-eu" in after


@pytest.mark.parametrize(
    "damaged",
    [
        "Ours. <!-- opmon digits -->\nold\nYours.",
        "Ours.\nold\n<!-- /opmon digits --> Yours.",
        "<!-- /opmon digits --> Ours. <!-- opmon digits --> Yours.",
    ],
)
def test_half_a_section_takes_nothing_with_it_that_people_wrote(damaged: str) -> None:
    found = damaged
    for status in ("Healthy", "Degraded", "Degraded"):
        found = with_section(found, "digits", status)
        assert "Ours." in found
        assert "Yours." in found
    assert (found.count("Degraded"), found.count("Healthy")) == (1, 0)


def test_a_section_that_was_copied_is_told_twice() -> None:
    twice = 2 * with_section("", "digits", "Healthy")
    found = with_section(twice, "digits", "Degraded")
    assert (found.count("Degraded"), found.count("Healthy")) == (2, 0)


@pytest.mark.parametrize("room", [5_000, 400, 250, 60, 0, -10])
def test_a_section_is_as_long_as_there_is_room_for(room: int) -> None:
    own = "x" * (5_000 - room)
    notes = [replace(NOTE, status=status, rules=[], why="y" * 5_000) for status in ("unknown", "degraded")]
    found = [with_room(own, "digits", version_note(note), brief_note(note)) for note in notes]
    again = with_room(found[0], "digits", version_note(notes[1]), brief_note(notes[1]))
    for text in (*found, again):
        assert text.startswith(own)
        assert len(text) <= max(5_000, len(own))
        assert has_section(text, "digits") is (room >= 250)
        assert ("Labels" in text) is (room == 5_000)
    assert again == found[1]


def test_where_there_is_no_room_any_more_no_old_section_stays() -> None:
    full = with_section("x" * 4_930, "digits", "Healthy")
    assert with_room(full + "y" * 5, "digits", "Degraded for a reason") == "x" * 4_930 + "\n\n" + "y" * 5
