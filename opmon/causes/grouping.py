"""Failures divided into groups by what sets them apart from the inputs that the model has right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opmon.causes.confusions import confusions
from opmon.causes.contrasts import FEWEST, Members, any_of
from opmon.causes.features import Feature
from opmon.causes.found import Found, Grouping
from opmon.causes.onsets import Moments
from opmon.causes.window import Window
from opmon.errors import InputError
from opmon.types import Floats

MOST = 10


def failure_groups(
    features: Sequence[Feature],
    failed: Members,
    weights: Floats | None = None,
    *,
    predicted: Sequence[str] | None = None,
    truth: Sequence[str] | None = None,
    moments: Moments | None = None,
    most: int = MOST,
    seed: int = 0,
) -> Grouping:
    """Groups of the ``failed`` among labelled inputs, of which ``features`` tell something each.

    One after the other: of the inputs that no cause holds for yet, the condition is taken that has the most failures
    beyond its share, in standard errors, weighted as the inputs were drawn; up to three conditions together where they
    tell more. After each, those before are looked for again among the inputs that no other one holds for: a cut that
    was too wide, because others were not known yet, gets its place. It ends where chance alone would give as much:
    outcomes are dealt out anew, and the same search tells what the best condition of that is worth; however many
    conditions are looked at, in 95 of 100 searches without any cause none is found.

    With ``moments``, inputs of several rounds, it is first asked since when failures are more frequent. Where that is
    sure, conditions are sought among the inputs since then, by contrast with each other. Failures since then that no
    condition holds for, where they are more frequent than before, make a group of their own: all inputs were harmed.
    Lifts are then over the inputs before.

    A failure that several causes hold for belongs to the one by which it stands out most. What is left is divided by
    confused classes, where ``predicted`` and ``truth`` are given. Lifts are over the inputs that no cause holds for;
    their bounds use the limit of the search instead of 1.96.
    """
    failed = np.asarray(failed, dtype=np.bool_)
    _require(features, failed, weights, moments)
    full = np.ones(len(failed)) if weights is None else weights
    window = Window.of(features, failed, full, moments, np.random.default_rng(seed))
    found = window.groups(most)
    left = failed & ~any_of([group.failures for group in found], len(failed))
    if predicted is not None and truth is not None:
        for group in _by_confusions(predicted, truth, failed, left, most - len(found)):
            found.append(group)
            left = left & ~group.failures
    found.sort(key=lambda group: -float(full[group.failures].sum()))
    if left.any():
        found.append(Found("rest", (), left, left))
    return Grouping(tuple(found), len(window.searched.conditions), window.onset, window.shift)


def _by_confusions(
    predicted: Sequence[str], truth: Sequence[str], failed: Members, left: Members, most: int
) -> list[Found]:
    said, true = np.asarray(predicted, dtype=object), np.asarray(truth, dtype=object)
    found: list[Found] = []
    for pair in confusions(list(said[failed]), list(true[failed])):
        failures = left & (said == pair.predicted) & (true == pair.truth)
        if len(found) < most and failures.sum() >= FEWEST:
            words = (f"predicted {pair.predicted}, truly {pair.truth}",)
            found.append(Found("confusion", words, failures, failures, pair.p))
            left = left & ~failures
    return found


def _require(features: Sequence[Feature], failed: Members, weights: Floats | None, moments: Moments | None) -> None:
    for feature in features:
        if len(feature.values) != len(failed):
            raise InputError(
                f"a feature has one value for each labelled input: {len(failed)}; {feature.name!r} has "
                f"{len(feature.values)}"
            )
    if weights is not None and (len(weights) != len(failed) or not (weights >= 0).all()):
        raise InputError(f"weights are one number of 0 or more for each of the {len(failed)} labelled inputs")
    if moments is not None and len(moments.at) != len(failed):
        raise InputError(f"each of the {len(failed)} labelled inputs has a moment; got {len(moments.at)} moments")
