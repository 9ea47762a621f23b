"""The linearised value of any measure for inputs whose truth is not known: over the truths that each may have.

A frame is looked at through a reference, inputs that stand for all of it, each with all of its possible truths in
proportion to their chances. What the measure's influence is at any input with any truth follows from these: inputs are
put beside the reference with next to no weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.abc._possible import Places, Possible, possible, wrong_labels
from opmon.errors import InputError
from opmon.types import Array, Floats
from opmon.types.labelled import Labelled
from opmon.types.prospect import Foreseen, Prospect

if TYPE_CHECKING:
    from opmon.abc.measure import Measure

REFERENCE = 1 << 16
"""About so many rows stand for a frame."""
AT_ONCE = 1 << 18
"""About so many are looked at beside them at once."""
FEWEST = 2_000
"""At least so many inputs stand for a frame, however many truths each may have."""
NO_WEIGHT = 1e-9
FAR = 0.005
"""Of measures whose values may be of any size, so much of the frame is cut off on either side: a share of a truth that
may be 0 would else be all that counts."""
KINDS = 12
"""More kinds than this are not told apart: each would want strata of its own."""


def of_rows(measure: Measure, prospect: Prospect) -> Foreseen | None:
    """Mean and standard deviation of the linearised value for every input; None where no sampler can aim at it."""
    truths = possible(prospect)
    known = _known(measure, prospect)
    if truths is None or len(known) < 2:
        return None
    most = max(REFERENCE // truths.many, FEWEST)
    stands = known
    if len(known) > most:
        stands = np.sort(np.random.default_rng(0).choice(known, most, replace=False))
    rows, weights = _rows(prospect, truths, stands)
    mean, spread = np.zeros(len(prospect), np.float32), np.zeros(len(prospect), np.float32)
    alone = len(stands) == len(known)
    step = len(known) if alone else max(AT_ONCE // truths.many, FEWEST)
    for first in range(0, len(known), step):
        part = known[first : first + step]
        try:
            found = _influence(measure, prospect, truths, part, (rows, weights), alone=alone)
        except InputError:
            return None
        if found is None:
            return None
        mean[part], spread[part] = found
    if not np.isfinite(mean).all() or not np.isfinite(spread).all() or not spread.any():
        return None
    return Foreseen(mean, spread, _kinds(measure, prospect), of_part=_is_of_part(measure, rows))


def influence_of(measure: Measure, rows: Labelled, weights: Floats) -> Floats | None:
    """What a draw adds to the measure's estimate, up to a factor: its influence, where it tells one; of a quantile
    whether the draw lies below it. None of sizes of gaps: what chance adds to them depends on every part of the frame
    alike, and draws that aimed at them erred more than those for the accuracy."""
    if measure.gaps(rows) is not None:
        return None
    quantile = measure.quantile(rows)
    if quantile is not None:
        return np.asarray(quantile.share - (quantile.values <= quantile.value(weights)), dtype=np.float64)
    return measure.linearised(rows, weights)


def _known(measure: Measure, prospect: Prospect) -> Places:
    """The inputs that count: all, or those whose scores are known."""
    if not measure.needs_scores:
        return np.arange(len(prospect))
    if not prospect.scores:
        return np.arange(0)
    there = np.ones(len(prospect), dtype=np.bool_)
    for values in prospect.scores.values():
        there &= np.isfinite(values)
    return np.flatnonzero(there)


def _rows(prospect: Prospect, truths: Possible, places: Places) -> tuple[Labelled, Floats]:
    """Some inputs with each truth that they may have, and their weights, which sum to 1."""
    truth, chance = truths.at(places)
    many = truths.many
    predicted, scores = _said(prospect, places), _scores(prospect, places)
    rows = Labelled(
        np.ones(len(places) * many, dtype=np.bool_),
        truth.reshape(len(places) * many, *truth.shape[2:]),
        np.repeat(predicted, many, axis=0),
        None if scores is None else np.repeat(scores, many, axis=0),
        () if prospect.problem == "judged" else prospect.classes,
    )
    return rows, chance.ravel() / max(len(places), 1)


def _said(prospect: Prospect, places: Places) -> Array:
    own = prospect.predicted[places]
    if prospect.problem != "classification":
        return own
    return np.array([*prospect.classes, "\0another"])[np.asarray(own, dtype=np.int64)]


def _scores(prospect: Prospect, places: Places) -> Floats | None:
    """One column per class; where the scores of some alone are known, others share what is left of 1."""
    if not prospect.scores:
        return None
    own = {name: np.asarray(prospect.scores[name][places], np.float64) for name in prospect.scores}
    missing = len(prospect.classes) - len(own)
    left = np.clip(1 - sum(own.values()), 0.0, 1.0) / missing if missing else np.zeros(len(places))
    return np.stack([own.get(name, left) for name in prospect.classes], axis=1)


def _influence(
    measure: Measure,
    prospect: Prospect,
    truths: Possible,
    part: Places,
    reference: tuple[Labelled, Floats],
    *,
    alone: bool,
) -> tuple[Floats, Floats] | None:
    """Mean and standard deviation at the inputs of one part, seen beside the reference, unless it is that itself."""
    rows, weights = reference
    every, all_weights, first = rows, weights, 0
    if not alone:
        own, own_weights = _rows(prospect, truths, part)
        every, first = _behind(rows, own), len(rows)
        all_weights = np.concatenate([weights, NO_WEIGHT * own_weights])
    with np.errstate(all="ignore"):
        found = influence_of(measure, every, all_weights / all_weights.sum())
    if found is None:
        return None
    if prospect.problem == "regression":
        found = np.clip(found, *_edges(found[: len(rows)], weights))
    values = found[first:].reshape(-1, truths.many)
    chance = (all_weights[first:] / all_weights[first:].sum()).reshape(-1, truths.many) * len(part)
    if prospect.problem == "multilabel" and _adds_up(values, prospect, part):
        return _of_labels(values, wrong_labels(prospect, part))
    mean = (chance * values).sum(axis=1)
    return mean, np.sqrt(np.maximum((chance * (values - mean[:, None]) ** 2).sum(axis=1), 0.0))


def _behind(rows: Labelled, others: Labelled) -> Labelled:
    scores = None
    if rows.scores is not None and others.scores is not None:
        scores = np.concatenate([rows.scores, others.scores])
    return Labelled(
        np.concatenate([rows.answered, others.answered]),
        np.concatenate([rows.truth, others.truth]),
        np.concatenate([rows.predicted, others.predicted]),
        scores,
        rows.classes,
    )


def _edges(values: Floats, weights: Floats) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    low, high = np.searchsorted(below, [FAR, 1 - FAR])
    return float(values[order[low]]), float(values[order[min(high, len(order) - 1)]])


def _adds_up(values: Floats, prospect: Prospect, part: Places) -> bool:
    """Whether two wrong labels change the value by what each changes alone."""
    count = len(prospect.classes)
    if count < 2:
        return True
    change = values[:, 1:-1] - values[:, :1]
    worst = np.argsort(-wrong_labels(prospect, part), axis=1)[:, :2]
    both = values[:, -1] - values[:, 0]
    scale = float(np.abs(values).max()) or 1.0
    return bool(np.abs(both - np.take_along_axis(change, worst, axis=1).sum(axis=1)).max() <= 1e-6 * scale)


def _of_labels(values: Floats, wrong: Floats) -> tuple[Floats, Floats]:
    """Exactly, where each wrong label changes the value by so much, whatever the others are."""
    change = values[:, 1 : 1 + wrong.shape[1]] - values[:, :1]
    mean = values[:, 0] + (wrong * change).sum(axis=1)
    return mean, np.sqrt((wrong * (1 - wrong) * change**2).sum(axis=1))


def _kinds(measure: Measure, prospect: Prospect) -> NDArray[np.uint8]:
    """Of several labels, inputs whose ratio has the same two values, whatever is true of them; else all are alike."""
    kind = np.zeros(len(prospect), np.uint8)
    if prospect.problem != "multilabel" or measure.needs_scores:
        return kind
    said, group = np.unique(prospect.predicted, axis=0, return_inverse=True)
    ratio = measure.ratio(_any_truth(said, prospect.classes))
    if ratio is None or ratio.is_mean:
        return kind
    pairs = np.stack([ratio.numerator, ratio.denominator], axis=1).reshape(-1, len(said), 2)
    ends = np.sort(pairs[:2], axis=0)
    if not ((pairs == pairs[0]).all(axis=2) | (pairs == pairs[1]).all(axis=2)).all():
        return kind
    _, place = np.unique(ends.transpose(1, 0, 2).reshape(len(said), 4), axis=0, return_inverse=True)
    of = place.ravel()[group.ravel()]
    return of.astype(np.uint8) if int(place.max()) < KINDS else kind


def _any_truth(said: NDArray[np.bool_], classes: tuple[str, ...]) -> Labelled:
    """Each answer where no label is true, then where all are, then where one is."""
    count = len(classes)
    truths = np.concatenate([np.zeros((1, count)), np.ones((1, count)), np.eye(count)]).astype(np.bool_)
    truth = np.repeat(truths, len(said), axis=0)
    return Labelled(np.ones(len(truth), np.bool_), truth, np.tile(said, (len(truths), 1)), None, classes)


def _is_of_part(measure: Measure, rows: Labelled) -> bool:
    """Whether more draws are spread over all inputs, which count for the measure by what is not known of them: of
    errors that is on which side of a line they lie, or of 0, and it is in doubt almost everywhere."""
    ratio = measure.ratio(rows)
    if rows.truth.dtype.kind != "f":
        return ratio is None or not ratio.is_mean
    if "regression" not in measure.problems:
        return False
    return measure.quantile(rows) is not None if ratio is None else ratio.binary or ratio.lowest < 0
