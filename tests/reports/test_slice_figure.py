"""The figure of slices, whatever they are called."""

from __future__ import annotations

import warnings

import pytest

from opmon.reports.slice_figure import _name, slice_figure_bytes
from opmon.types import Estimate
from opmon.types.slicing import Sliced

WHOLE = Estimate(0.94, 0.9, 0.97, 150, 900, 1.0, "srs")


@pytest.mark.parametrize(
    "name", ["shop חנות הדגל", "shop الطلبات", "shop Δοκιμή", "shop 東京", "shop 🏬", "shop <b>$x_1$"]
)
def test_names_of_any_script_are_drawn_with_their_share_behind_them(name: str) -> None:
    found = Sliced(name, {"shop": name}, 30, 0.033, 12, 12, 0.97, 0.7, 0.99)
    before, mark, behind = _name(name, found).partition("\u200e")
    assert before.startswith("shop ")
    assert mark, "what follows is written from the left"
    assert "3" in behind
    assert "%" in behind
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert slice_figure_bytes([found], WHOLE).startswith(b"\x89PNG")
