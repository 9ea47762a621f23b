"""How inputs become the columns of a regression, before their labels are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.types import Floats, Numbers

GRID = 256
MOST_CLASSES = 12
"""Of a model that predicts more classes, those predicted less often share one level."""
OWN = "confidence"
"""The variable that is itself a chance to be wrong: one minus the model's largest score."""
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known of some inputs before their labels: auxiliary variables, and which class is predicted."""

    variables: Mapping[str, Numbers]
    predicted: NDArray[np.int64]
    """The number of the predicted class, or -1; all alike where answers are no classes."""

    def __len__(self) -> int:
        return len(self.predicted)

    def chunks(self) -> Iterator[Seen]:
        """The inputs, so many at a time."""
        for start in range(0, len(self), CHUNK):
            where = slice(start, start + CHUNK)
            yield Seen({name: values[where] for name, values in self.variables.items()}, self.predicted[where])

    def only(self, names: Sequence[str]) -> Seen:
        """With these variables alone."""
        return Seen({name: self.variables[name] for name in names}, self.predicted)


def joined(some: Sequence[Seen], names: Sequence[str]) -> Seen:
    """The inputs of several rounds as one, with these variables."""
    variables = {name: np.concatenate([np.asarray(each.variables[name]) for each in some]) for name in names}
    return Seen(variables, np.concatenate([each.predicted for each in some]))


@dataclass(frozen=True, eq=False)
class Scale:
    """Where a value lies among those of labelled inputs, from -1/2 to 1/2: nothing is extrapolated beyond them."""

    steps: Floats

    @classmethod
    def of(cls, values: Numbers) -> Scale:
        return cls(np.unique(np.quantile(values.astype(np.float64), np.linspace(0, 1, GRID + 1))))

    def at(self, values: Numbers) -> Floats:
        if len(self.steps) < 2:
            return np.zeros(len(values))
        places = np.linspace(-0.5, 0.5, len(self.steps))
        return np.nan_to_num(np.interp(values, self.steps, places))


@dataclass(frozen=True, eq=False)
class Design:
    """The columns: an intercept, each variable's place and its square, and each class that is often predicted."""

    scales: Mapping[str, Scale]
    classes: tuple[int, ...]
    binary: bool
    starts: bool
    """Whether the regression starts from the model's own scores."""

    @classmethod
    def of(cls, inputs: Seen, *, binary: bool, starts: bool) -> Design:
        """As labelled inputs are spread."""
        scales = {name: Scale.of(values) for name, values in sorted(inputs.variables.items())}
        known, counts = np.unique(inputs.predicted[inputs.predicted >= 0], return_counts=True)
        often = known[np.argsort(-counts, kind="stable")][:MOST_CLASSES]
        classes = tuple(sorted(often.tolist())) if len(known) > 1 else ()
        return cls(scales, classes, binary, starts and binary and OWN in scales)

    @property
    def width(self) -> int:
        return 1 + 2 * len(self.scales) + len(self.classes)

    def columns(self, inputs: Seen) -> NDArray[np.float64]:
        """One row per input."""
        found = np.empty((len(inputs), self.width))
        found[:, 0] = 1
        for k, (name, scale) in enumerate(self.scales.items()):
            place = scale.at(inputs.variables[name])
            found[:, 1 + 2 * k] = place
            found[:, 2 + 2 * k] = 2 * place**2 - 1 / 6
        for k, name_ in enumerate(self.classes):
            found[:, 1 + 2 * len(self.scales) + k] = inputs.predicted == name_
        return found

    def offset(self, inputs: Seen) -> Floats:
        """The log odds of being wrong that the model's own scores tell; 0 where they do not count."""
        return log_odds(inputs.variables[OWN]) if self.starts else np.zeros(len(inputs))


def log_odds(chance: Numbers) -> Floats:
    """Of chances, which are kept off 0 and 1; of one that is not known, 0."""
    inside = np.clip(np.nan_to_num(np.asarray(chance, dtype=np.float64), nan=0.5), 1e-4, 1 - 1e-4)
    return np.asarray(np.log(inside / (1 - inside)))
