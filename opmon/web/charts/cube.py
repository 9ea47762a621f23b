"""The tests of three perturbations as layers of voxels, seen from above: one layer for each severity of the third."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_WIDE, _HIGH, _THICK = 15.0, 7.5, 5.0
"""Half the width and height of a voxel's top, and how thick it is."""
_APART = 0.8
"""How far a layer lies above the one below, in heights of a layer."""
_LEFT, _BELOW, _LONGEST = 44.0, 34.0, 22


@dataclass(frozen=True, slots=True)
class Voxel:
    """One test: how dark it is, from 0 to 10; whether it was measured, and whether it is asked about."""

    heat: int
    measured: bool
    asked: bool
    text: str
    """Its share in per cent, as a table has it."""
    words: str


Layers = Sequence[Sequence[Sequence[Voxel | None]]]
"""By the severities of the third, the first and the second perturbation; None: there is no such test."""


def cube(layers: Layers, names: tuple[str, str, str], alt: str) -> Markup:
    """The layers, that of severity 0 lowest."""
    side = len(layers)
    wide, high = 2 * side * _WIDE, 2 * side * _HIGH
    step = _APART * high
    height = high + step * (side - 1) + _THICK + _BELOW
    parts: list[str] = []
    for level, layer in enumerate(layers):
        top = height - _BELOW - _THICK - high - level * step
        parts += _layer(layer, _LEFT + wide / 2, top)
        parts.append(_text(_LEFT - 8, top + high / 2, str(level), "tick"))
    foot = height - 8
    parts.append(_text(_LEFT + wide * 0.25, foot, f"{_short(names[0])} ↘", "date"))
    parts.append(_text(_LEFT + wide * 0.75, foot, f"↙ {_short(names[1])}", "date"))
    parts.append(f'<text class="tick" transform="translate(12 {height / 2:g}) rotate(-90)">↑ {_named(names[2])}</text>')
    return Markup(  # noqa: S704 - numbers, and text that is escaped
        f'<svg class="chart cube" viewBox="0 0 {_LEFT + wide + 8:g} {height:g}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def _layer(layer: Sequence[Sequence[Voxel | None]], middle: float, top: float) -> Iterator[str]:
    """Its voxels from the back to the front, so that those in front lie over those behind."""
    for back in range(2 * len(layer) - 1):
        for first in range(max(0, back - len(layer) + 1), min(back + 1, len(layer))):
            found = layer[first][back - first]
            if found is not None:
                yield from _voxel(found, middle + (2 * first - back) * _WIDE, top + back * _HIGH)


def _voxel(voxel: Voxel, x: float, y: float) -> Iterator[str]:
    """Its top, and its two sides in the shade; ``x`` and ``y`` are where the top's back corner is."""
    a, b = _WIDE * 0.9, _HIGH * 0.9
    y += 2 * (_HIGH - b) / 2
    kind = f"h{voxel.heat}{' measured' if voxel.measured else ''}{' asked' if voxel.asked else ''}"
    yield f'<g class="{kind}"><title>{escape(voxel.words)}</title>'
    yield f'<path d="M{x - a:.4g} {y + b:.4g}v{_THICK:g}l{a:g} {b:g}l{a:g} {-b:g}v{-_THICK:g}Z"/>'
    yield f'<path class="shade" d="M{x - a:.4g} {y + b:.4g}v{_THICK:g}l{a:g} {b:g}l{a:g} {-b:g}v{-_THICK:g}'
    yield f'l{-a:g} {b:g}Z"/>'
    yield f'<path class="face" d="M{x:.4g} {y:.4g}l{a:g} {b:g}l{-a:g} {b:g}l{-a:g} {-b:g}Z"/></g>'


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>'


def _named(name: str) -> str:
    return str(escape(_short(name)))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
