"""The contract of measures, which say what of a model is estimated from the labels of a draw."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from opmon.abc._expecting import of_rows
from opmon.abc._foreseeing import of_classes, probed
from opmon.abc.plugin import Plugin
from opmon.errors import InputError, PluginError
from opmon.quantities import Problem, Quantity
from opmon.types import Array, Floats
from opmon.types.labelled import Labelled
from opmon.types.prospect import Foreseen, Prospect

MOST_CHANCES = 20
"""A chance is a column of the frame; a measure of all of more classes than this is not aimed at."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """``R = Σ a_k n_k / Σ a_k d_k`` with coefficients ``a_k`` of the draws: a mean of ``n_k/d_k`` over a part of them.

    ``d_k = 1`` everywhere makes it the mean over the whole frame.
    """

    numerator: Floats
    denominator: Floats
    """At least 0; where it is 0 the draw does not count."""
    lowest: float = 0.0
    highest: float = 1.0
    """No ``n_k/d_k`` is smaller or larger than these, whatever is drawn; infinite where nobody can say."""
    heaviest: float = 1.0
    """No ``d_k`` is larger, whatever is drawn; infinite where nobody can say."""
    levels: tuple[float, ...] = ()
    """The only values that ``n_k/d_k`` may have, where they are few, such as the costs in a matrix."""
    failed: NDArray[np.bool_] | None = None
    """The draws on which the model is wrong, where these have far larger values than the others; few may show."""
    feared: Floats | None = None
    """With it, the value that each draw would have if the model were wrong there."""
    doubt: Floats | None = None
    """With both, how likely the model itself holds it that it is wrong there."""
    atom: bool = False
    """Whether some inputs may have ``highest``, far above all others, though no draw shows one."""

    def value(self, weights: Floats) -> float:
        """``R`` with these coefficients; an error where no draw counts."""
        whole = float(weights @ self.denominator)
        if whole == 0:
            raise InputError("a ratio is undefined where none of the draws counts for it")
        return float(weights @ self.numerator) / whole

    def influence(self, weights: Floats) -> Floats:
        """The influence of each draw on ``R``: ``(n_k − R d_k) / Σ a d``."""
        value = self.value(weights)
        return np.asarray((self.numerator - value * self.denominator) / float(weights @ self.denominator))

    @property
    def counts(self) -> bool:
        """Whether any draw counts for it."""
        return bool((self.denominator > 0).any())

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean over all inputs of the frame."""
        return bool((self.denominator == 1).all())

    @property
    def binary(self) -> bool:
        """Whether all its values are 0 or 1, so that it is a share of inputs."""
        inside = self.denominator > 0
        n, d = self.numerator[inside], self.denominator[inside]
        return (self.lowest, self.highest) == (0.0, 1.0) and bool(((n == 0) | (n == d)).all())


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """A mean over the frame that may be above or below 0, such as that between confidence and being right."""

    ratio: Ratio
    spread: Floats
    """The variance that each row's value has by the measure's own model; 0 for rows that do not count."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantile:
    """The least of ``values``, one per row, that at least ``share`` of the frame does not exceed."""

    values: Floats
    share: float
    lowest: float = -math.inf
    """No value is smaller, whatever is drawn."""

    def value(self, weights: Floats) -> float:
        """The quantile where each row stands for ``weights`` inputs, up to a factor."""
        order = np.argsort(self.values, kind="stable")
        below = np.cumsum(weights[order])
        at = int(np.searchsorted(below, self.share * below[-1] * (1 - 1e-12)))
        return float(self.values[order[min(at, len(order) - 1)]])

    def between(self, weights: Floats) -> float:
        """What draws with these weights tell of the quantile of a larger frame: as likely too high as too low.

        Of ``n`` draws the ``k``-th smallest exceeds the share ``(k − 1/3)/(n + 1/3)`` of the frame in half of all
        samples (Hyndman and Fan, The American Statistician 50, 1996, definition 8); between two draws it is on the line
        between them. :meth:`value` takes the draw below, and is low by a quarter of its error at 0.9 of 100 draws.
        """
        order = np.argsort(self.values, kind="stable")
        share = weights[order] / weights.sum()
        below = (np.cumsum(share) - share / 3) / (1 + float(share @ share) / 3)
        return float(np.interp(self.share, below, self.values[order]))


class Measure(Plugin, ABC):
    """What a model's owners want to know of it, estimated from the labels of a draw. Pure.

    Its :meth:`quantity` is what everyone calls it. How it is estimated follows from the first of these that tells
    something: :meth:`ratio`, :meth:`ratios`, :meth:`gaps`, :meth:`quantile`, :meth:`value` with :meth:`linearised`,
    :meth:`value` alone. The ``rows`` that hooks are given are answered draws only, and, where it ``needs_scores``, such
    whose scores are known.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)
    """The problems it is for."""
    needs_scores: ClassVar[bool] = False
    """Whether it is computed from the scores of the drawn inputs."""

    highest: ClassVar[float] = math.inf
    """No value is larger; of a share none is in any case."""
    no_surer_than: ClassVar[Literal["a share", "a share of the smallest group"] | None] = None
    """Whether it is taken to be no surer than a share of as many draws, all of them or those in the smallest of its
    :meth:`groups`: of measures whose estimates seem the surer the higher they are by chance."""
    curved: ClassVar[bool] = False
    """Whether the bias of order 1/n is taken out of estimates that are made by :meth:`linearised`: of a ratio of mean
    squares it is a good part of the error, of most others next to nothing."""
    follows_answer: ClassVar[bool] = False
    """Whether the answer decides most of it, as of a recall, which is 0 or 1 among inputs with one answer, however good
    the model is: slices by the predicted class are not compared by it."""
    is_table: ClassVar[bool] = False
    """Whether it stands for several numbers: :meth:`cells` are then the measures that are estimated."""

    @abstractmethod
    def quantity(self, unit: str | None = None) -> Quantity:
        """What it estimates: name, unit, direction; ``unit`` is that of the labels of a regression."""

    def check(self, classes: Sequence[str]) -> None:
        """Raise an error where it cannot be computed for these classes, such as one that is not among them."""
        return

    def cells(self, classes: Sequence[str]) -> tuple[Measure, ...]:
        """The measures that it stands for, such as the cells of a table, each with an estimate of its own."""
        return (self,)

    def ratio(self, rows: Labelled) -> Ratio | None:
        """The ratio that it is, with one entry per row; None where it is none."""
        return None

    def of_all(self, problem: Problem, classes: Sequence[str]) -> bool:
        """Whether it is a mean over all inputs, each of which counts once whatever its truth is.

        The default looks at what :meth:`ratio` makes of inputs of different truths on which the model is wrong.
        """
        ratio = self._of_wrong_ones(problem, classes)
        return ratio is not None and not self.is_table and ratio.is_mean

    def all_or_nothing(self, problem: Problem, classes: Sequence[str]) -> bool:
        """Whether every input counts 0 or 1 for it, so that it is a share of inputs: of a mean score one may count in
        part. The default looks at the same inputs as :meth:`of_all`."""
        ratio = self._of_wrong_ones(problem, classes)
        return ratio is not None and ratio.binary

    def _of_wrong_ones(self, problem: Problem, classes: Sequence[str]) -> Ratio | None:
        """The ratio over three inputs of different truths on which the model is wrong, one of them but in part."""
        names, three = tuple(classes), np.ones(3, dtype=np.bool_)
        truth, said = np.array([1.0, 0.0, 0.25]), np.array([0.0, 1.0, 0.0])
        if problem == "classification":
            truth, said = np.array(names)[[0, -1, 0]], np.array(names)[[-1, 0, -1]]
        elif problem == "multilabel":
            truth = np.array([[True] * len(names), [False] * len(names), [True] + [False] * (len(names) - 1)])
            said = np.array([[False] * len(names), [True] * len(names), [False] * len(names)])
        scores = np.full((3, len(names)), 1 / len(names)) if self.needs_scores else None
        try:
            return self.ratio(Labelled(three, truth, said, scores, names))
        except InputError:
            return None

    def ratios(self, rows: Labelled) -> Sequence[Ratio] | None:
        """The ratios whose plain mean it is, such as the recall of each class; None where it is no such mean.

        One for which no draw counts is left out of the mean, and the interval allows for any value that it may have.
        """
        return None

    def possible(self, rows: Labelled) -> Sequence[Ratio] | None:
        """What :meth:`ratio` could be for every truth that the rows may have, whatever they are said to have, where
        that is a matter of a few; None where it is not. ``measure_level`` bets more where it knows."""
        return None

    def gaps(self, rows: Labelled) -> Sequence[Gap] | None:
        """The gaps the sum of whose sizes it is; None where it is no such sum. Neighbours are those that are likely to
        have the same sign."""
        return None

    def quantile(self, rows: Labelled) -> Quantile | None:
        """The quantile that it is; None where it is none."""
        return None

    def told(self, ratio: float) -> float:
        """What is told of a value of :meth:`ratio`, by a function that grows with it, such as a square root."""
        return ratio

    def as_ratio(self, told: float) -> float:
        """The ratio of which so much is told: the inverse of :meth:`told`, by which a line is held against ratios."""
        return told

    @property
    def tells_ratio(self) -> bool:
        """Whether what is told of a ratio is the ratio itself, so that a mean of losses is told as one."""
        return all(self.told(ratio) == ratio for ratio in (0.25, 4.0))

    def groups(self, rows: Labelled) -> Sequence[NDArray[np.bool_]]:
        """The parts of the rows that it sets against each other, each of which wants ten draws; none where all rows
        count alike. The smallest decides how sure a measure can be that is no ratio."""
        return ()

    def value(self, rows: Labelled, weights: Floats) -> float:
        """The measure of the rows, each of which stands for ``weights`` inputs, up to a factor.

        The default computes it from :meth:`ratio`, :meth:`ratios`, :meth:`gaps` or :meth:`quantile`.
        """
        several = self._parts(rows)
        if several:
            return self.told(math.fsum(one.value(weights) for one in several) / len(several))
        gaps, quantile = self.gaps(rows), self.quantile(rows)
        if gaps is not None:
            return math.fsum(abs(one.ratio.value(weights)) for one in gaps)
        if quantile is not None:
            return quantile.value(weights)
        raise PluginError(
            f"{type(self).__name__} is no ratio and has no value() of its own; opmon.abc.Measure says what a measure "
            "does"
        )

    def linearised(self, rows: Labelled, weights: Floats) -> Floats | None:
        """The influence ``u_k`` of each row, ``value ≈ truth + Σ a_k u_k`` with the weights ``a_k`` scaled to sum to
        1; None: the interval is then that of a weighted bootstrap.

        The default computes it from :meth:`ratio` or :meth:`ratios`, and is None for others.
        """
        several = self._parts(rows)
        if not several:
            return None
        influence = np.zeros(len(rows))
        for one in several:
            influence += one.influence(weights)
        at = math.fsum(one.value(weights) for one in several) / len(several)
        return np.asarray(influence / len(several) * self._slope(at))

    def chances(self, classes: Sequence[str]) -> tuple[str, ...]:
        """The classes whose chance a sampler must know of every input to aim at it; all of them by default."""
        return tuple(classes) if len(classes) <= MOST_CHANCES else ()

    def foresee(self, prospect: Prospect) -> Foreseen | None:
        """What its linearised value is likely to be for every input before labels; None: no sampler can aim at it.

        The default follows from :meth:`linearised` or :meth:`quantile`, over the truths that each input may have:
        classes or sets of labels by their chances, numbers by the error that is expected, scores that people give by
        how likely each is. A measure that tells no influence, such as a function of somebody's own, has none, nor has
        a sum of sizes of gaps.
        """
        if prospect.problem not in self.problems:
            return None
        if prospect.problem == "classification" and not self.needs_scores:
            return of_classes(self, prospect)
        return of_rows(self, prospect)

    def aimed_at(self, problem: Problem, classes: Sequence[str]) -> bool:
        """Whether a sampler can aim at it, where it knows the chances of these classes or what errors to expect.

        The default looks at what :meth:`foresee` makes of four inputs.
        """
        return probed(self, problem, tuple(classes)) is not None

    def notes(self, rows: Labelled) -> tuple[str, ...]:
        """What a reader of the estimate must know of these rows, such as a class of which there is no answer."""
        return ()

    def _slope(self, ratio: float) -> float:
        step = 1e-6 * (abs(ratio) or 1.0)
        return (self.told(ratio + step) - self.told(ratio)) / step

    def _parts(self, rows: Labelled) -> Sequence[Ratio]:
        one = self.ratio(rows)
        return (one,) if one is not None else [part for part in self.ratios(rows) or () if part.counts]


def truth_numbers(rows: Labelled) -> tuple[Array, Array]:
    """The truths and predictions of some rows as numbers."""
    return np.asarray(rows.truth, dtype=np.float64), np.asarray(rows.predicted, dtype=np.float64)
