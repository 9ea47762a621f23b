"""What can be estimated: how it is called, what it is measured in, which way is better, and how it is written.

An :class:`~opmon.types.Estimate` carries its quantity, so that whoever shows one asks nobody what its numbers mean:
pages, figures, messages, tables, MLflow's keys.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from dataclasses import dataclass, replace
from typing import Literal

from opmon import wording
from opmon.problems import PROBLEMS, Problem, loss
from opmon.scales import Scale

__all__ = [
    "ACCURACY",
    "AUC",
    "AVERAGE_PRECISION",
    "BALANCED_ACCURACY",
    "BIAS",
    "BRIER",
    "Better",
    "CALIBRATION_ERROR",
    "F1",
    "HAMMING_LOSS",
    "KNOWN",
    "LOG_LOSS",
    "MAE",
    "MAPE",
    "MEAN_SCORE",
    "MEAN_SQUARED_ERROR",
    "PASS_RATE",
    "PRECISION",
    "PROBLEMS",
    "Problem",
    "Quantity",
    "RECALL",
    "RMSE",
    "R_SQUARED",
    "SUBSET_ACCURACY",
    "loss",
    "mean_squared_error",
    "of",
    "squared",
]

Better = Literal["higher", "lower", "zero", "neither"]

LONGEST, MOST_BYTES = 130, 240
"""A key is no longer: metrics, tags and pictures are called by it. MLflow takes 250 characters, a disk 255 bytes."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity by name. Two with the same name and unit are the same, and only such are put together."""

    name: str
    """As in a sentence: ``accuracy``, ``mean squared error``."""
    unit: str = ""
    """What stands behind its numbers, such as ``days²``; empty for shares, and where nobody has named one."""
    share: bool = False
    """Whether it lies between 0 and 1: it is then written in per cent, and its differences in points."""
    decimal: bool = False
    """Whether it is written as a number all the same, such as ``0.82``."""
    better: Better = "higher"
    """Which way is better; ``zero``: the nearer to 0."""
    scale: str = ""
    """What its numbers are measured in, in words, where there is no unit to write behind them."""
    of_squares: bool = False
    """Whether it is the root of a mean: of several rounds the squares have a mean, and not the roots."""
    definition: str = ""
    """What tells it from others of its name and unit, such as a cost by another matrix; nothing for a reader."""

    def same(self, other: Quantity) -> bool:
        """Whether the other has the same name, which may hold a unit, and the same unit.

        >>> MAE.same(MAE), MAE.same(MAE.measured_in("days")), ACCURACY.same(ACCURACY.of("night"))
        (True, False, False)
        """
        return (self.name, self.unit) == (other.name, other.unit)

    @property
    def percent(self) -> bool:
        """Whether it is written in per cent."""
        return self.share and not self.decimal

    @property
    def key(self) -> str:
        """The name as MLflow's keys and tags have it; a long one is cut, and ends in what tells it from others.

        >>> MEAN_SQUARED_ERROR.key
        'mean_squared_error'
        >>> RECALL.of("fraud " * 30).key[-16:], RECALL.of("fraud, " * 30).key[-16:]
        ('_fraud__5f0519ec', '_fraud__4b17107f')
        """
        key = re.sub(r"\W+", "_", self.name).strip("_")
        if len(key) <= LONGEST and len(key.encode()) <= MOST_BYTES:
            return key
        end = f"_{zlib.crc32(self.name.encode()):08x}"
        return key[: LONGEST - len(end)].encode()[: MOST_BYTES - len(end)].decode(errors="ignore") + end

    @property
    def caption(self) -> str:
        """The name as the first word of a line.

        >>> ACCURACY.caption, Quantity("MAE").caption, Quantity("recall[Fraud]").caption
        ('Accuracy', 'MAE', 'Recall[Fraud]')
        """
        return self.name[:1].upper() + self.name[1:]

    @property
    def title(self) -> str:
        """The name with what it is measured in, where that is not seen behind every number.

        >>> ACCURACY.title, MEAN_SQUARED_ERROR.title, mean_squared_error("days").title
        ('accuracy', 'mean squared error (squared units of the label)', 'mean squared error (days²)')
        """
        measured_in = self.unit or self.scale
        return f"{self.name} ({measured_in})" if measured_in else self.name

    def text(self, value: float, digits: int | None = None) -> str:
        """One value with its unit.

        >>> ACCURACY.text(0.923), mean_squared_error("days").text(3.2), MEAN_SCORE.text(0.82)
        ('92.3 %', '3.2 days²', '0.82')
        """
        if self.percent:
            return wording.percent(value, digits)
        return wording.in_unit(wording.number(value, digits), self.unit)

    def exactly(self, value: float) -> str:
        """A value that somebody chose, such as a threshold: with all of its digits.

        >>> ACCURACY.exactly(0.9975), mean_squared_error("days").exactly(3.2)
        ('99.75 %', '3.2 days²')
        """
        return wording.in_unit(wording.exactly(value, in_percent=self.percent), "" if self.percent else self.unit)

    def sides(self, threshold: float) -> tuple[float, ...]:
        """The values at which a threshold lies: on both sides of 0 where 0 is best.

        >>> MAE.sides(3.5), BIAS.sides(2.0)
        ((3.5,), (-2.0, 2.0))
        """
        return (-threshold, threshold) if self.better == "zero" and threshold else (threshold,)

    def threshold(self, threshold: float) -> str:
        """A threshold for a reader.

        >>> MAE.threshold(3.5), BIAS.measured_in("days").threshold(2.0)
        ('3.5', '± 2 days')
        """
        return f"{'± ' * (len(self.sides(threshold)) - 1)}{self.exactly(threshold)}"

    def badness(self, value: float) -> float:
        """How bad a value is: the larger the worse. It is the value itself where neither way is better.

        >>> ACCURACY.badness(0.9), MAE.badness(3.5), BIAS.badness(-2.0)
        (-0.9, 3.5, 2.0)
        """
        return {"higher": -value, "zero": abs(value)}.get(self.better, value)

    def texts(self, value: float, low: float, high: float) -> tuple[str, str, str]:
        """A value and its bounds, with as many digits as the interval's width bears and one unit, behind the value.

        >>> ACCURACY.texts(0.9, 0.882, 0.92), mean_squared_error("days").texts(3.2111, 2.8, 3.7)
        (('90.0 %', '88.2 %', '92.0 %'), ('3.2 days²', '2.8', '3.7'))
        """
        digits = self.digits(low, high)
        if self.percent:
            value_text, low_text, high_text = (wording.percent(each, digits) for each in (value, low, high))
            return value_text, low_text, high_text
        largest = max((abs(each) for each in (value, low, high) if math.isfinite(each)), default=0.0)
        own, low_text, high_text = (wording.number(each, digits, largest) for each in (value, low, high))
        return wording.in_unit(own, self.unit), low_text, high_text

    def interval(self, value: float, low: float, high: float) -> str:
        """A value with its bounds; alone, where it was counted and they have no distance.

        >>> ACCURACY.interval(0.9, 0.882, 0.92), MEAN_SQUARED_ERROR.interval(3.2, 2.8, 3.7)
        ('90.0 % [88.2 %, 92.0 %]', '3.2 [2.8, 3.7]')
        >>> ACCURACY.interval(0.733, 0.733, 0.733), ACCURACY.interval(0.99972, 0.99972, 0.99972)
        ('73.3 %', '99.97 %')
        """
        if low == high == value:
            return self.text(value, self.digits(low, high))
        value_text, low_text, high_text = self.texts(value, low, high)
        return f"{value_text} [{low_text}, {high_text}]"

    def difference(self, value: float, digits: int | None = None) -> str:
        """How far two of its values are apart, without a sign; with ``digits`` decimals, where they do not make it 0.

        >>> ACCURACY.difference(-0.267), mean_squared_error("days").difference(1.5)
        ('26.7 points', '1.5 days²')
        >>> MEAN_SQUARED_ERROR.difference(-1.8964, 1), MEAN_SQUARED_ERROR.difference(0.0012, 1)
        ('1.9', '0.0012')
        >>> MAPE.difference(6.0), MAPE.difference(1.04, 1)
        ('6 points', '1.0 points')
        """
        if self.percent:
            return wording.points(value, 1 if digits is None else digits)
        decimals = digits if digits is not None and round(abs(value), digits) else None
        if self.unit != "%":
            return self.text(abs(value), decimals)
        text = wording.number(abs(value), decimals)
        return f"{text} {'point' if text == '1' else 'points'}"

    def digits(self, low: float, high: float) -> int | None:
        """The decimals that an interval of this width bears; of none, what tells a share from all; None of a number."""
        width = (100 if self.percent else 1) * (high - low)
        if not 0 < width < math.inf:
            return wording.share_digits(low) if self.percent else None
        decimals = math.ceil(-math.log10(width / 8) - 1e-9)
        return min(max(decimals, 1 if self.percent else 0), 9)

    def of(self, what: str) -> Quantity:
        """The same of a part only.

        >>> ACCURACY.of("night").name
        'accuracy[night]'
        """
        return replace(self, name=f"{self.name}[{what}]")

    def measured_in(self, unit: str | None) -> Quantity:
        """The same of labels in ``unit``; None: nobody has named one.

        >>> MAE.measured_in("days").interval(3.2, 2.8, 3.7), MAE.measured_in(None).title
        ('3.2 days [2.8, 3.7]', 'MAE (units of the label)')
        """
        return replace(self, unit=unit) if unit else self


ACCURACY = Quantity("accuracy", share=True)
RECALL = Quantity("recall", share=True)
PRECISION = Quantity("precision", share=True)
F1 = Quantity("F1", share=True)
BALANCED_ACCURACY = Quantity("balanced accuracy", share=True)
AUC = Quantity("AUC", share=True, decimal=True)
AVERAGE_PRECISION = Quantity("average precision", share=True)
LOG_LOSS = Quantity("log loss", better="lower", scale="nats")
BRIER = Quantity("Brier score", better="lower")
CALIBRATION_ERROR = Quantity("calibration error", share=True, better="lower")
HAMMING_LOSS = Quantity("Hamming loss", share=True, better="lower")
MAE = Quantity("MAE", better="lower", scale="units of the label")
RMSE = Quantity("RMSE", better="lower", scale="units of the label", of_squares=True)
MAPE = Quantity("MAPE", "%", better="lower")
BIAS = Quantity("bias", better="zero", scale="units of the label")
R_SQUARED = Quantity("R²")
MEAN_SQUARED_ERROR = Quantity("mean squared error", better="lower", scale="squared units of the label")
SUBSET_ACCURACY = Quantity("subset accuracy", share=True)
"""The share of inputs of which every class is right."""
PASS_RATE = Quantity("pass rate", share=True)
MEAN_SCORE = Quantity("mean score", share=True, decimal=True)
"""Of outputs that people gave scores from 0 to 1."""
KNOWN: tuple[Quantity, ...] = (
    ACCURACY,
    RECALL,
    PRECISION,
    F1,
    BALANCED_ACCURACY,
    AUC,
    AVERAGE_PRECISION,
    LOG_LOSS,
    BRIER,
    CALIBRATION_ERROR,
    HAMMING_LOSS,
    MAE,
    RMSE,
    MAPE,
    BIAS,
    R_SQUARED,
    MEAN_SQUARED_ERROR,
    SUBSET_ACCURACY,
    PASS_RATE,
    MEAN_SCORE,
)
"""Those that are recognised by their name, also where it goes on with a part in brackets."""


def mean_squared_error(unit: str | None) -> Quantity:
    """The mean squared error of labels in ``unit``; None: nobody has named one.

    >>> mean_squared_error("km/h").unit, mean_squared_error("€").unit, mean_squared_error("m²").unit
    ('(km/h)²', '€²', '(m²)²')
    """
    return replace(MEAN_SQUARED_ERROR, unit=squared(unit)) if unit else MEAN_SQUARED_ERROR


def squared(unit: str) -> str:
    """The unit of squares of what is measured in ``unit``."""
    is_one_sign = unit.isalpha() or (len(unit) == 1 and unicodedata.category(unit) == "Sc")
    return f"{unit}²" if is_one_sign else f"({unit})²"


def of(problem: Problem, unit: str | None = None, scale: Scale | None = None) -> Quantity:
    """What is estimated of a problem: of a regression its labels are in ``unit``; outputs are judged on a ``scale``.

    >>> of("regression", "days").title, of("judged", scale="pass_fail").name, of("judged").name
    ('mean squared error (days²)', 'pass rate', 'mean score')
    """
    match problem:
        case "classification":
            return ACCURACY
        case "multilabel":
            return SUBSET_ACCURACY
        case "judged":
            return PASS_RATE if scale == "pass_fail" else MEAN_SCORE
        case "regression":
            return mean_squared_error(unit)
