from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opmon.demo.terminal import WIDTH, bar, command, place


def test_lines_fit_into_80_columns(told):
    long = [line for line in told.printed.splitlines() if len(line) > 80 and not line.startswith("  ")]
    assert long == []


def test_one_line_for_every_hour(told):
    lines = [line for line in told.printed.splitlines() if "◆" in line and "true accuracy" not in line]
    assert len(lines) == len(told.story.hours)
    assert sum("▲" in line for line in lines) == 1


def test_story_is_told_in_order(told):
    chapters = ["begin to drift", " alarm ───", "version 2 answers", "what happened", "mlflow server"]
    places = [told.printed.index(chapter) for chapter in chapters]
    assert places == sorted(places)


def test_no_escape_codes_where_there_is_no_terminal(told):
    assert "\x1b" not in told.printed


def test_bar_shows_truth_and_interval(told):
    hour = replace(told.story.hours[0], low=0.8, estimate=0.85, high=0.9, true=0.95)
    drawn = bar(hour, 0.7).plain
    assert len(drawn) == WIDTH
    assert drawn[place(0.8) : place(0.9) + 1] == "━━━━●━━━━"[: place(0.9) - place(0.8) + 1]
    assert drawn[place(0.95)] == "◆"
    assert drawn[place(0.7)] == "┊"


def test_command_is_named_as_the_shell_finds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    there = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(there))
    assert command("opmon", tmp_path) == "opmon"
    monkeypatch.setenv("PATH", "/nowhere")
    assert (tmp_path / command("opmon", tmp_path)).resolve().parent == there.resolve()
