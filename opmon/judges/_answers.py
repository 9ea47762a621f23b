"""What a judge outside of opmon answers, read strictly: what is no answer is none."""

from __future__ import annotations

import math
from collections.abc import Mapping

from opmon.abc import Opinion
from opmon.types import Guide

LONGEST = 500


def opinion_of(key: str, said: object, guide: Guide) -> Opinion:
    """The opinion in an object with ``answer`` or ``scores``; one that could not tell where it holds neither.

    >>> opinion_of("a", {"answer": " cat "}, Guide(classes={"cat": ""})).answer
    'cat'
    >>> opinion_of("a", {"scores": {"cat": 0.9, "dog": 0.1}}, Guide()).scores
    {'cat': 0.9, 'dog': 0.1}
    >>> opinion_of("a", {"answer": ["cat"]}, Guide()).answer is None
    True
    """
    if not isinstance(said, Mapping):
        return Opinion(key)
    scores = said.get("scores")
    if isinstance(scores, Mapping) and scores and all(_is_share(score) for score in scores.values()):
        return Opinion(key, scores={str(name): float(score) for name, score in scores.items()})
    answer = said.get("answer")
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return Opinion(key)
    text = str(answer).strip()
    if not text or len(text) > LONGEST or (guide.problem == "regression" and not _is_number(text)):
        return Opinion(key)
    return Opinion(key, text)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
