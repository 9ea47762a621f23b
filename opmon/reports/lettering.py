"""Names in pictures: written in a font that has their characters, and numbered where no font of this machine has."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from opmon.reports.text import shown

FONT = "DejaVu Sans"
"""Comes with matplotlib: it knows Latin, Greek, Cyrillic, Arabic and Hebrew, but no Chinese, Japanese or Korean."""
_OTHERS = re.compile(
    r"CJK|Noto Sans|Source Han|WenQuanYi|Droid Sans Fallback|PingFang|Hiragino|YaHei|SimHei|SimSun|Gothic|Nanum"
    r"|Arial Unicode|Unifont|Symbola|Lohit|FreeSans"
)
"""Fonts that have what the first one lacks, where somebody has installed one."""


def written(text: str) -> str:
    """A text with the code points of the characters that no font can write.

    >>> written("Köln"), written("v\\U000f0000")
    ('Köln', 'vU+F0000')
    """
    return "".join(each if _is_written(each) else f"U+{ord(each):04X}" for each in text if not _is_left_out(each))


def told_apart(names: Sequence[str], longest: int) -> tuple[list[str], str]:
    """Names for a picture, each of at most ``longest`` characters, and what their numbers stand for.

    A name gets the number of its place where no font can write it, or where it looks like another one once it is cut.

    >>> told_apart(["cat", "a very long name", "a very long word"], 10)
    (['cat', '#2 a very…', '#3 a very…'], '#2 is a very long name, #3 is a very long word')
    """
    short = [shown(name, longest) for name in names]
    alike = {name for name, times in Counter(map(written, short)).items() if times > 1}
    told: list[str] = []
    key: list[str] = []
    for place, (name, cut) in enumerate(zip(names, short, strict=True), 1):
        number = f"#{place}"
        if not all(map(_is_written, cut)):
            left = "".join(each for each in cut if _is_written(each) or each.isspace()).strip(" …")
            told.append(shown(f"{number} {left}".strip(), longest))
        elif written(cut) in alike:
            told.append(shown(f"{number} {name}", longest))
        else:
            told.append("".join(each for each in cut if not _is_left_out(each)))
            continue
        key.append(f"{number} is {shown(name, 80)}")
    return told, ", ".join(key)


def families(texts: Iterable[str]) -> list[str]:
    """The fonts that write some texts, the first one first."""
    missing = {ord(each) for text in texts for each in text} - _signs_of(str(_own()))
    found = [FONT]
    for name, path in _candidates() if missing else ():
        if missing & _signs_of(path):
            found.append(name)
            missing -= _signs_of(path)
    return found


def font_file(text: str) -> Path:
    """The file of the one font that writes most of a text."""
    wanted = {ord(each) for each in text}
    best = str(_own())
    if not wanted <= _signs_of(best):
        best = max([best, *(path for _, path in _candidates())], key=lambda path: len(wanted & _signs_of(path)))
    return Path(best)


def _is_written(character: str) -> bool:
    sign = ord(character)
    return sign in _signs_of(str(_own())) or any(sign in _signs_of(path) for _, path in _candidates())


def _is_left_out(character: str) -> bool:
    """Whether it is no sign of its own, such as what makes an emoji of a sign, and no font has it."""
    unseen = unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"
    return unseen and not _is_written(character)


def _own() -> Path:
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


@lru_cache(maxsize=1)
def _candidates() -> tuple[tuple[str, str], ...]:
    """The other fonts of this machine by name, upright and of usual weight, with their files."""
    from matplotlib.font_manager import fontManager

    plain = [
        each for each in fontManager.ttflist if each.style == "normal" and each.weight in (400, "normal", "regular")
    ]
    return tuple(sorted({each.name: each.fname for each in plain if _OTHERS.search(each.name)}.items()))


@lru_cache(maxsize=64)
def _signs_of(path: str) -> frozenset[int]:
    """The characters of a font; none where it cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
