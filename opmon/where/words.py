"""The words of a condition."""

from __future__ import annotations

import re

from opmon.grammar import BLANK, NO_ARITHMETIC, NUMBER, Grammar

_LIST = "a list of values stands in parentheses: in ('DE', 'AT')"

CONDITION = Grammar(
    "a condition",
    re.compile(
        rf"{BLANK}|{NUMBER}"
        r"|(?P<name>[^\W\d]\w*(?:\.[^\W]\w*|\[\d+\])*)"
        r"|(?P<quoted>`[^`\n]+`)"
        r"|(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
        r"|(?P<sign><=|>=|==|!=|<>|[<>=(),])"
    ),
    longest=4000,
    holds="a condition has columns, numbers, quoted text, comparisons, and, or, not",
    instead={
        "~": "write 'not', or like with % for any text",
        "'": "the quote is never closed",
        '"': "the quote is never closed",
        "`": "the backquote is never closed",
        "[": _LIST,
        "{": _LIST,
        "-": f"{NO_ARITHMETIC}; a column whose name has a dash stands in backquotes",
        ";": "one condition is enough: join two with and, or",
    },
)
"""Names in backquotes are of the kind ``quoted``."""
