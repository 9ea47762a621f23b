"""Inputs that cannot be judged: counted by their reasons, and when they are so many that a round stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from opmon.errors import SourceError

LOOKED_AT = 100
"""Of fewer inputs than this, a column that is empty in all of them says nothing."""


def too_many(count: int, of: int, most: float) -> bool:
    """Whether so many unscorable inputs stop a round: the others would not speak for them. One alone never does.

    >>> too_many(1, 3, 0.1), too_many(20, 200, 0.1), too_many(21, 200, 0.1)
    (False, False, True)
    """
    return count > max(1, most * of)


def told(reasons: Counter[str]) -> str:
    """The most frequent reasons.

    >>> told(Counter({"column 'age' is empty": 79}))
    "column 'age' is empty (79)"
    """
    return "; ".join(f"{reason} ({times})" for reason, times in reasons.most_common(3))


def require_scorable(reasons: Counter[str], received: int, most: float) -> None:
    """An error where more than the share ``most`` of the inputs cannot be scored."""
    count = reasons.total()
    if too_many(count, received, most):
        raise SourceError(
            f"{count} of {received} inputs cannot be scored ({count / received:.1%}), and round.max_unscorable is "
            f"{most:g}: {told(reasons)}. Correct how inputs are read or what they point to, or raise the limit"
        )


def require_filled(missing: Mapping[str, int], received: int, may: Container[str]) -> None:
    """An error where a column that the model takes holds nothing at all: it may have been renamed.

    A model that stands missing values would answer as if it never knew the column, and look worse than it is.
    """
    empty = [name for name, count in missing.items() if count >= received >= LOOKED_AT and name not in may]
    if empty:
        raise SourceError(
            f"the model takes {', '.join(map(repr, empty[:6]))}, which holds nothing in any of {received} inputs. Was "
            f"it renamed, or left out of the log? Correct 'inputs', or name it in inputs.missing.empty if that is meant"
        )
