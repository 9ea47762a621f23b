"""DeepEST: adaptive sampling without replacement that follows suspicious inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.samplers._checks import ByVariable, Prepared, checked_share, chunks
from opmon.samplers._weights import Mixture, ProbabilityClasses, Weights, class_count
from opmon.types import Draw, Numbers, Positions


@dataclass(frozen=True)
class DeepEst(ByVariable):
    """First a uniform draw, then with probability ``r`` one in proportion to the weight, else again a uniform one.

    ``q_{k,i} = r w_i / Σ_{h∉s} w_h + (1 − r) / (N − |s|)``, and ``1 / (N − |s|)`` while no weight is active, without
    replacement (Guerriero et al., ICSE 2021; DeepSample, section 3.4.7). Two variants were published:

    - ``activation="source"`` (the text): weights are ``w_i = χ_i`` once some drawn input has ``χ > τ``;
    - ``activation="target"`` (the released code): ``w_i = χ_i`` where ``χ_i > τ``, else 0.

    The text's is the better one: 0.029 against 0.048 RMSE at n = 200 on a 72 % accurate model, for 10 % fewer failures.
    ``threshold`` is τ; None means 0.3 for ``confidence`` (a confidence below 0.7), mean + variance for ``lsa`` and
    mean + 2 standard deviations for any other variable. Linear in N: no weight depends on the input it leads from.

    Columns: ``probability`` (q_{k,i} of the draw at its step) and ``stratum``, the class of similar probability;
    constant ``stratum_size``: the inputs in each class.
    """

    r: float = 0.8
    """The probability of a draw in proportion to the weights instead of a uniform one."""
    activation: Literal["source", "target"] = "source"
    """Which weights count: all once a suspicious input was drawn (``source``), or suspicious inputs' (``target``)."""
    threshold: float | None = None
    """From which value of the variable on an input is suspicious; by the variable where it is not given."""

    def __post_init__(self) -> None:
        checked_share(self.r, "r", one_allowed=False)
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise InputError(f"threshold is a number, or left out; got {self.threshold!r}")
        if self.activation not in ("source", "target"):
            raise InputError(f"activation must be 'source' or 'target'; got {self.activation!r}")

    def prepared(self, values: Numbers, budget: int) -> Prepared:
        tau = self._threshold(values)
        if self.activation == "source":
            weights = Weights.of(values)
        else:
            weights = Weights.of(np.where(values > tau, values, values.dtype.type(0)), floor=0.0)
        classes = ProbabilityClasses.of(Mixture(weights, 1 - self.r), class_count(budget))
        number = sum(int(np.count_nonzero(weights.of_chunk(part))) for part in chunks(len(values)))
        above_none = self.activation == "target" and not (values > tau).any()

        def draw(rng: np.random.Generator) -> Draw:
            steps = _Steps(weights, 0 if above_none else number, tau if self.activation == "source" else -np.inf)
            positions, probability = steps.run(budget, self.r, rng)
            static = Mixture(weights, 1 - self.r).at(positions)
            return Draw(
                "deepest",
                len(values),
                positions,
                columns={"probability": probability, "stratum": classes.at(static)},
                constants={"stratum_size": classes.sizes},
            )

        return draw

    def _threshold(self, values: Numbers) -> float:
        if self.threshold is not None:
            return self.threshold
        if self.variable == "confidence":
            return 0.3
        mean, deviation = float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))
        return mean + (deviation**2 if self.variable == "lsa" else 2 * deviation)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The walk over the frame. ``weighted`` counts the inputs with a positive weight, ``source`` is the χ to pass."""

    weights: Weights
    weighted: int
    source: float

    def run(self, count: int, r: float, rng: np.random.Generator) -> tuple[Positions, NDArray[np.float64]]:
        N = len(self.weights.values)
        by_weight = iter(self.weights.draw_without_replacement(min(count, self.weighted), rng).tolist())
        uniform = _integers(N, rng)
        coins = (rng.random(count) < r).tolist()
        value, floor = self.weights.values.item, self.weights.floor
        positions: dict[int, None] = {}
        probability = []
        rest, left, active = self.weights.total, self.weighted, False
        for k in range(count):
            follow = active and left > 0
            source = by_weight if follow and coins[k] else uniform
            i = next(source)
            while i in positions:
                i = next(source)
            chi = value(i)
            w = chi if chi > floor else floor
            chance = 1 / (N - k)
            probability.append(r * w / rest + (1 - r) * chance if follow else chance)
            positions[i] = None
            rest, left = max(rest - w, w * 1e-12), left - (w > 0)
            active = active or chi > self.source
        return np.array(list(positions), dtype=np.int64), np.array(probability)


def _integers(stop: int, rng: np.random.Generator, block: int = 256) -> Iterator[int]:
    while True:
        yield from rng.integers(0, stop, block).tolist()
