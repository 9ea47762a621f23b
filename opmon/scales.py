"""How people say how good an output is: pass or fail, a score from 0 to 1, or one to five stars.

What was said is kept as it is read here, and tells its scale by itself: ``pass``, ``0.75``, ``4 of 5``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from opmon.errors import InputError

Scale = Literal["pass_fail", "score", "stars"]
PASS, FAIL = "pass", "fail"
STARS = 5

_PASS = frozenset(("pass", "passed", "yes", "y", "true", "ok", "1", "1.0"))
_FAIL = frozenset(("fail", "failed", "no", "n", "false", "0", "0.0"))
_OF_STARS = re.compile(r"([1-5])(?:\.0+)?(?:\s*(?:of|/)\s*5|\s*stars?)?\Z")
_KEPT_STARS = re.compile(r"([0-9]+) of ([0-9]+)\Z")

ALLOWED: Mapping[Scale, str] = {
    "pass_fail": "pass or fail (or yes, no, true, false, 1, 0)",
    "score": "a score from 0 to 1, such as 0.5 (or pass, fail, yes, no)",
    "stars": "one to five stars, such as 4",
}
"""What may be said, in words."""


def read(said: str, scale: Scale) -> str:
    """What was said, as it is kept.

    >>> read("Yes", "pass_fail"), read("0.50", "score"), read("pass", "score"), read("4", "stars")
    ('pass', '0.5', '1', '4 of 5')
    >>> read("85", "score")
    Traceback (most recent call last):
    opmon.errors.InputError: asks for a score from 0 to 1, such as 0.5 (or pass, fail, yes, no); got '85'
    """
    text = said.strip().lower()
    found = {"pass_fail": _verdict, "score": _score, "stars": _stars}[scale](text)
    if found is None:
        raise InputError(f"asks for {ALLOWED[scale]}; got {said[:60]!r}")
    return found


def score_of(said: str) -> float:
    """The score from 0 to 1 that is kept.

    >>> score_of("pass"), score_of("0.25"), score_of("4 of 5")
    (1.0, 0.25, 0.75)
    """
    if said in (PASS, FAIL):
        return float(said == PASS)
    stars = _KEPT_STARS.match(said)
    return (int(stars[1]) - 1) / (int(stars[2]) - 1) if stars else float(said)


def middle(said: list[str], how: Literal["mean", "median"]) -> str:
    """One score for those that several people gave, as it is kept.

    >>> middle(["1", "0.5"], "mean"), middle(["5 of 5", "4 of 5", "1 of 5"], "median")
    ('0.75', '0.75')
    """
    scores = sorted(map(score_of, said))
    half = len(scores) // 2
    median = scores[half] if len(scores) % 2 else (scores[half - 1] + scores[half]) / 2
    return plain(math.fsum(scores) / len(scores) if how == "mean" else median)


def plain(score: float) -> str:
    """A number without what it does not need.

    >>> plain(0.5), plain(1.0), plain(1 / 3)
    ('0.5', '1', '0.333333')
    """
    return f"{score:.6g}"


def _verdict(text: str) -> str | None:
    return PASS if text in _PASS else FAIL if text in _FAIL else None


def _score(text: str) -> str | None:
    verdict = None if text in ("1", "0", "1.0", "0.0") else _verdict(text)
    if verdict is not None:
        return "1" if verdict == PASS else "0"
    try:
        score = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return plain(score + 0.0) if 0 <= score <= 1 else None


def _stars(text: str) -> str | None:
    stars = _OF_STARS.match(text)
    return f"{stars[1]} of {STARS}" if stars else None
