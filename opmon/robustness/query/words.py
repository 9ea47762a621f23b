"""The words of a query."""

from __future__ import annotations

import re

from opmon.grammar import BLANK, NO_ARITHMETIC, NUMBER, Grammar

QUERY = Grammar(
    "a query",
    re.compile(rf"{BLANK}|{NUMBER}|(?P<name>[^\W\d]\w*(?:-\w+)*)|(?P<sign><=|>=|==|!=|[<>=(){{}},])"),
    longest=2000,
    holds="a query has names, numbers, comparisons, and, or, not, and parentheses",
    instead={
        "'": "names stand without quotes",
        '"': "names stand without quotes",
        "[": "a list of numbers stands in braces: in {1, 2}",
        ".": "a number may be 0.5, and names have no dots",
        "+": f"{NO_ARITHMETIC}; severity_sum is the sum of all severities",
    },
)
