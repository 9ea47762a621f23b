"""The colours of the figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Okabe and Ito's colours, told apart with every kind of colour blindness."""

    paper: str = "#ffffff"
    ink: str = "#1f2430"
    quiet: str = "#636b7a"
    grid: str = "#e6e9ee"
    estimate: str = "#0072b2"
    threshold: str = "#8a4b00"
    alarm: str = "#d55e00"
    rolling: str = "#8c6bb1"
    truth: str = "#1f2431"
    """Another shade than the ink's: each colour has one place, so that a figure on light ground can be darkened."""
    others: tuple[str, ...] = ("#009e73", "#cc79a7", "#56b4e9")
    """For the other versions, where several are in production at once."""


LIGHT = Palette()
DARK = Palette(
    paper="#161a22",
    ink="#e8ebf1",
    quiet="#9aa3b2",
    grid="#2a303c",
    estimate="#56b4e9",
    threshold="#e69f00",
    alarm="#ff8a3d",
    rolling="#b9a3e3",
    truth="#f4f6fa",
    others=("#2fc79a", "#e79ac6", "#9db2ff"),
)


def darkened(svg: bytes) -> bytes:
    """A figure in SVG that was drawn on light ground, on dark ground: drawing it once more would cost as much again.

    >>> darkened(b"fill: #ffffff; stroke: #1f2430; opacity: 0.5; color: #123456")
    b'fill: #161a22; stroke: #e8ebf1; opacity: 0.5; color: #123456'
    """
    dark = dict(zip(_colours(LIGHT), _colours(DARK), strict=True))
    return re.sub(rb"#[0-9a-f]{6}", lambda found: dark.get(found[0], found[0]), svg)


def _colours(palette: Palette) -> Iterator[bytes]:
    for colour in astuple(palette):
        yield from (each.encode() for each in (colour if isinstance(colour, tuple) else (colour,)))
