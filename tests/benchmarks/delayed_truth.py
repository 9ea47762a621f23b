"""Truth that arrives with a lag: bias and coverage of what is reported at each moment.

    python tests/benchmarks/delayed_truth.py [--draws 200] [--repetitions 400] [--json]

A model that takes 40 % of the frauds (5 % of the inputs) for none, and 2 % of the others for frauds. Moments are in
median lags after the round. ``design`` takes for granted that lags do not depend on the truth: what is reported while
too little is known of them. ``lags`` weighs by the lags of twelve earlier rounds, the oldest of them six median lags
older: what is reported from then on. ``holds`` says where the stated assumption does; there, no interval may cover
less than 93 %.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.estimators import SimpleRandomEstimator
from opmon.estimators.lagged import arrived, lagged
from opmon.estimators.lags import Arrivals
from opmon.types import Draw, Estimate, Sample

SIZE, ROUNDS, APART = 20_000, 12, 0.5
MOMENTS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Scene:
    """How soon the truth comes: median lags of no fraud and of fraud, and the share that never comes."""

    medians: tuple[float, float] = (1.0, 1.0)
    never: tuple[float, float] = (0.0, 0.0)

    def lags(self, fraud: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float64]:
        median, never = (np.where(fraud, of[1], of[0]) for of in (self.medians, self.never))
        return np.where(rng.random(len(fraud)) < never, np.inf, rng.exponential(median / np.log(2)))

    def holds(self, way: str) -> bool:
        """Whether what an estimate takes for granted is so."""
        same = self.never[0] == self.never[1]
        return same and (way == "lags" or self.medians[0] == self.medians[1])


SCENES = {
    "exponential": Scene(),
    "fraud sooner": Scene((2.0, 0.5)),
    "fraud later": Scene((0.5, 2.0)),
    "never for 20 %": Scene(never=(0.2, 0.2)),
    "fraud sooner, never for 20 %": Scene((2.0, 0.5), (0.2, 0.2)),
    "fraud later, never for 20 %": Scene((0.5, 2.0), (0.2, 0.2)),
    "never for 40 % of frauds": Scene(never=(0.1, 0.4)),
}


@dataclass(frozen=True)
class Line:
    """What was reported at one moment."""

    scene: str
    way: str
    moment: float
    reported: int
    bias: float
    coverage: float
    half_width: float
    holds: bool


def study(name: str, draws: int, repetitions: int, moments: tuple[float, ...] = MOMENTS) -> Iterator[Line]:
    """The lines of one scene."""
    scene, rng = SCENES[name], np.random.default_rng([*name.encode()])
    fraud = rng.random(SIZE) < 0.05
    wrong = np.where(fraud, rng.random(SIZE) < 0.4, rng.random(SIZE) < 0.02)
    found: dict[tuple[str, float], list[Estimate]] = {}
    for _ in range(repetitions):
        past = [rng.integers(0, SIZE, draws) for _ in range(ROUNDS)]
        ages = np.repeat(APART * np.arange(1, ROUNDS + 1), draws)
        old = fraud[np.concatenate(past)]
        lags = scene.lags(old, rng)
        drawn = rng.choice(SIZE, draws, replace=False)
        own = scene.lags(fraud[drawn], rng)
        draw = Draw("srs", SIZE, drawn, constants={"replacement": np.array(False)})
        for moment in moments:
            sample = Sample(draw, np.where(own <= moment, wrong[drawn], np.nan), "classification")
            if not sample.answered.any():
                continue
            found.setdefault(("design", moment), []).append(SimpleRandomEstimator().estimate(sample))
            here = lags <= ages + moment
            learned = Arrivals.learned(lags[here], (ages + moment)[here], old[here].astype(str))
            truths = np.where(own <= moment, fraud[drawn].astype(str), "")
            told = None if learned is None else arrived(learned, truths, np.full(draws, moment))
            if told is not None:
                found.setdefault(("lags", moment), []).append(lagged(sample, np.full(draws, 1 / draws), told))
    accuracy = 1 - float(wrong.mean())
    for (way, moment), estimates in sorted(found.items()):
        yield Line(
            name,
            way,
            moment,
            len(estimates),
            float(np.mean([each.value for each in estimates]) - accuracy),
            float(np.mean([each.low <= accuracy <= each.high for each in estimates])),
            float(np.mean([each.half_width for each in estimates])),
            scene.holds(way),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for name in SCENES:
        for line in study(name, given.draws, given.repetitions):
            if given.json:
                print(json.dumps(vars(line)))
            else:
                mark = "  BELOW 93 %" if line.holds and line.coverage < 0.93 else ""
                print(
                    f"{line.scene:30} {line.way:7} {line.moment:5g}  bias {100 * line.bias:+5.1f} points  covers "
                    f"{100 * line.coverage:5.1f} %  ± {100 * line.half_width:4.1f}  "
                    f"{'holds' if line.holds else 'does not hold'}{mark}"
                )


if __name__ == "__main__":
    main()
