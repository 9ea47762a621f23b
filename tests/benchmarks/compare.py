"""Labels that a decision between two models takes: the same inputs for both, against a sample for each.

    apt-get install dataset-fashion-mnist
    python tests/benchmarks/compare.py [--data /usr/share/datasets/fashion-mnist] [--json]

Classifiers of scikit-learn are fitted on Fashion-MNIST; each pair is compared on the 10,000 test images, in rounds of
random draws, until the evidence decides. Both ways use the same bets and the same bound on wrong decisions.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opmon.decisions._betting import BETS, HIGHEST
from opmon.decisions._paired import BOLD
from opmon.decisions._watch import PRIOR

ALPHA = 0.05
Losses = NDArray[np.float64]


def images(path: Path) -> NDArray[np.float32]:
    raw = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16)
    return (raw.reshape(-1, 784) / 255).astype(np.float32)


def labels(path: Path) -> NDArray[np.uint8]:
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=8)


def fitted(data: Path, size: int) -> tuple[dict[str, Losses], int]:
    """The losses of every model on the test images."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    x, y = images(data / "train-images-idx3-ubyte.gz")[:size], labels(data / "train-labels-idx1-ubyte.gz")[:size]
    xt, yt = images(data / "t10k-images-idx3-ubyte.gz"), labels(data / "t10k-labels-idx1-ubyte.gz")
    models = {
        "linear": SGDClassifier(loss="log_loss", max_iter=20, tol=None, random_state=0),
        "discriminant": LinearDiscriminantAnalysis(),
        "neighbours": KNeighborsClassifier(5),
        "trees": ExtraTreesClassifier(60, random_state=0),
        "network": MLPClassifier((64,), max_iter=15, random_state=0),
        "network, another seed": MLPClassifier((64,), max_iter=25, random_state=1),
        "boosting": HistGradientBoostingClassifier(max_iter=15, random_state=0),
    }
    return {name: (model.fit(x, y).predict(xt) != yt).astype(float) for name, model in models.items()}, len(yt)


def decided(differences: Callable[[int], Losses], most: int, step: int) -> tuple[int, int]:
    """The decision (1, −1, or 0 for none) and the draws it took, looked at every ``step`` draws."""
    wealth = np.zeros((2, len(BETS)))
    bets = np.minimum(BOLD * BETS, HIGHEST)
    for drawn in range(step, most + 1, step):
        u = differences(step)
        wealth += np.stack([np.log1p(sign * bets[:, None] * u).sum(axis=1) for sign in (1, -1)])
        evidence = np.exp(np.minimum(wealth, 600)) @ PRIOR * ALPHA / 2
        if evidence.max() >= 1:
            return (1, -1)[int(evidence.argmax())], drawn
    return 0, most


def study(a: Losses, b: Losses, lives: int, most: int, step: int, seed: int) -> dict[str, float]:
    """Median labels of both ways, and how often they decide, and decide rightly."""
    rng = np.random.default_rng(seed)
    right = int(np.sign(a.mean() - b.mean()))

    def paired(count: int) -> Losses:
        chosen = rng.integers(0, len(a), count)
        return np.asarray(a[chosen] - b[chosen])

    def independent(count: int) -> Losses:
        return np.asarray(a[rng.integers(0, len(a), count)] - b[rng.integers(0, len(b), count)])

    one = [decided(paired, most, step) for _ in range(lives)]
    two = [decided(independent, most // 2, step // 2) for _ in range(lives)]
    return {
        "labels_paired": float(np.median([drawn for _, drawn in one])),
        "labels_independent": float(np.median([2 * drawn for _, drawn in two])),
        "decided_paired": float(np.mean([choice != 0 for choice, _ in one])),
        "decided_independent": float(np.mean([choice != 0 for choice, _ in two])),
        "wrong_paired": float(np.mean([choice == -right for choice, _ in one])),
        "wrong_independent": float(np.mean([choice == -right for choice, _ in two])),
        "same_decision": float(np.mean([p[0] == q[0] for p, q in zip(one, two, strict=True) if p[0] and q[0]] or [1])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--train", type=int, default=6000, help="training images")
    parser.add_argument("--lives", type=int, default=60)
    parser.add_argument("--most", type=int, default=20000, help="labels after which a life is given up")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    losses, _ = fitted(options.data, options.train)
    ratios = []
    for number, (one, two) in enumerate(itertools.combinations(losses, 2)):
        a, b = losses[one], losses[two]
        found = study(a, b, options.lives, options.most, 50, number)
        row = {"first": one, "second": two, "accuracy": [round(float(1 - loss.mean()), 4) for loss in (a, b)]}
        row |= {"disagreement": round(float((a != b).mean()), 3)} | found
        row["ratio"] = round(found["labels_paired"] / found["labels_independent"], 3)
        if found["decided_independent"] > 0.5:
            ratios.append(row["ratio"])
        print(
            json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items()), flush=True
        )
    if not options.json:
        told = f"mean {np.mean(ratios):.2f}, most {max(ratios):.2f} over {len(ratios)} pairs that two samples decide"
        print(f"labels of the paired design over those of two samples: {told} (bar 0.60)")


if __name__ == "__main__":
    main()
