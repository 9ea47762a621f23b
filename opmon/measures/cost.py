"""What the model's answers cost, by the user's own matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from opmon.abc import Measure, Ratio
from opmon.errors import InputError
from opmon.measures._classes import require_class
from opmon.quantities import Problem, Quantity
from opmon.types import Floats
from opmon.types.labelled import Labelled


@dataclass(frozen=True)
class Cost(Measure):
    """The mean of what each answer costs, by a matrix of your own: what it costs to say B where A is true.

    A right answer costs nothing unless the matrix says otherwise; every other pair of classes must have a cost.
    Negative numbers are gains.
    The interval holds the mean over all inputs of the round in 95 of 100 rounds; a dear mistake that was hardly seen
    makes it reach far upwards, and rightly so.
    It is unbiased, and assumes that labels are right.
    """

    problems: ClassVar[tuple[Problem, ...]] = ("classification",)

    matrix: Mapping[str, Mapping[str, float]]
    """For each true class what every answer costs: `{fraud: {ok: 500}, ok: {fraud: 20}}`."""
    unit: str = ""
    """What the costs are measured in, such as EUR."""
    better: Literal["lower", "higher"] = "lower"
    """`higher` where the numbers are gains."""
    name: str = field(default="cost")
    """What it is called."""

    def __post_init__(self) -> None:
        if not self.matrix:
            raise InputError("the cost matrix is empty; it says what each answer costs: {fraud: {ok: 500}, ...}")
        for true, row in self.matrix.items():
            for said, cost in row.items():
                if not math.isfinite(cost):
                    raise InputError(f"costs are finite numbers; {true} said to be {said} costs {cost}")

    def quantity(self, unit: str | None = None) -> Quantity:
        return Quantity(self.name, self.unit, better=self.better, scale="" if self.unit else "mean of an input")

    def check(self, classes: Sequence[str]) -> None:
        for true, row in self.matrix.items():
            for name in (true, *row):
                require_class(name, classes)
        self._require([(true, said) for true in classes for said in classes])

    def ratio(self, rows: Labelled) -> Ratio:
        pairs = sorted(set(zip(rows.truth.tolist(), rows.predicted.tolist(), strict=True)))
        self._require(pairs)
        costs = np.zeros(len(rows))
        for true, said in pairs:
            costs[(rows.truth == true) & (rows.predicted == said)] = self._of(true, said)
        return self._ratio(costs)

    def possible(self, rows: Labelled) -> Sequence[Ratio]:
        """A truth of which the matrix does not say what the answer costs has been refused: it counts as a right one."""
        answers = rows.predicted.tolist()
        right = [self._of(said, said) for said in answers]
        costs = [[row.get(said, own) for said, own in zip(answers, right, strict=True)] for row in self.matrix.values()]
        return [self._ratio(np.array(each, dtype=np.float64)) for each in (right, *costs)]

    def _ratio(self, costs: Floats) -> Ratio:
        every = [cost for row in self.matrix.values() for cost in row.values()] + [0.0]
        return Ratio(costs, np.ones(len(costs)), min(every), max(every), levels=tuple(sorted(set(every))))

    def _of(self, true: str, said: str) -> float:
        return float(self.matrix.get(true, {}).get(said, 0.0))

    def _require(self, pairs: Sequence[tuple[str, str]]) -> None:
        lacking = [(a, b) for a, b in pairs if a != b and b not in self.matrix.get(a, {})]
        if lacking:
            named = "; ".join(f"{true} said to be {said}" for true, said in lacking[:5])
            more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
            raise InputError(
                f"the cost matrix does not say what these cost: {named}{more}. Write 0 where it is nothing"
            )
