"""Inputs that cannot be judged: counted by their reasons, and when they are so many that a round stops."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from opmon.config import MonitorSettings
from opmon.errors import SourceError
from opmon.jobs.served import Skew
from opmon.scoring.scored import Scored
from opmon.wording import percent, told

LOOKED_AT = 100
"""Of fewer inputs than this, a column that is empty in all of them says nothing."""
_SURPRISE = 20.0


@dataclass(frozen=True)
class Unscorable:
    """Inputs that cannot be judged: how many for each reason; and where columns that the model takes are empty."""

    reasons: Counter[str]
    gaps: Sequence[tuple[int, Mapping[str, int]]] = ()

    @classmethod
    def of(cls, scored: Sequence[Scored]) -> Unscorable:
        """Of what the model said of some batches."""
        reasons = Counter(reason for part in scored for reason in part.rejected.values())
        return cls(reasons, [(len(part.rows) + len(part.rejected), part.missing) for part in scored])


def require_judged(settings: MonitorSettings, received: int, losses: Unscorable, skew: Skew | None) -> Counter[str]:
    """Why inputs cannot be judged, and how many for each reason.

    An error where the round must stop: its inputs are not what the model takes, or not what it answered.
    """
    if skew is not None:
        skew.require(settings.round.max_skew)
    require_scorable(losses.reasons, received, settings.round.max_unscorable)
    if losses.reasons.total() < received:  # some were answered without it
        require_filled(losses.gaps, settings.round.max_unscorable, settings.inputs.missing.empty)
    return losses.reasons


def too_many(count: int, of: int, most: float) -> bool:
    """Whether so many unscorable inputs stop a round: the others would not speak for them. One alone never does.

    >>> too_many(1, 3, 0.1), too_many(20, 200, 0.1), too_many(21, 200, 0.1)
    (False, False, True)
    """
    return count > max(1, most * of)


def require_scorable(reasons: Counter[str], received: int, most: float) -> None:
    """An error where more than the share ``most`` of the inputs cannot be scored."""
    count = reasons.total()
    if too_many(count, received, most):
        raise SourceError(
            f"{count} of {received} inputs cannot be scored ({percent(count / received)}), and round.max_unscorable is "
            f"{most:g}: {told(reasons)}. Correct how inputs are read or what they point to, or raise the limit"
        )


def require_filled(parts: Sequence[tuple[int, Mapping[str, int]]], most: float, may: Container[str]) -> None:
    """An error where a column that the model takes is empty in a row of inputs: it may have been renamed.

    A model that stands missing values would answer as if it never knew the column, and look worse than it is. ``parts``
    are the inputs as they were read, such as file by file: how many, and how many of them lack which column. No more
    than the share ``most`` of all stops nothing.
    """
    total = sum(rows for rows, _ in parts)
    for name in dict.fromkeys(name for _, missing in parts for name in missing):
        longest = _longest_gap([(rows, missing.get(name, 0)) for rows, missing in parts])
        filled = total - sum(missing.get(name, 0) for _, missing in parts)
        if name in may or not too_many(longest, total, most) or not _is_odd(longest, filled, total):
            continue
        others = f", and something in {percent(filled / (total - longest))} of the others" if longest < total else ""
        raise SourceError(
            f"the model takes {name!r}, which holds nothing in {longest} inputs in a row{others}. Was it renamed, or "
            f"left out of the log? Correct 'inputs', or name it in inputs.missing.empty if that is meant"
        )


def _longest_gap(parts: Sequence[tuple[int, int]]) -> int:
    """The most inputs one after the other that lack a column, counted in whole parts."""
    longest = run = 0
    for rows, missing in parts:
        run = run + rows if missing == rows else 0
        longest = max(longest, run)
    return longest


def _is_odd(run: int, filled: int, total: int) -> bool:
    """Whether chance would leave so many inputs in a row empty less often than once in e^20 times."""
    if run == total:
        return total >= LOOKED_AT
    rate = filled / (total - run + 1)
    return -run * math.log1p(-rate) >= _SURPRISE
