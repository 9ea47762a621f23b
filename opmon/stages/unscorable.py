"""Inputs that cannot be judged: counted by their reasons, and when they are so many that a round stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

import numpy as np

from opmon.config import MonitorSettings
from opmon.errors import SourceError
from opmon.scoring.scored import Scored
from opmon.stages.served import Served
from opmon.wording import percent

LOOKED_AT = 100
"""Of fewer inputs than this, a column that is empty in all of them says nothing."""


def unscorable(
    settings: MonitorSettings,
    received: int,
    scored: Sequence[Scored],
    production: Served | None,
    lost: Mapping[str, int] | None = None,
) -> Counter[str]:
    """Why inputs cannot be judged, and how many for each reason; ``lost`` are those that could not even be read.

    An error where the round must stop: its inputs are not what the model takes, or not what it answered.
    """
    reasons = Counter(reason for part in scored for reason in part.rejected.values())
    reasons.update(lost or {})
    missing: Counter[str] = Counter()
    for part in scored:
        missing.update(part.missing)
    if production is not None:
        production.require(settings.round.max_skew)
        reasons.update(production.stray(row) for row in np.flatnonzero(production.strays).tolist())
    require_scorable(reasons, received, settings.round.max_unscorable)
    if reasons.total() < received:  # some were answered without it
        require_filled(missing, received, settings.inputs.missing.empty)
    return reasons


def too_many(count: int, of: int, most: float) -> bool:
    """Whether so many unscorable inputs stop a round: the others would not speak for them. One alone never does.

    >>> too_many(1, 3, 0.1), too_many(20, 200, 0.1), too_many(21, 200, 0.1)
    (False, False, True)
    """
    return count > max(1, most * of)


def told(reasons: Counter[str]) -> str:
    """The most frequent of them.

    >>> told(Counter({"column 'age' is empty": 79}))
    "column 'age' is empty (79)"
    """
    shown = "; ".join(f"{reason} ({times})" for reason, times in reasons.most_common(3))
    return f"{shown}; …" if len(reasons) > 3 else shown


def require_scorable(reasons: Counter[str], received: int, most: float) -> None:
    """An error where more than the share ``most`` of the inputs cannot be scored."""
    count = reasons.total()
    if too_many(count, received, most):
        raise SourceError(
            f"{count} of {received} inputs cannot be scored ({percent(count / received)}), and round.max_unscorable is "
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
