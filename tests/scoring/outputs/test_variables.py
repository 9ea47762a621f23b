from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from scipy.special import softmax as scipy_softmax
from scipy.stats import entropy

from opmon.scoring.outputs.variables import FLOOR, by_class, ranked, sigmoid, softmax, variables_of

LOGITS = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=st.floats(-200, 200))


def test_variables_by_hand() -> None:
    found = variables_of(np.array([[0.7, 0.2, 0.1]]))
    assert found["confidence"] == pytest.approx(0.3)
    assert found["margin"] == pytest.approx(0.5)
    assert found["entropy"] == pytest.approx(entropy([0.7, 0.2, 0.1]))
    assert found["gini"] == pytest.approx(1 - 0.49 - 0.04 - 0.01)


def test_variables_of_a_sure_model_are_the_floor() -> None:
    for values in variables_of(np.array([[0.0, 1.0, 0.0]])).values():
        assert values.tolist() == [np.float32(FLOOR)]


@given(LOGITS)
def test_variables_are_positive_finite_and_do_not_depend_on_the_order_of_classes(logits) -> None:
    probabilities = softmax(logits)
    found, turned = variables_of(probabilities), variables_of(probabilities[:, ::-1])
    for name, values in found.items():
        assert values.dtype == np.float32
        assert np.isfinite(values).all()
        assert (values >= np.float32(FLOOR)).all()
        np.testing.assert_allclose(values, turned[name], rtol=1e-5, atol=1e-6)


@given(LOGITS)
def test_softmax_and_sigmoid_agree_with_scipy(logits) -> None:
    np.testing.assert_allclose(softmax(logits), scipy_softmax(logits, axis=1), rtol=1e-12)
    np.testing.assert_allclose(sigmoid(logits), expit(logits), rtol=1e-9, atol=1e-300)


def test_sigmoid_of_extremes_warns_of_nothing() -> None:
    assert sigmoid(np.array([[-1e4, 1e4]], np.float32)).tolist() == [[0, 1]]


@pytest.mark.parametrize("classes", [2, 10, 32, 33, 300])
def test_ranking_is_the_two_largest_and_the_first_of_equal_ones(classes) -> None:
    probabilities = np.random.default_rng(classes).dirichlet(np.ones(classes), 500).round(1)
    top = ranked(by_class(probabilities))
    in_order = np.sort(probabilities, axis=1)
    assert (top.column == probabilities.argmax(axis=1)).all()
    assert (top.first == in_order[:, -1]).all()
    assert (top.second == in_order[:, -2]).all()


@pytest.mark.parametrize("classes", [1, 3, 10, 40])
def test_variables_have_the_same_bits_whatever_rows_stand_beside(classes) -> None:
    logits = np.random.default_rng(0).normal(size=(70, classes)).astype(np.float32)
    whole = variables_of(softmax(logits))
    for step in (1, 2, 64):
        parts = [variables_of(softmax(logits[at : at + step])) for at in range(0, len(logits), step)]
        for name, values in whole.items():
            assert np.concatenate([part[name] for part in parts]).tobytes() == values.tobytes(), (name, step)
