"""Scenes of the benchmark of failure groups: inputs that a known harm was done to, and which failures it made.

The truth is what a failure needs: it counts as made by the harm where the model is right without it. A failure that
would have been one anyway is of no cause, whatever was done to its input.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tomography_data
from numpy.typing import NDArray

from opmon.causes import features_of, picture_features
from opmon.causes.features import Feature

POOL = 6000
NONE = "no cause"

Words = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Scene:
    """Inputs of production, what was done to each, and what the model says."""

    harms: Words
    """What was done to each input."""
    needless: NDArray[np.bool_]
    """Which inputs the model has right without that."""
    predicted: Words
    truth: Words
    suspicion: NDArray[np.float64]
    features: Callable[[NDArray[np.int64]], Sequence[Feature]]
    """Of some of them."""
    rounds: NDArray[np.int64] = field(default_factory=lambda: np.zeros(POOL, np.int64))
    labels: int = 600
    """So many labels a round."""

    @property
    def causes(self) -> Words:
        """Of each input: the harm, where it is what makes the failure."""
        return np.where(self.needless, self.harms, NONE)


def demo(seed: int) -> Scene:
    """The demo's first eight hours: its stream, its model, its labels; the drift grows in the last four."""
    from opmon.demo import stream
    from opmon.demo.digits import load
    from opmon.demo.model import serving, train
    from opmon.demo.plot import Plan
    from opmon.scoring.session import open_session

    plan = Plan(seed=seed)
    hours = range(1, plan.healthy + len(plan.drift) + 1)
    training, before, _ = load(seed)
    model = train(training, seed)
    predict, session = serving(model), open_session(model, "cpu", threads=1)
    windows = [
        stream.window(
            hour,
            pool=before,
            size=plan.window_size,
            drift=plan.drift_of(hour),
            predict=predict,
            model_version="1",
            seed=seed,
        )
        for hour in hours
    ]
    clean, truth = (
        np.concatenate(both) for both in zip(*(_unmoved(before, each, seed) for each in windows), strict=True)
    )
    pictures = np.concatenate([each.digits.rows for each in windows])
    drift = np.repeat([each.drift for each in windows], plan.window_size)
    chances = np.asarray(session.run(["probabilities"], {session.inputs[0].name: pictures})[0])
    return _of_pictures(
        pictures,
        np.where(drift > 0, "the drift", NONE).astype(object),
        predict(clean.reshape(len(clean), 64)) == truth,
        np.concatenate([each.predictions for each in windows]).astype(str).astype(object),
        1 - chances.max(axis=1),
        truth,
        (8, 8),
        rounds=np.repeat([each.number for each in windows], plan.window_size),
        labels=plan.budget,
    )


def _unmoved(pool: Any, window: Any, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The pictures of a window as they would have come without any drift, by the same chance, and their truth."""
    from opmon.demo.digits import USUAL, handled, mix

    rng = np.random.default_rng([seed, 3, window.number])
    chosen = pool.take(rng.choice(len(pool), len(window.ids), p=mix(pool.truth, window.drift)))
    if not np.array_equal(chosen.truth, window.digits.truth):
        raise AssertionError("the demo draws its windows in another way than this benchmark repeats")
    return handled(chosen.pictures, USUAL, rng), chosen.truth


def digits(seed: int, rounds: int = 1) -> Scene:
    """The demo's pictures, nearly half of them turned, blurred or noisy, each by chance; of several rounds, in the
    second half of them."""
    from opmon.demo.digits import Handling, handled, load

    rng = np.random.default_rng([seed, 4])
    training, before, after = load(seed)
    pool = before.joined(after)
    chosen = pool.take(rng.choice(len(pool), POOL))
    harms = rng.choice([NONE, "turned", "blurred", "noisy"], POOL, p=[0.55, 0.15, 0.15, 0.15]).astype(object)
    number = np.arange(POOL) * rounds // POOL
    harms[number < rounds // 2] = NONE
    clean = handled(chosen.pictures, Handling(), rng)
    pictures = clean.copy()
    for harm, how in (("turned", Handling(angle=35)), ("noisy", Handling(noise=0.25))):
        own = harms == harm
        pictures[own] = handled(chosen.pictures[own], how, rng)
    blurred = harms == "blurred"
    pictures[blurred] = _blurred(pictures[blurred], 1.3)
    model = _digits_model(training, seed)
    return _of_pictures(
        pictures.reshape(POOL, 64),
        harms,
        model.predict(clean.reshape(POOL, 64)) == chosen.truth,
        *scores(model, pictures.reshape(POOL, 64)),
        chosen.truth,
        (8, 8),
        rounds=number,
        labels=600 if rounds == 1 else 150,
    )


def _digits_model(training: Any, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    from opmon.demo.digits import AUGMENTATION, handled

    rng = np.random.default_rng([seed, 2])
    pictures = np.concatenate([handled(training.pictures, AUGMENTATION, rng) for _ in range(4)])
    return _fitted(
        MLPClassifier((64,), alpha=0.01, max_iter=25, random_state=seed),
        pictures.reshape(len(pictures), 64),
        np.tile(training.truth, 4),
    )


def _fitted(model: Any, inputs: Any, truth: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(inputs, truth)


def _blurred(pictures: NDArray[Any], width: float) -> NDArray[Any]:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(pictures, (0, width, width)))


_FASHION: dict[str, Any] = {}


def fashion_pictures(seed: int) -> Scene:
    """Fashion-MNIST, turned, blurred, noisy and dark."""
    import fashion
    from scipy.ndimage import rotate
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng([seed, 5])
    if not _FASHION:
        folder = tomography_data.fashion_mnist(None)
        images, targets = fashion.load(folder, "train")
        some = np.random.default_rng(0).permutation(len(images))[:15_000]
        model = MLPClassifier((128,), max_iter=12, random_state=0, early_stopping=False)
        _FASHION["model"] = _fitted(model, images[some] / 255, targets[some])
        _FASHION["test"] = fashion.load(folder, "t10k")
    images, targets = _FASHION["test"]
    chosen = rng.permutation(len(images))[:POOL]
    clean = images[chosen].reshape(-1, 28, 28) / 255.0
    harms = rng.choice([NONE, "turned", "blurred", "noisy", "dark"], POOL, p=[0.6, 0.1, 0.1, 0.1, 0.1]).astype(object)
    turned, noisy, dark, blurred = (harms == name for name in ("turned", "noisy", "dark", "blurred"))
    pictures = clean.copy()
    pictures[turned] = rotate(pictures[turned], 40, axes=(2, 1), reshape=False, order=1)
    pictures[blurred] = _blurred(pictures[blurred], 2.5)
    pictures[noisy] = np.clip(pictures[noisy] + rng.normal(0, 0.3, pictures[noisy].shape), 0, 1)
    pictures[dark] *= 0.25
    model, truth = _FASHION["model"], targets[chosen]
    right = model.predict(clean.reshape(POOL, 784)) == truth
    rows = pictures.reshape(POOL, 784)
    return _of_pictures(rows, harms, right, *scores(model, rows), truth, (28, 28))


_CENSUS: dict[str, Any] = {}
_ANSWERS = ("id", "employed", "prediction", "predicted_probability", "year")


def census(seed: int) -> Scene:
    """US census: an age that is lost, an age in months, and a segment that changed."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng([seed, 6])
    if not _CENSUS:
        rows = pd.read_parquet(
            tomography_data.census(None, tomography_data.cache_folder()) / "employment_MA_reference.pq"
        )
        names = [name for name in rows.columns if name not in _ANSWERS]
        rows[names] = rows[names].astype(float)
        _CENSUS["names"], _CENSUS["rows"] = names, rows.iloc[30_000:].reset_index(drop=True)
        _CENSUS["model"] = HistGradientBoostingClassifier(random_state=0).fit(
            rows[names].iloc[:30_000], rows["employed"].iloc[:30_000]
        )
    names, rows, model = _CENSUS["names"], _CENSUS["rows"], _CENSUS["model"]
    rows = rows.iloc[rng.permutation(len(rows))[:POOL]].reset_index(drop=True)
    truth = rows["employed"].to_numpy().astype(int)
    right = model.predict(rows[names]) == truth
    harms = np.full(POOL, NONE, dtype=object)
    kind = rng.choice([0, 1, 2], POOL, p=[0.8, 0.1, 0.1])
    harms[kind == 1], harms[kind == 2] = "age is lost", "age in months"
    rows.loc[kind == 1, "AGEP"] = 0.0
    rows.loc[kind == 2, "AGEP"] *= 12
    moved = (kind == 0) & (rows["SEX"] == 2).to_numpy() & rows["AGEP"].between(25, 40).to_numpy()
    harms[moved] = "segment"
    truth = np.where(moved & (rng.random(POOL) < 0.8), 0, truth)
    return of_table(rows[names], harms, right, *scores(model, rows[names]), truth)


def of_table(rows: Any, harms: Words, right: Any, said: Words, suspicion: Any, truth: Any) -> Scene:
    records = rows.to_dict("records")

    def features(positions: NDArray[np.int64]) -> Sequence[Feature]:
        return features_of([{str(name): cell for name, cell in records[at].items()} for at in positions])

    return Scene(harms, right, said, truth.astype(str).astype(object), suspicion, features)


def scores(classifier: Any, inputs: Any) -> tuple[Words, NDArray[np.float64]]:
    chances = classifier.predict_proba(inputs)
    said = np.array([str(classifier.classes_[at]) for at in chances.argmax(axis=1)], dtype=object)
    return said, np.asarray(1 - chances.max(axis=1), dtype=np.float64)


def _of_pictures(
    pictures: NDArray[Any],
    harms: Words,
    right: NDArray[np.bool_],
    said: Words,
    suspicion: NDArray[np.float64],
    truth: NDArray[Any],
    shape: tuple[int, int],
    **rounds: Any,
) -> Scene:
    true = truth.astype(str).astype(object)

    def features(positions: NDArray[np.int64]) -> Sequence[Feature]:
        return picture_features([pictures[at].reshape(shape) for at in positions], list(true[positions]))

    return Scene(harms, right, said, true, suspicion, features, **rounds)


SCENES: Mapping[str, Callable[[int], Scene]] = {
    "demo": demo,
    "digits": digits,
    "fashion": fashion_pictures,
    "census": census,
}
