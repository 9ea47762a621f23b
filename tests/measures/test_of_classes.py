from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from opmon.errors import InputError
from tests.measures.made import classified, estimate, measure

TRUTH = ["cat", "cat", "cat", "cat", "dog", "dog", "dog", "owl", "owl", "owl"]
SAID = ["cat", "cat", "cat", "dog", "dog", "dog", "cat", "owl", "dog", "cat"]
ROWS = classified(TRUTH, SAID)


def test_worked_by_hand() -> None:
    values = {name: estimate(ROWS, measure(name, class_="cat")).value for name in ("recall", "precision", "f1")}
    assert values == pytest.approx({"recall": 3 / 4, "precision": 3 / 5, "f1": 6 / 9})
    assert estimate(ROWS, measure("accuracy")).value == pytest.approx(0.6)


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("name", ["recall", "precision", "f1"])
def test_the_mean_over_classes_is_that_of_scikit_learn(name: str, average: str) -> None:
    score = {"recall": metrics.recall_score, "precision": metrics.precision_score, "f1": metrics.f1_score}[name]
    found = estimate(ROWS, measure(name, average=average))
    assert found.value == pytest.approx(score(TRUTH, SAID, average=average))
    assert found.quantity.name == f"{average} {'F1' if name == 'f1' else name}"
    assert found.low < found.value < found.high


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("name", ["recall", "precision", "f1"])
def test_the_influence_is_the_derivative_by_the_weights(name: str, average: str) -> None:
    one, weights = measure(name, average=average), np.random.default_rng(1).uniform(0.5, 2, len(TRUTH))
    weights /= weights.sum()
    influence, step = one.linearised(ROWS, weights), 1e-6
    assert influence is not None
    for k in range(len(TRUTH)):
        moved = weights + step * (np.arange(len(TRUTH)) == k)
        assert (one.value(ROWS, moved) - one.value(ROWS, weights)) / step == pytest.approx(influence[k], abs=1e-4)


def test_a_class_or_an_average_is_wanted_and_not_both() -> None:
    with pytest.raises(InputError, match="got neither"):
        measure("recall")
    with pytest.raises(InputError, match="got both"):
        measure("precision", class_="cat", average="macro")
    with pytest.raises(InputError, match="'macro', 'weighted' or 'micro'; got 'mean'"):
        measure("recall", average="mean")


def test_an_unknown_class_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no class 'catt'; the classes are: cat, dog\. Did you mean 'cat'\?"):
        measure("recall", class_="catt").check(["cat", "dog"])


def test_a_class_of_which_there_is_no_answer_leaves_nothing_to_estimate() -> None:
    rows = classified(["cat", "dog"] * 5, ["cat", "dog"] * 5)
    with pytest.raises(InputError, match=r"recall\[owl\] is undefined: none of the 10 answers counts"):
        estimate(rows, measure("recall", class_="owl"))


def test_few_answers_of_a_class_are_told() -> None:
    found = estimate(ROWS, measure("recall", class_="owl"))
    assert "only 3 answered draws" in found.notes[0]
    assert found.low < 0.05
    assert found.high > 0.8


def test_a_class_without_an_answer_is_left_out_of_the_mean_and_told() -> None:
    rows = classified(["cat"] * 12 + ["dog"] * 12, ["cat"] * 23 + ["owl"])
    found = estimate(rows, measure("recall", average="macro"))
    assert found.value == pytest.approx((1 + 0) / 2)
    assert any("the mean is over 2 of 3 classes: no answer counts for owl" in note for note in found.notes)
    assert found.low < 1 / 3
    assert found.high > 2 / 3
