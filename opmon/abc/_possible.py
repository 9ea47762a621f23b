"""The truths that inputs may have, with their chances: one row per input, one column per truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.types import Array, Floats
from opmon.types.prospect import Prospect

Places = NDArray[np.int64]
NODES = 16


def _steps() -> Floats:
    """Quantiles of Student's distribution with four degrees of freedom, whose mean size is 1: errors have tails."""
    below = (np.arange(NODES) + 0.5) / NODES
    part = 2 * np.sqrt(below * (1 - below))
    steps = np.sign(below - 0.5) * 2 * np.sqrt(np.cos(np.arccos(part) / 3) / part - 1)
    return np.asarray(steps / np.abs(steps).mean())


ERRORS = _steps()
"""Errors relative to their expected size, each as likely as the others."""


@dataclass(frozen=True)
class Possible:
    """The truths that an input may have."""

    many: int
    """How many each has."""
    at: Callable[[Places], tuple[Array, Floats]]
    """The truths of some inputs, and the chance of each."""


def possible(prospect: Prospect) -> Possible | None:
    """What may be true of every input; None where nobody can say."""
    match prospect.problem:
        case "regression":
            return None if prospect.error is None or not np.ptp(prospect.error) > 0 else _numbers(prospect)
        case "multilabel":
            return _sets(prospect) if prospect.chances else None
        case "judged":
            return _scores(prospect) if prospect.chances else None
    return _classes(prospect) if prospect.chances and len(prospect.classes) > 1 else None


def _classes(prospect: Prospect) -> Possible:
    """Those whose chance is known and, for all others together, one of them."""
    names = list(prospect.chances)
    others = [name for name in prospect.classes if name not in prospect.chances]
    truths = np.array([*names, *others[:1]])

    def at(places: Places) -> tuple[Array, Floats]:
        own = np.stack([np.asarray(prospect.chances[name][places], dtype=np.float64) for name in names], axis=1)
        if others:
            own = np.concatenate([own, np.maximum(1 - own.sum(axis=1, keepdims=True), 0.0)], axis=1)
        total = own.sum(axis=1, keepdims=True)
        return np.tile(truths, (len(places), 1)), np.divide(own, total, out=np.zeros_like(own), where=total > 0)

    return Possible(len(truths), at)


def _numbers(prospect: Prospect) -> Possible:
    """The prediction with errors of either sign, each as likely as the others."""
    error = np.zeros(len(prospect)) if prospect.error is None else prospect.error

    def at(places: Places) -> tuple[Array, Floats]:
        said = np.asarray(prospect.predicted[places], dtype=np.float64)
        truth = said[:, None] + np.asarray(error[places], dtype=np.float64)[:, None] * ERRORS
        return truth, np.full(truth.shape, 1 / NODES)

    return Possible(NODES, at)


def _sets(prospect: Prospect) -> Possible:
    """What is predicted, that with one label wrong, for each of them, and with the two wrong that are likeliest to be:
    the last stands for all sets with more than one wrong."""
    count = len(prospect.classes)
    flips = np.concatenate([np.zeros((1, count), np.bool_), np.eye(count, dtype=np.bool_)])

    def at(places: Places) -> tuple[Array, Floats]:
        said, wrong = np.asarray(prospect.predicted[places], dtype=np.bool_), wrong_labels(prospect, places)
        right = np.prod(1 - wrong, axis=1, keepdims=True)
        single = right * wrong / np.maximum(1 - wrong, 1e-9)
        rest = np.maximum(1 - right - single.sum(axis=1, keepdims=True), 0.0)
        chance = np.concatenate([right, single, rest], axis=1)
        both = np.zeros((len(places), 1, count), np.bool_)
        np.put_along_axis(both[:, 0], np.argsort(-wrong, axis=1)[:, :2], values=True, axis=1)
        every = np.concatenate([np.broadcast_to(flips, (len(places), *flips.shape)), both], axis=1)
        return every ^ said[:, None, :], chance / chance.sum(axis=1, keepdims=True)

    return Possible(count + 2, at)


def wrong_labels(prospect: Prospect, places: Places) -> Floats:
    """How likely each label of some inputs is to be wrong, one column per class; of classes whose chance nobody wants
    to know it does not matter, and none is."""
    said = np.asarray(prospect.predicted[places], dtype=np.bool_)
    wrong = np.zeros(said.shape)
    for place, name in enumerate(prospect.classes):
        if name in prospect.chances:
            there = np.asarray(prospect.chances[name][places], np.float64)
            wrong[:, place] = np.where(said[:, place], 1 - there, there)
    return np.asarray(np.clip(np.nan_to_num(wrong, nan=0.5), 0.0, 1.0))


def _scores(prospect: Prospect) -> Possible:
    """The scores that people gave to others."""
    levels = np.array([float(name) for name in prospect.chances])

    def at(places: Places) -> tuple[Array, Floats]:
        chance = np.stack([np.asarray(each[places], dtype=np.float64) for each in prospect.chances.values()], axis=1)
        return np.tile(levels, (len(places), 1)), chance / chance.sum(axis=1, keepdims=True)

    return Possible(len(levels), at)
