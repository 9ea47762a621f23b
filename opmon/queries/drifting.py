"""What drifted in a round, and whether the model became worse with it: against the rounds before that did not drift.

It follows from what is kept of rounds, so that late labels of any of them are in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opmon.estimators.changes import Interval, change, worse_slices
from opmon.estimators.intervals import wilson
from opmon.queries.drift_words import Compared, told
from opmon.store import revisions, rounds, sliced
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types import Document, Estimate
from opmon.types.drifting import PARTS, DriftedPart, Loss, Part, RoundDrift, SliceDrift, surely
from opmon.types.slicing import PREDICTION as PREDICTED
from opmon.types.slicing import Sliced

LOOKED_BACK = 30
"""So many rounds before are looked at."""
AGAINST = 10
"""A round is compared with so many of them, the newest ones that did not drift."""
ANSWERS = 10
"""A slice is compared where it has so many answers, now and before."""
PREDICTION = "model prediction"

Kept = Mapping[int, Document]


def round_drift(connection: Connection, round_: Round, revision: Revision | None) -> RoundDrift | None:
    """What drifted in a round, whether with loss and in which slices; None where nothing was compared."""
    own = round_.drift or {}
    if not own.get("compared"):
        return None
    final = None if revision is None or revision.estimate.provisional else revision
    before = [] if final is None else _before(connection, round_.monitor, final)
    kept = rounds.drift_of(connection, round_.monitor, [each.round_number for each in before])
    still = [each for each in before if not any(part.drifted for part in _parts(kept.get(each.round_number, {})))]
    chosen = (still or before)[-AGAINST:]
    estimate = None if final is None else final.estimate
    found = None
    if estimate is not None:
        earlier = [_interval(each.estimate) for each in chosen]
        found = change(_interval(estimate), earlier, estimate.quantity.better, chance=(1 - estimate.level) / 2)
    slices, looked_at = _slices(connection, round_, final, chosen, kept)
    loss: Loss = "not known" if found is None or found.is_open else "loss" if found.is_loss else "none seen"
    compared = Compared(found, estimate, tuple(each.round_number for each in chosen), bool(still), looked_at)
    parts = _parts(own)
    return RoundDrift(
        parts=parts,
        loss=loss,
        worse_by=None if found is None else found.worse_by,
        low=None if found is None or not math.isfinite(found.low) else found.low,
        high=None if found is None or not math.isfinite(found.high) else found.high,
        against=compared.against,
        slices=slices,
        words=told(parts, loss, compared, slices),
    )


def _before(connection: Connection, monitor: str, final: Revision) -> list[Revision]:
    """The rounds of the same model version before, with a final estimate of the same."""
    around = revisions.finals_around(connection, monitor, final, count=LOOKED_BACK + 1, within=None, later=False)
    return [each for each in around if each.round_number < final.round_number]


def _interval(estimate: Estimate) -> Interval:
    known = Interval(estimate.value, estimate.low, estimate.high)
    return _by_chance(known, estimate.frame_size, estimate.answers, estimate)


def _by_chance(known: Interval, inputs: float, answers: float, of: Estimate) -> Interval:
    """What is known of some inputs, taken as inputs that came by chance: others would be more or less often right,
    though the model is the same, also where the truth of all of them is known.

    A share gets the distance to the bounds of Wilson's interval from as many ``inputs`` beside its own, as independent
    ones are added. Of others the deviation of single inputs is not kept, but follows from their interval: that of ``n``
    from ``N`` is shorter by ``sqrt(1 − n/N)`` than one for any inputs (by less where draws may repeat an input: theirs
    becomes a little too long). What was counted stays as it is, and is compared by how rounds differ.
    """
    if inputs < 1:
        return known
    if not of.quantity.share:
        part = answers / inputs
        wider = 1 / math.sqrt(1 - part) if part < 1 else math.sqrt(1 + part)
        down, up = wider * (known.value - known.low), wider * (known.high - known.value)
        return Interval(known.value, known.value - down, known.value + up)
    low, high, _ = wilson(min(max(known.value, 0.0), 1.0), inputs, of.level)
    down, up = max(known.value - low, 0.0), max(high - known.value, 0.0)
    return Interval(
        known.value,
        known.value - math.hypot(known.value - known.low, down),
        known.value + math.hypot(known.high - known.value, up),
    )


def _parts(kept: Document) -> tuple[DriftedPart, ...]:
    """The columns by what they are, and those of them that drifted with one error over all."""
    columns = kept.get("compared") or ()
    drifted = _sure(columns)
    of: dict[Part, list[str]] = {part: [] for part in PARTS}
    for column in columns:
        name = column["name"]
        of["inputs" if not column["own"] else "predictions" if name == PREDICTION else "scores"].append(name)
    return tuple(
        DriftedPart(part, len(names), tuple(name.removeprefix("model ") for name in names if name in drifted))
        for part, names in of.items()
        if names
    )


def _sure(columns: Sequence[Document]) -> set[str]:
    """Those that drifted: of tests with a p-value, with one error over all of them."""
    tested = [column for column in columns if column["value"] is not None and column["method"].endswith("p_value")]
    rejected = surely([column["value"] for column in tested])
    names = {column["name"] for column, is_so in zip(tested, rejected, strict=True) if is_so}
    return names | {column["name"] for column in columns if column not in tested and column["drifted"]}


def _slices(
    connection: Connection, round_: Round, final: Revision | None, chosen: Sequence[Revision], kept: Kept
) -> tuple[tuple[SliceDrift, ...], int]:
    """The slices and predicted classes that are surely worse, or in which inputs drifted; and how many were compared
    by what they estimate."""
    parts = sliced.of(connection, [each.key for each in (*chosen, *([] if final is None else [final]))])
    shown = () if final is None else parts.get(final.key, ())
    now = _known(shown, round_.drift or {}, None if final is None else final.estimate)
    earlier = [_known(parts.get(each.key, ()), kept.get(each.round_number, {}), each.estimate) for each in chosen]
    pairs = {
        name: (own, [one for each in earlier if (one := each[name].interval if name in each else None) is not None])
        for name, slice_ in now.items()
        if (own := slice_.interval) is not None
    }
    pairs = {name: pair for name, pair in pairs.items() if pair[1]}
    worse = {}
    if final is not None:
        worse = worse_slices(pairs, final.estimate.quantity.better, final.estimate.level)
    inside: Mapping[str, Document] = (round_.drift or {}).get("slices") or {}
    found = []
    for name in dict.fromkeys((*now, *inside)):
        columns, loss, known = inside.get(name, {}), worse.get(name), now.get(name)
        shares = [each[name].share for each in earlier if name in each]
        if not columns.get("drifted") and loss is None:
            continue
        found.append(
            SliceDrift(
                name=name,
                share=None if known is None else known.share,
                share_before=sum(shares) / len(shares) if shares else None,
                compared=columns.get("compared", 0),
                drifted=tuple(columns.get("drifted", ())),
                worse_by=None if loss is None else loss.worse_by,
                worse_at_least=None if loss is None else loss.low,
            )
        )
    return tuple(sorted(found, key=lambda each: (-(each.worse_at_least or 0.0), -len(each.drifted)))), len(pairs)


@dataclass(frozen=True)
class _Known:
    """What is kept of a slice or of the inputs of a predicted class."""

    share: float
    interval: Interval | None


def _known(slices: Sequence[Sliced], kept: Document, estimate: Estimate | None) -> dict[str, _Known]:
    found = {each.name: _Known(each.share, _of_slice(each, estimate)) for each in slices}
    if any(PREDICTED in each.levels for each in slices):
        return found  # the monitor's own slices are those of the predicted classes
    estimates: Mapping[str, Sequence[float]] = kept.get("by_class") or {}
    for name, share in (kept.get("classes") or {}).items():
        told = estimates.get(name)
        interval = Interval(*told[:3]) if told is not None and told[3] >= ANSWERS else None
        if told is not None and interval is not None and estimate is not None:
            interval = _by_chance(interval, share * estimate.frame_size, told[3], estimate)
        found[f"predicted {name}"] = _Known(share, interval)
    return found


def _of_slice(each: Sliced, estimate: Estimate | None) -> Interval | None:
    if each.value is None or each.low is None or each.high is None or each.answers < ANSWERS:
        return None
    known = Interval(each.value, each.low, each.high)
    return known if estimate is None else _by_chance(known, each.inputs, each.answers, estimate)
