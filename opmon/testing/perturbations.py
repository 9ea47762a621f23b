"""The suite that every perturbation passes."""

from __future__ import annotations

import numpy as np

from opmon.abc import Perturbation
from opmon.errors import InputError
from opmon.types import Array

SEVERITIES = (1, 2, 3, 4, 5)


def check_perturbation(perturbation: Perturbation, inputs: Array | None = None) -> None:
    """Check that a perturbation keeps shape, type and range, goes by the seed, changes something, not its inputs.

    ``inputs`` are of its kind; pictures, texts or a table are made where none are given.
    """
    assert isinstance(perturbation, Perturbation), f"{type(perturbation).__name__} does not subclass Perturbation"
    given = made(perturbation.kind) if inputs is None else inputs
    before = given.copy()
    fitted = perturbation.fitted(given)
    changed = []
    for severity in SEVERITIES:
        after = fitted.apply(given, severity, np.random.default_rng(5))
        again = fitted.apply(given, severity, np.random.default_rng(5))
        assert after.shape == given.shape, f"shape {given.shape} became {after.shape}"
        assert after.dtype == given.dtype, f"{given.dtype} became {after.dtype}"
        assert _same(after, again), "the same seed gives another result"
        assert _same(given, before), "apply() changed its inputs"
        if perturbation.kind == "image":
            assert after.min() >= 0, f"a picture went below 0 at severity {severity}"
            assert after.max() <= 1 + 1e-5, f"a picture went above 1 at severity {severity}"
        changed.append(not _same(after, given))
    assert changed[-1], f"severity {SEVERITIES[-1]} changes nothing"
    try:
        fitted.apply(given, 99, np.random.default_rng(5))
    except InputError:
        return
    raise AssertionError("severity 99 is taken; say in an InputError which severities there are")


def made(kind: str) -> Array:
    """Pictures with edges and a gradient, short texts, or a table."""
    rng = np.random.default_rng(3)
    if kind == "text":
        texts = [
            "I can't believe how good this film is, really.",
            "The plot was slow; we didn't like the actors.",
        ]
        return np.array(texts * 6, dtype=object)
    if kind == "table":
        return rng.normal(size=(40, 5)).astype(np.float32)
    y, x = np.mgrid[0:24, 0:20]
    disc = ((y - 12) ** 2 + (x - 10) ** 2 < 50)[None, ..., None]
    tone = rng.uniform(0.3, 0.9, (8, 1, 1, 3))
    scene: Array = (np.where(disc, tone, 0.05) + 0.1 * (x / 20)[None, ..., None]).astype(np.float32)
    return scene.clip(0, 1)


def _same(one: Array, other: Array) -> bool:
    return bool(np.array_equal(one, other) if one.dtype == object else np.array_equal(one, other, equal_nan=True))
