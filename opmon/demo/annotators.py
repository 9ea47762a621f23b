"""The demo's annotators: they know the truth, but skip some tasks and make slips.

Two annotators answer every task, each on their own. A picture in fifty is illegible to both: they skip it. Each of them
also slips now and then and gives another digit. Where the two differ a third one is asked, and the answer that two of
them gave counts. Without the second look the slips would bias every estimate: of 150 right predictions two or three
would be taken for failures, which is more than the interval of a 97 % accurate model allows for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from opmon.demo.digits import CLASSES
from opmon.types import Label, Task


@dataclass(frozen=True)
class Annotators:
    """Two annotators and the one who settles what they disagree on."""

    mistakes: float = 0.015
    """The share of each annotator's answers that are slips."""
    illegible: float = 0.02
    """The share of pictures that nobody can tell."""
    names: tuple[str, str, str] = ("ann", "ben", "cleo")

    def answer(
        self, tasks: Sequence[Task], truth: Mapping[str, int], at: datetime, rng: np.random.Generator
    ) -> list[Label]:
        """Their labels of the tasks; ``truth`` maps input ids to digits."""
        return [label for task in tasks for label in self._answer_one(task, truth[task.input_id], at, rng)]

    def _answer_one(self, task: Task, truth: int, at: datetime, rng: np.random.Generator) -> list[Label]:
        first, second, third = self.names
        if rng.random() < self.illegible:
            return [Label(task.id, first, None, at), Label(task.id, second, None, at)]
        said = [Label(task.id, name, self._digit(truth, rng), at) for name in (first, second)]
        if said[0].truth != said[1].truth:
            said.append(Label(task.id, third, self._digit(truth, rng), at))
        return said

    def _digit(self, truth: int, rng: np.random.Generator) -> str:
        if rng.random() >= self.mistakes:
            return CLASSES[truth]
        others = [name for name in CLASSES if name != CLASSES[truth]]
        return others[int(rng.integers(len(others)))]
