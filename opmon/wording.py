"""How numbers are put into words, the same everywhere: shares in per cent, differences of shares in points, counts.

Pure: numbers in, text out. What a number is *of* (its name, its unit, how many digits an interval leaves) says
:mod:`opmon.quantities`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

ABSENT = "–"
_MOST_DIGITS = 6


def percent(share: float | None, digits: int | None = None) -> str:
    """A share in per cent: to one decimal, or to ``digits``; near none and near all to as many as tell it from them.

    >>> percent(0.9234), percent(0.9), percent(0.9, 1), percent(0.99953), percent(None)
    ('92.3 %', '90 %', '90.0 %', '99.95 %', '–')
    """
    if share is None or math.isnan(share):
        return ABSENT
    if math.isinf(share):
        return infinite(share)
    if digits is not None:
        return f"{100 * share:.{digits}f} %"
    text = f"{100 * share:.{share_digits(share)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def points(difference: float, digits: int = 1) -> str:
    """A difference of two shares: percentage points, which are not per cent.

    >>> points(0.267), points(0.01), points(-0.02), points(0.0004)
    ('26.7 points', '1 point', '2 points', '0.04 points')
    """
    size = 100 * abs(difference)
    while 0 < size < 0.5 * 10.0**-digits and digits < _MOST_DIGITS:
        digits += 1
    text = f"{size:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} {'point' if text == '1' else 'points'}"


def signed_points(difference: float) -> str:
    """
    >>> signed_points(0.02), signed_points(-0.267)
    ('+2 points', '−26.7 points')
    """
    return f"{'−' if difference < 0 else '+'}{points(difference)}"


def signed(value: float, text: str) -> str:
    """A text that says how large a number is, with the number's sign before it.

    >>> signed(-0.5, "0.5 days"), signed(2.0, "2 days"), signed(0.0, "0 days")
    ('−0.5 days', '+2 days', '0 days')
    """
    return text if value == 0 else f"{'−' if value < 0 else '+'}{text}"


def points_between(low: float, high: float) -> str:
    """An interval of differences of two shares.

    >>> points_between(-0.267, 0.02)
    '−26.7 to +2 points'
    """
    return f"{signed_points(low).partition(' ')[0]} to {signed_points(high)}"


def number(value: float, digits: int | None = None) -> str:
    """A number that is no share: with ``digits`` decimals, else with four that count.

    >>> number(3.14159), number(12345.6), number(3.0, 1), number(2.3815e10, 0), number(float("inf"))
    ('3.142', '12,346', '3.0', '2.382e+10', '∞')
    """
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return infinite(value)
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.4g}"
    if digits is None:
        digits = 0 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:,.{digits}f}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``number`` with its noun.

    >>> counted(1, "failure"), counted(12345, "failure")
    ('1 failure', '12,345 failures')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number: int) -> str:
    """A number of bytes.

    >>> size(999), size(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= one:
            return f"{number / one:.1f} {unit}"
    return f"{number} bytes"


def told(reasons: Counter[str]) -> str:
    """The most frequent of some reasons, each with how often it was met.

    >>> told(Counter({"column 'age' is empty": 79}))
    "column 'age' is empty (79)"
    """
    shown = "; ".join(f"{reason} ({times})" for reason, times in reasons.most_common(3))
    return f"{shown}; …" if len(reasons) > 3 else shown


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like the one that was written, if any is.

    >>> nearest("bugdet", ["type", "budget"]), nearest("x", ["type", "budget"])
    ('budget', None)
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=likeness)), None)


def did_you_mean(near: object | None) -> str:
    """The question at the end of an error; nothing where nothing is near.

    >>> did_you_mean(nearest("bugdet", ["type", "budget"])), did_you_mean(None)
    (" Did you mean 'budget'?", '')
    """
    return "" if near is None else f" Did you mean {near!r}?"


def meant(near: object | None) -> str:
    """The same question inside of a sentence.

    >>> meant(nearest("bugdet", ["type", "budget"])), meant(None)
    (" (did you mean 'budget'?)", '')
    """
    return "" if near is None else f" (did you mean {near!r}?)"


def infinite(value: float) -> str:
    """The sign of infinity."""
    return "∞" if value > 0 else "−∞"


def share_digits(share: float) -> int:
    """The decimals of a percentage that tell it from none and from all; one in the middle.

    >>> share_digits(0.5), share_digits(0.9995), share_digits(0.0), share_digits(1.2)
    (1, 2, 1, 1)
    """
    distance = 100 * min(share, 1 - share)
    if not 1e-12 < distance < 0.1:
        return 1
    return min(math.ceil(-math.log10(distance) - 1e-9), _MOST_DIGITS)


def pointed(what: str, text: str, start: int, stop: int, message: str) -> str:
    """A message with the place in ``text`` under it.

    >>> print(pointed("the query", "zoom >", 6, 7, "a value is missing"))
    the query cannot be read: a value is missing
      zoom >
            ^
    """
    line_start = text.rfind("\n", 0, start) + 1
    line_stop = text.find("\n", start)
    line = text[line_start : line_stop if line_stop >= 0 else len(text)]
    low = max(0, start - line_start - 60)
    shown = "".join(c if c.isprintable() else "?" for c in line[low : low + 110])
    under = max(1, min(stop - start, len(shown) - (start - line_start - low)))
    place = " " * (start - line_start - low) + "^" * under
    return f"{what} cannot be read: {message}\n  {shown}\n  {place}"


def lasted(seconds: float) -> str:
    """How long something took, roughly.

    >>> lasted(90), lasted(7300), lasted(86400 * 12)
    ('90 s', '2 h', '12 d')
    """
    if seconds < 7200:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.0f} h" if seconds < 2 * 86400 else f"{seconds / 86400:,.0f} d"
