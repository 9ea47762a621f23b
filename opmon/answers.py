"""Answers as people read them: what a model said of an input, and what is true."""

from __future__ import annotations

import json

from opmon.label_sets import shown
from opmon.problems import Problem, traits
from opmon.wording import in_unit, number

_IN_FULL = 1e15
"""Numbers of labels below it are written out: a price of twelve million is read as one."""


def readable(answer: str, problem: Problem, unit: str | None = None) -> str:
    """An answer in words: classes by their names, a number in ``unit`` with the digits that count.

    >>> readable("98252.40183", "regression", "€"), readable("0.123456", "regression")
    ('98,252 €', '0.1235')
    >>> readable('["price", "staff"]', "multilabel"), readable("[]", "multilabel"), readable("007", "classification")
    ('price, staff', 'none of them', '007')
    """
    of = traits(problem)
    try:
        if of.of_numbers:
            return in_unit(_number(float(answer)), unit)
        return shown(answer) if of.of_classes and not of.one_class else answer
    except (TypeError, ValueError, json.JSONDecodeError):
        return answer


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < _IN_FULL else number(value)
