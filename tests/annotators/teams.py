"""Simulated teams: who answers what of a population's inputs, and errs how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon import plugins
from opmon.annotators import Opinion, by_majority
from opmon.testing.populations import Population, classifier
from opmon.types import Draw, Sample

Overlap = float | Literal["failures"]


@dataclass(frozen=True, eq=False)
class World:
    """A model's inputs with their truths, and a team that labels them.

    ``error`` is the team's mean; its members differ by ``spread`` in the logarithm. With ``harder`` errors follow the
    difficulty of the input (from a quarter of the mean to two and a half times), as the model's failures do. Of wrong
    answers, theirs and the model's, a share ``confused`` names the class that is most like the truth.
    """

    population: Population
    predictions: NDArray[np.int64]
    truths: NDArray[np.int64]
    classes: int
    error: float
    difficulty: NDArray[np.float64]
    skips: float = 0.0
    members: int = 5
    spread: float = 0.5
    confused: float = 0.0

    @classmethod
    def of(
        cls,
        classes: int = 10,
        error: float = 0.05,
        harder: bool = False,
        skips: float = 0.0,
        accuracy: float = 0.9,
        size: int = 4000,
        seed: int = 3,
        confused: float = 0.0,
    ) -> World:
        population = classifier(size, accuracy, seed=seed)
        rng = np.random.default_rng(seed)
        predictions = rng.integers(0, classes, size)
        away = np.where(rng.random(size) < confused, 1, rng.integers(1, classes, size))
        truths = (predictions - away * (population.outcomes > 0)) % classes
        rank = np.argsort(np.argsort(np.asarray(population.frame.variable("confidence")))) / size
        difficulty = 0.25 + 2.25 * rank**2 if harder else np.ones(size)
        return cls(
            population, predictions, truths, classes, error, difficulty / difficulty.mean(), skips, confused=confused
        )

    def answer(self, position: int, member: int, rng: np.random.Generator) -> int:
        """What a member says."""
        own = np.exp(self.spread * np.linspace(-1, 1, self.members))
        wrong = min(self.error * own[member] / own.mean() * self.difficulty[position], 0.8 if self.classes > 2 else 0.5)
        truth = int(self.truths[position])
        if rng.random() >= wrong:
            return truth
        away = 1 if rng.random() < self.confused else int(rng.integers(1, self.classes))
        return (truth + away) % self.classes

    def opinion(self, position: int, overlap: Overlap, rng: np.random.Generator) -> Opinion:
        """What the team says of an input: so many answers, a fraction being a chance of one more; or a blind second
        one where the first makes the model wrong, and a third where they differ."""
        order = rng.permutation(self.members)
        said = [self.answer(position, int(order[0]), rng)]
        if overlap == "failures":
            if said[0] != self.predictions[position]:
                said.append(self.answer(position, int(order[1]), rng))
                said += [self.answer(position, int(order[2]), rng)] if said[1] != said[0] else []
        else:
            more = int(overlap) - 1 + (rng.random() < overlap % 1)
            said += [self.answer(position, int(order[k + 1]), rng) for k in range(more)]
        answers = {f"a{member}": str(each) for member, each in zip(order, said, strict=False)}
        return Opinion(answers, str(self.predictions[position]))

    def gold(self, count: int, rng: np.random.Generator) -> list[Opinion]:
        """Random inputs with their truth, each answered by one member."""
        chosen = rng.integers(0, len(self.truths), count)
        said = [(int(at), int(rng.integers(self.members))) for at in chosen]
        return [
            Opinion(
                {f"a{member}": str(self.answer(at, member, rng))}, str(self.predictions[at]), str(self.truths[at]), 1
            )
            for at, member in said
        ]

    def draw(self, sampler: str, budget: int, rng: np.random.Generator) -> Draw:
        """A sampler's draw; the waves of one that learns see the true outcomes."""
        made = plugins.make("sampler", sampler)
        draw: Draw = made.draw(self.population.frame, budget, rng)
        while len(draw) < budget:
            longer = made.next_batch(self.population.frame, budget, self.population.answer(draw), rng)
            if len(longer) == len(draw):
                break
            draw = longer
        return draw

    def labelled(self, draw: Draw, overlap: Overlap, rng: np.random.Generator) -> tuple[Sample, dict[int, Opinion]]:
        """The draw with the majority's outcomes, and what was said of each input."""
        opinions = {
            at: self.opinion(at, overlap, rng) for at in draw.unique_positions.tolist() if rng.random() >= self.skips
        }
        wrong = {at: float(by_majority(each).truth != each.prediction) for at, each in opinions.items()}
        outcomes = np.array([wrong.get(int(at), np.nan) for at in draw.positions])
        return Sample(draw, outcomes, "classification"), opinions
