"""What a round's log held and its estimate does not speak of: counted by kind and reason, kept with the round.

``filtered``: rows that the configuration leaves out: they are no inputs. ``thinned``: rows that were logged with a
greater probability than others, left out so that all speak alike. ``unlogged``: inputs that production had and did not
log, as its recorder counted. ``unscorable``: inputs that the model could not be run on, or that cannot be read.
``late``: inputs of a time before the end of the round before; they count like others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from opmon.abc import Source
from opmon.jobs.counting import bounded
from opmon.stages.counting import Counted
from opmon.types import Slice

MOST = 20
"""So many reasons of a kind are kept apart."""

Kind = Literal["filtered", "thinned", "unlogged", "unscorable", "late"]
Losses = Mapping[str, Mapping[str, int]]
"""For each kind the reasons, and how many for each."""


def opened(source: Source, slices: Sequence[Slice], counted: Counted) -> Losses:
    """What is known when a round opens."""
    even = {"logged with a greater probability than others": counted.thinned}
    return _told({"filtered": {"inputs.where": counted.filtered}, "thinned": even, "unlogged": source.lost(slices)})


def added(first: Losses | None, second: Losses) -> Losses:
    """The losses of both."""
    kinds = dict.fromkeys((*(first or {}), *second))
    return _told({kind: Counter((first or {}).get(kind, {})) + Counter(second.get(kind, {})) for kind in kinds})


def total(losses: Losses | None, kind: Kind) -> int:
    """How many of one kind."""
    return sum((losses or {}).get(kind, {}).values())


def _told(losses: Losses) -> Losses:
    return {kind: dict(bounded(+Counter(reasons), MOST)) for kind, reasons in losses.items() if sum(reasons.values())}
