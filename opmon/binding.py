"""Numbers that stay with their units where lines are broken: one place for pages, Markdown and terminals.

Sentences themselves have plain blanks, so that they can be searched, compared and read by programs: what puts them on
paper binds them, as its last step.
"""

from __future__ import annotations

import re

BLANK = "\N{NO-BREAK SPACE}"
_UNIT = (
    r"(?:[%‰°€$£¥]|(?:points?|ms|s|min|h|d|bytes?|seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b"
    r"|[^\W\d_]{1,6}[²³/]"
    r"|(?!(?:UTC|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b)[^\W\d_]{0,3}[A-Z][^\W\d_]{0,2}\b)"
)
"""What a unit looks like: signs, lengths of time, sizes, powers, ratios, and short words with a capital such as kWh.
Moments have none: the pages' own script finds them by their words, and puts them into the reader's zone."""
_WORD = (
    r"(?!(?:a|an|and|are|as|at|but|by|for|from|if|in|is|it|nor|not|of|on|or|out|over|per|so|than|that|the|to|was|were"
    r"|with)\b)[^\W\d_]{1,12}\b"
)
"""Behind a number with decimals any noun is its unit: monitors name what their labels are measured in."""
_NUMBER = rf"(?:\.\d+(?:</\w+>)* (?={_UNIT}|{_WORD})|(?<=[\d∞])(?:</\w+>)* (?={_UNIT})|± (?=\d))"
_IN_TEXT = re.compile(_NUMBER)
_RAW = frozenset(("script", "style", "pre", "code", "textarea"))
"""Elements whose text is no running text, or is read by a program."""
_IN_PAGE = re.compile(rf"{_NUMBER}|<(?P<end>/?)(?P<name>\w+)[^<>]*>")


def bound(text: str, blank: str = BLANK) -> str:
    """A text in which no line breaks between a number and its unit.

    >>> bound("83 % of 200 inputs, ± 2 points, 3.25 frobs of 4.5", "~")
    '83~% of 200 inputs, ±~2~points, 3.25~frobs of 4.5'
    """
    return _IN_TEXT.sub(lambda found: found[0].replace(" ", blank), text)


def bound_page(html: str) -> str:
    """The same of a page, whose tags stay as they are.

    >>> bound_page('<b title="83 %">83</b> % in <code>5 days</code>').replace(BLANK, "~")
    '<b title="83 %">83</b>~% in <code>5 days</code>'
    """
    inside = ""

    def replaced(found: re.Match[str]) -> str:
        nonlocal inside
        name = found["name"]
        if name in _RAW and inside in ("", name):
            inside = "" if found["end"] else name
        return found[0] if name or inside else found[0].replace(" ", BLANK)

    return _IN_PAGE.sub(replaced, html)
