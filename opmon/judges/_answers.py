"""What a judge outside of opmon answers, read strictly: what is no answer is none."""

from __future__ import annotations

import json
from collections.abc import Mapping

from opmon.abc import Opinion
from opmon.replies import Replies
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
    >>> opinion_of("a", {"answer": True}, Guide("judged", scale="pass_fail")).answer
    'True'
    """
    if not isinstance(said, Mapping):
        return Opinion(key)
    scores = said.get("scores")
    if isinstance(scores, Mapping) and scores and all(_is_share(score) for score in scores.values()):
        return Opinion(key, scores={str(name): float(score) for name, score in scores.items()})
    answer = said.get("answer")
    is_list = isinstance(answer, list) and guide.problem == "multilabel"
    is_verdict = isinstance(answer, bool) and guide.problem == "judged"
    is_plain = isinstance(answer, str | int | float) and not isinstance(answer, bool)
    text = json.dumps(answer) if is_list else str(answer).strip()
    if not (is_list or is_verdict or is_plain) or not text or len(text) > LONGEST:
        return Opinion(key)
    read = Replies(guide.problem, scale=guide.scale).may_be(text)
    return Opinion(key) if read is None else Opinion(key, text)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
