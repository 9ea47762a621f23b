"""How numbers are put into words, the same everywhere: shares in per cent, differences of shares in points, counts.

Pure: numbers in, text out. What a number is *of* (its name, its unit, how many digits an interval leaves) says
:mod:`opmon.quantities`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise

ABSENT = "–"
_MOST_DIGITS = 6
_LARGE, _SMALL = 1e15, 1e-6
"""Beyond these numbers are written with powers of ten."""
_POWER = re.compile(r"e([+-])0*(\d+)")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_ONE = ("1", "-1", "−1")
_OF_TIME = ("seconds", "minutes", "hours", "days", "weeks", "months", "quarters", "years")
_OF_COUNTS = ("points", "pieces", "items", "units", "visits", "clicks", "calls", "orders", "rooms")
_OF_MEASURES = ("dollars", "euros", "pounds", "cents", "degrees", "metres", "meters", "miles", "grams")
PLURALS = frozenset((*_OF_TIME, *_OF_COUNTS, *_OF_MEASURES))
"""Units of which one is written without its last letter."""


def percent(share: float | None, digits: int | None = None) -> str:
    """A share in per cent: to one decimal, or to ``digits``; near none and near all to as many as tell it from them.

    >>> percent(0.9234), percent(0.9), percent(0.9, 1), percent(0.99953), percent(None), percent(-1e-9, 1)
    ('92.3 %', '90 %', '90.0 %', '99.95 %', '–', '0.0 %')
    """
    if share is None or math.isnan(share):
        return ABSENT
    if math.isinf(share):
        return infinite(share)
    if digits is not None:
        return f"{100 * share:z.{digits}f} %"
    text = f"{100 * share:z.{share_digits(share)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def exactly(value: float, *, in_percent: bool = False) -> str:
    """A number that somebody chose, such as a threshold: with all of its digits.

    >>> exactly(0.9975, in_percent=True), exactly(0.9, in_percent=True), exactly(12345.25), exactly(2.5e10)
    ('99.75 %', '90 %', '12,345.25', '25,000,000,000')
    >>> exactly(5e-05), exactly(5e-12), exactly(1e18)
    ('0.00005', '5·10⁻¹²', '10¹⁸')
    """
    if not math.isfinite(value):
        return percent(value) if in_percent else number(value)
    size = 100 * value if in_percent else value
    text = f"{size:.{10 if abs(size) < 1e10 else 15}g}"
    if "e-" in text and abs(size) >= _SMALL:
        text = f"{Decimal(text):f}"
    elif "e" not in text:
        text = f"{float(text):z,.{len(text.partition('.')[2])}f}"
    return f"{_raised(text)} %" if in_percent else _raised(text)


def beside_axis(ticks: Sequence[float], *, in_percent: bool = False) -> list[str]:
    """What stands beside the ticks of an axis: with as many digits as they need to be told apart, and no more.

    >>> beside_axis([0.912, 0.9122, 0.9124], in_percent=True), beside_axis([0.0, 2.5, 5.0]), beside_axis([1e9, 1.5e9])
    (['91.20 %', '91.22 %', '91.24 %'], ['0.0', '2.5', '5.0'], ['1,000,000,000', '1,500,000,000'])
    """
    sizes = [100 * tick if in_percent else tick for tick in ticks]
    most = max((abs(size) for size in sizes), default=0.0)
    near = 1e-3 * min((later - earlier for earlier, later in pairwise(sizes)), default=most)
    unit = " %" if in_percent else ""
    if not in_percent and (most >= _LARGE or 0 < most < _SMALL):
        shapes = [f"z.{digits}g" for digits in range(1, 16)]
    else:
        shapes = [f"z,.{digits}f" for digits in range(13)]
    for shape in shapes:
        texts = [format(size, shape) for size in sizes]
        if all(abs(float(text.replace(",", "")) - size) <= near for text, size in zip(texts, sizes, strict=True)):
            break
    return [f"{_raised(text)}{unit}" for text in texts]


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


def number(value: float, digits: int | None = None, beside: float = 0.0) -> str:
    """A number that is no share: with ``digits`` decimals, else with four that count.

    Beside a larger one, such as an end of its interval, it is written as that one is, and not with a power of ten.

    >>> number(3.14159), number(12345.6), number(3.0, 1), number(2.3815e10, 0), number(float("inf")), number(-0.0, 0)
    ('3.142', '12,346', '3.0', '23,815,000,000', '∞', '0')
    >>> number(5e-05), number(1.565e-9), number(-2.5e16)
    ('0.00005', '1.565·10⁻⁹', '-2.5·10¹⁶')
    """
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return infinite(value)
    size = abs(value)
    largest = max(size, beside)
    if largest >= _LARGE or 0 < largest < _SMALL:
        return _raised(f"{value:z.4g}")
    if digits is None:
        digits = 0 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
        text = f"{value:z,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:z,.{digits}f}"


def counting(value: float, digits: int = 6, mark: str = "") -> str:
    """A number from elsewhere, such as a column of the log, with the ``digits`` that count; ``mark`` tells thousands.

    >>> counting(1234567.891), counting(464600.25, 4), counting(0.1 + 0.2), counting(5e-05), counting(2026.0)
    ('1234568', '464600', '0.3', '0.00005', '2026')
    """
    if not math.isfinite(value):
        return number(value)
    size = abs(value)
    if size and not _SMALL <= size < _LARGE:
        return _raised(f"{value:z.{digits}g}")
    decimals = 0 if size == 0 else max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:z{mark}.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _raised(text: str) -> str:
    """A number that Python wrote with a power of ten, as people write it; any other as it is."""
    found = _POWER.search(text)
    if found is None:
        return text
    front, sign = text[: found.start()], "⁻" if found[1] == "-" else ""
    power = f"10{sign}{found[2].translate(_RAISED)}"
    return f"{front[:-1]}{power}" if front in _ONE else f"{front}·{power}"


def in_unit(text: str, unit: str | None) -> str:
    """A number with the unit behind it, which people give as they say it of many.

    >>> in_unit("2.5", "days"), in_unit("1", "days"), in_unit("1", "€"), in_unit("1.0", "days"), in_unit("3", None)
    ('2.5 days', '1 day', '1 €', '1.0 days', '3')
    """
    return f"{text} {(unit or '')[: -1 if text in _ONE and unit in PLURALS else None]}".rstrip()


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``number`` with its noun.

    >>> counted(1, "failure"), counted(12345, "failure")
    ('1 failure', '12,345 failures')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def none_of(number: int, noun: str, does: str, does_not: str) -> str:
    """That none of so many things does something, as one says it of many and of a single one.

    >>> none_of(12, "draw", "has an answer", "has no answer"), none_of(1, "draw", "has an answer", "has no answer")
    ('none of the 12 draws has an answer', 'the only draw has no answer')
    """
    return f"the only {noun} {does_not}" if number == 1 else f"none of the {counted(number, noun)} {does}"


def spans(numbers: Iterable[int]) -> str:
    """Whole numbers, those that follow each other as one span.

    >>> spans([1, 2, 3, 5, 8, 7]), spans([4]), spans([1, 2])
    ('1 to 3, 5, 7 and 8', '4', '1 and 2')
    """
    found: list[list[int]] = []
    for each in sorted(set(numbers)):
        if found and each == found[-1][-1] + 1:
            found[-1].append(each)
        else:
            found.append([each])
    parts = [f"{own[0]} to {own[-1]}" if len(own) > 2 else " and ".join(map(str, own)) for own in found]
    return ", ".join(parts)


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


def sentence(text: str) -> str:
    """With a full stop at its end, unless it ends as a sentence does.

    >>> sentence("there is no class 'b'"), sentence("Did you mean 'a'?")
    ("there is no class 'b'.", "Did you mean 'a'?")
    """
    return text if text.endswith((".", "?")) else f"{text}."


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


def within(hours: float) -> str:
    """How soon something came.

    >>> within(0.0), within(0.5), within(1.0), within(30.25), within(2400.0)
    ('at once', 'within 0.5 hours', 'within 1 hour', 'within 30.2 hours', 'within 100 days')
    """
    if hours < 0.05:
        return "at once"
    size, unit = (hours / 24, "days") if hours >= 48 else (hours, "hours")
    return f"within {in_unit(counting(size, 3), unit)}"


def lasted(seconds: float) -> str:
    """How long something took, roughly.

    >>> lasted(90), lasted(7300), lasted(86400 * 12)
    ('90 s', '2 h', '12 d')
    """
    if seconds < 7200:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.0f} h" if seconds < 2 * 86400 else f"{seconds / 86400:,.0f} d"
