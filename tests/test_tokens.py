"""What is kept of a token: it cannot be had from there, and guessing costs memory and time."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import opmon.tokens as module
from opmon import tokens

TOKEN = hashlib.sha256(b"opmon_x").hexdigest()


def test_what_is_kept_is_of_one_token_and_never_twice_the_same() -> None:
    first, second = tokens.kept_of(TOKEN), tokens.kept_of(TOKEN)
    assert first != second, "each has a salt of its own"
    assert tokens.is_kept(TOKEN, first)
    assert tokens.is_kept(TOKEN, second)
    assert not tokens.is_kept(TOKEN[:-1] + "0", first)
    assert TOKEN not in first
    assert tokens.found_by(TOKEN) == TOKEN[:16]


def test_a_guess_costs_sixteen_megabytes() -> None:
    written = Path(module.__file__).read_text()
    cost = int(re.search(r"LOG2_COST = (\d+)", written)[1])  # type: ignore[index]
    assert 128 * module._BLOCK * 2**cost >= 16 << 20


def test_what_was_kept_at_another_cost_stays_good(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tokens.kept_of(TOKEN)
    monkeypatch.setattr(tokens, "LOG2_COST", tokens.LOG2_COST + 2)
    assert tokens.is_kept(TOKEN, kept)
    assert tokens.kept_of(TOKEN).split("$")[1] != kept.split("$")[1]
