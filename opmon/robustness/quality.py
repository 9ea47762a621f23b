"""Distances of perturbed inputs from the originals: 0 is none, larger is worse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.types import Array

Quality = Callable[[Array, Array], float]
"""Perturbed inputs and the originals, as the model takes them, to a distance."""


def kernel_distance(extract: Callable[[Array], Array]) -> Quality:
    """KID of images on the features that ``extract`` gives, standardised on the originals.

    The unbiased squared MMD with k(x, y) = (x·y/d + 1)³; it may be slightly negative for what cannot be told apart.

    Reference: Bińkowski, Sutherland, Arbel and Gretton, Demystifying MMD GANs, ICLR 2018.
    """

    known: dict[int, tuple[Array, NDArray[np.float64]]] = {}  # the originals are the same every time

    def distance(perturbed: Array, original: Array) -> float:
        if id(original) not in known:
            known.clear()
            known[id(original)] = original, _rows(extract(original))
        reference = known[id(original)][1]
        middle, spread = reference.mean(axis=0), reference.std(axis=0)
        kept = spread > 1e-8
        if not kept.any():
            raise InputError("the features are the same for all inputs; take another layer for the quality")
        x, y = ((rows[:, kept] - middle[kept]) / spread[kept] for rows in (_rows(extract(perturbed)), reference))
        return mmd(x, y)

    return distance


def mmd(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The unbiased squared maximum mean discrepancy with the cubic kernel."""
    n, m, d = len(x), len(y), x.shape[1]
    if n < 2 or m < 2:
        raise InputError(f"a kernel distance needs at least two inputs on each side; got {n} and {m}")
    xx, yy, xy = ((a @ b.T / d + 1) ** 3 for a, b in ((x, x), (y, y), (x, y)))
    within = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
    return float(within - 2 * xy.mean())


def text_distance(perturbed: Array, original: Array) -> float:
    """1 − mean cosine between each text and its original, embedded by hashed words and character 3- to 5-grams.

    Needs no model and no download; another embedding is another :data:`Quality`.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    total = np.zeros(len(original))
    for options in ({"analyzer": "word"}, {"analyzer": "char_wb", "ngram_range": (3, 5)}):
        embed = HashingVectorizer(n_features=2**16, **options)
        x, y = embed.transform([str(t) for t in perturbed]), embed.transform([str(t) for t in original])
        cosine = np.asarray(x.multiply(y).sum(axis=1)).ravel()
        both_empty = (np.diff(x.indptr) == 0) & (np.diff(y.indptr) == 0)
        total += np.where(both_empty, 1.0, cosine)
    return float(1 - (total / 2).mean())


def population_shift(perturbed: Array, original: Array, bins: int = 10) -> float:
    """The population stability index Σ (p − q)·ln(p/q), averaged over the columns of a table.

    ``bins`` quantiles of the original and one for missing values; empty ones count as half a row. Below 0.1 is usually
    called stable, above 0.25 a shift (Siddiqi, Credit Risk Scorecards, 2006).
    """
    x, y = _rows(perturbed), _rows(original)
    return float(np.mean([_stability(x[:, column], y[:, column], bins) for column in range(y.shape[1])]))


def _stability(x: NDArray[np.float64], y: NDArray[np.float64], bins: int) -> float:
    finite = y[np.isfinite(y)]
    inner = np.unique(np.quantile(finite, np.linspace(0, 1, bins + 1)[1:-1])) if len(finite) else np.empty(0)
    shares = []
    for part in (x, y):
        place = np.where(np.isfinite(part), np.searchsorted(inner, part, side="right"), len(inner) + 1)
        counts = np.maximum(np.bincount(place, minlength=len(inner) + 2), 0.5)
        shares.append(counts / counts.sum())
    p, q = shares
    return float(((p - q) * np.log(p / q)).sum())


def _rows(values: Array) -> NDArray[np.float64]:
    values = np.asarray(values, np.float64)
    return values.reshape(len(values), -1)
