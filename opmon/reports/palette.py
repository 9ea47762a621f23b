"""The colours of the figures."""

from __future__ import annotations

from dataclasses import dataclass


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
    truth: str = "#1f2430"
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
