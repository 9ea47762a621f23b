from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.robustness.quality import kernel_distance, mmd, population_shift, text_distance
from opmon.robustness.quality_surrogate import predicted_quality
from opmon.robustness.space import Space


def test_mmd_by_hand() -> None:
    x, y = np.array([[1.0], [0.0]]), np.array([[2.0], [0.0]])
    within_x, within_y, across = 1.0, 1.0, (3**3 + 1 + 1 + 1) / 4
    assert mmd(x, y) == pytest.approx(within_x + within_y - 2 * across)


def test_mmd_is_unbiased() -> None:
    rng = np.random.default_rng(0)
    found = [mmd(rng.normal(size=(40, 4)), rng.normal(size=(40, 4))) for _ in range(200)]
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(200)


def test_kernel_distance_grows_with_the_change() -> None:
    rng = np.random.default_rng(0)
    original = rng.normal(size=(200, 6))
    distance = kernel_distance(lambda values: values)
    found = [distance(original + shift, original) for shift in (0.0, 0.5, 1.0, 2.0)]
    assert found == sorted(found)
    assert abs(found[0]) < 0.2 < found[1]


def test_kernel_distance_of_dead_features() -> None:
    with pytest.raises(InputError, match="another layer"):
        kernel_distance(lambda values: values)(np.ones((5, 2)), np.ones((5, 2)))


def test_text_distance() -> None:
    original = np.array(["the cat sat on the mat", ""], dtype=object)
    assert text_distance(original, original) == pytest.approx(0)
    near = np.array(["the cat sat on the mta", ""], dtype=object)
    far = np.array(["entirely different words", "new"], dtype=object)
    assert 0 < text_distance(near, original) < text_distance(far, original) <= 1.2


def test_population_shift() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2000, 3))
    assert population_shift(table, table) == pytest.approx(0, abs=1e-9)
    assert population_shift(rng.normal(size=(2000, 3)), table) < 0.05
    assert population_shift(table + 1, table) > 0.25
    lost = np.where(rng.random(table.shape) < 0.4, np.nan, table)
    assert population_shift(lost, table) > 0.25


def test_predicted_quality_of_additive_roots() -> None:
    space = Space(("a", "b", "c"))
    tests = space.tests()
    truth = (0.1 * tests.severity_sum) ** 2
    found = {c: float(q) for c, q, order in zip(tests.chains(), truth, tests.order, strict=True) if order <= 2}
    found[((0, 3), (1, 3), (2, 3))] = 0.81
    found[((0, 5), (1, 5), (2, 5))] = 2.25
    graded = predicted_quality(space, found)
    known = np.array([chain in found for chain in tests.chains()])
    assert graded.value[known] == pytest.approx(truth[known])
    assert (graded.error[known] == 0).all()
    assert (graded.error[~known] > 0).all()
    assert np.abs(graded.value - truth).mean() < 0.12
