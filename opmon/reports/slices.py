"""The slices of a round: its metrics for MLflow, and their rows on the round's page."""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from opmon.quantities import Quantity
from opmon.types.slicing import Sliced
from opmon.wording import percent, share_digits

LONGEST = 60
"""So much of a slice's name is in its key, and on the figure."""


def key_of(name: str) -> str:
    """The name of a slice as MLflow's keys have it: the same in every round, another for each name.

    >>> key_of("country DE"), key_of("age 30-60, country DE")
    ('country_DE', 'age_30-60__country_DE')
    >>> key_of("country Österreich")
    'country_Osterreich_67350db0'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    key = "__".join(re.sub(r"[^\w.\-]+", "_", part) for part in plain.split(", ")).strip("_")[:LONGEST]
    exact = re.fullmatch(r"[\w.\-]+( [\w.\-]+)*(, [\w.\-]+( [\w.\-]+)*)*", name, re.ASCII) and "_" not in name
    return key if exact and len(key) < LONGEST else f"{key}_{zlib.crc32(name.encode()):08x}"


def rolling_slice_metrics(slices: Sequence[Sliced], quantity: Quantity, *, revised: bool) -> dict[str, float]:
    """Estimate and bounds of every slice over the last rounds: ``slice/<name>/accuracy_rolling`` and beside it."""
    return _of_slices(slices, quantity, "_rolling_revised" if revised else "_rolling")


def slice_metrics(slices: Sequence[Sliced], quantity: Quantity, *, revised: bool) -> dict[str, float]:
    """Estimate, bounds and share of every slice with an answer: ``slice/<name>/accuracy`` and beside it.

    At most as many slices as a monitor can have; ``revised``: what late labels have made of them.
    """
    found = _of_slices(slices, quantity, "_revised" if revised else "")
    if slices and not revised:
        found |= {f"slice/{key_of(each.name)}/share": each.share for each in slices}
        found["slices/worse"] = float(sum(each.worse_by is not None for each in slices))
    return found


def _of_slices(slices: Sequence[Sliced], quantity: Quantity, ending: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in slices:
        group = f"slice/{key_of(each.name)}/{quantity.key}{ending}"
        known = {"": each.value, "_low": each.low, "_high": each.high}
        found |= {f"{group}{name}": value for name, value in known.items() if value is not None}
    return {key: value for key, value in found.items() if math.isfinite(value)}


@dataclass(frozen=True)
class SliceRow:
    """A slice in the words of a page."""

    name: str
    share: str
    answers: str
    estimate: str
    note: str
    worse: str
    """By how much it is worse than the others; empty where that is not known."""


def slice_rows(slices: Sequence[Sliced], quantity: Quantity) -> list[SliceRow]:
    """The slices for a page: those that are worse first, then as they are configured."""
    return [
        SliceRow(
            each.name,
            percent(each.share, share_digits(each.share)),
            f"{each.answers:,}",
            interval_of(each, quantity),
            note_of(each),
            worse_of(each, quantity),
        )
        for each in slices
    ]


def interval_of(found: Sliced, quantity: Quantity) -> str:
    """The estimate with its interval, as it is written everywhere."""
    if found.value is None:
        return "–"
    low, high = bounds_of(found)
    return quantity.interval(found.value, low, high)


def bounds_of(found: Sliced) -> tuple[float, float]:
    """The bounds of its interval; infinite where there is none."""
    return (-math.inf if found.low is None else found.low, math.inf if found.high is None else found.high)


def note_of(found: Sliced) -> str:
    """What must be known of it, in short."""
    return "too few answers to say more than bounds" if found.note.startswith("too few to say") else found.note


def worse_of(found: Sliced, quantity: Quantity) -> str:
    """By how much it is worse than all other inputs, and by how much at least."""
    if found.worse_by is None or found.worse_at_least is None:
        return ""
    digits = quantity.digits(*bounds_of(found))
    by, least = (quantity.difference(each, digits) for each in (found.worse_by, found.worse_at_least))
    return f"worse than the other inputs by {by}, at least {least}"
