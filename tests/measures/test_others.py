"""Cost matrices, tables, several labels, judged outputs, functions of one's own."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from sklearn import metrics

from opmon.errors import InputError, PluginError
from opmon.types import Labelled
from tests.measures.made import classified, estimate, measure

TRUTH = ["fraud", "fraud", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "fraud"] * 4
SAID = ["fraud", "ok", "ok", "ok", "fraud", "ok", "ok", "ok", "ok", "fraud"] * 4
ROWS = classified(TRUTH, SAID)
MATRIX = {"fraud": {"ok": 500.0}, "ok": {"fraud": 20.0}}


def test_cost_is_the_mean_of_what_answers_cost() -> None:
    found = estimate(ROWS, measure("cost", matrix=MATRIX, unit="EUR"))
    assert found.value == pytest.approx((500 + 20) / 10)
    assert 0 < found.low < found.value < found.high < 500
    assert found.quantity.text(found.value) == "52 EUR"


def test_gains_are_negative_costs() -> None:
    matrix = {"fraud": {"ok": -500.0, "fraud": 100.0}, "ok": {"fraud": -20.0}}
    found = estimate(ROWS, measure("cost", matrix=matrix, better="higher", name="gain"))
    assert found.value == pytest.approx((-500 + 200 - 20) / 10)
    assert -500 < found.low < found.value < found.high < 100


def test_missing_cells_of_a_cost_matrix_are_named() -> None:
    cost = measure("cost", matrix={"fraud": {"ok": 500.0}})
    with pytest.raises(InputError, match=r"does not say what these cost: ok said to be fraud\. Write 0"):
        cost.check(["fraud", "ok"])
    with pytest.raises(InputError, match="ok said to be fraud"):
        estimate(ROWS, cost)
    with pytest.raises(InputError, match=r"no class 'frad'; .* Did you mean 'fraud'\?"):
        measure("cost", matrix={"frad": {"ok": 500.0}}).check(["fraud", "ok"])
    with pytest.raises(InputError, match="costs are finite numbers; fraud said to be ok costs inf"):
        measure("cost", matrix={"fraud": {"ok": float("inf")}})


def test_a_dear_mistake_that_was_never_seen_bounds_the_cost() -> None:
    found = estimate(
        classified(["ok"] * 50 + ["fraud"] * 10, ["ok"] * 50 + ["fraud"] * 10), measure("cost", matrix=MATRIX)
    )
    assert found.value == found.low == 0
    assert 500 * 0.03 < found.high < 500 * 0.1


def test_a_confusion_matrix_is_a_table_of_shares() -> None:
    cells = measure("confusion_matrix").cells(("fraud", "ok"))
    values = [estimate(ROWS, cell).value for cell in cells]
    assert values == pytest.approx(metrics.confusion_matrix(TRUTH, SAID, normalize="true").ravel())
    assert [cell.quantity().name for cell in cells][:2] == ["confusion[fraud as fraud]", "confusion[fraud as ok]"]
    of_all = [estimate(ROWS, cell).value for cell in measure("confusion_matrix", of="frame").cells(("fraud", "ok"))]
    assert of_all == pytest.approx(metrics.confusion_matrix(TRUTH, SAID, normalize="all").ravel())
    with pytest.raises(InputError, match="confusion matrix is a table"):
        estimate(ROWS, measure("confusion_matrix"))
    with pytest.raises(InputError, match="of 40 classes has 1,600 cells"):
        measure("confusion_matrix").check([str(k) for k in range(40)])


RNG = np.random.default_rng(4)
LABELS = RNG.random((60, 3)) < [0.5, 0.3, 0.2]
TAGGED = LABELS ^ (RNG.random((60, 3)) < 0.15)
SEVERAL = Labelled(np.ones(60, dtype=bool), LABELS, TAGGED, None, ("a", "b", "c"))


def test_several_labels_at_once() -> None:
    assert estimate(SEVERAL, measure("subset_accuracy")).value == pytest.approx(metrics.accuracy_score(LABELS, TAGGED))
    assert estimate(SEVERAL, measure("hamming_loss")).value == pytest.approx(metrics.hamming_loss(LABELS, TAGGED))
    for average in ("micro", "macro", "weighted"):
        for name, other in (
            ("f1", metrics.f1_score),
            ("recall", metrics.recall_score),
            ("precision", metrics.precision_score),
        ):
            found = estimate(SEVERAL, measure(name, average=average))
            assert found.value == pytest.approx(other(LABELS, TAGGED, average=average))
            assert found.low < found.value < found.high
    found = estimate(SEVERAL, measure("recall", class_="b"))
    assert found.value == pytest.approx(metrics.recall_score(LABELS[:, 1], TAGGED[:, 1]))


def test_judged_outputs_have_a_mean_score_and_a_pass_rate() -> None:
    scores = np.array([1.0, 0.5, 0.25, 0.75, 1.0, 0.0] * 5)
    rows = Labelled(np.ones(30, dtype=bool), scores, np.full(30, np.nan))
    found = estimate(rows, measure("mean_score"))
    assert found.value == pytest.approx(scores.mean())
    assert 0.35 < found.low < found.high < 0.85
    assert estimate(rows, measure("pass_rate")).value == pytest.approx(4 / 6)
    assert estimate(rows, measure("pass_rate", at_least=0.75)).value == pytest.approx(3 / 6)
    with pytest.raises(InputError, match="at_least is a score above 0"):
        measure("pass_rate", at_least=0.0)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("own_measures")
    monkeypatch.setitem(sys.modules, "own_measures", module)
    return module


def test_a_function_of_ones_own_is_bootstrapped(own: types.ModuleType) -> None:
    own.right = lambda truth, prediction, scores, weight: np.average(truth == prediction, weights=weight)  # type: ignore[attr-defined]
    mine = measure("function", path="own_measures:right", share=True)
    found, known = estimate(ROWS, mine), estimate(ROWS, measure("accuracy"))
    assert found == estimate(ROWS, mine), "the same draws give the same interval"
    assert found.value == pytest.approx(known.value)
    assert found.standard_error == pytest.approx(known.standard_error, rel=0.15)
    assert found.quantity.name == "right"


def test_what_a_function_does_wrong_is_told(own: types.ModuleType) -> None:
    own.broken = lambda truth, prediction, scores, weight: 1 / 0  # type: ignore[attr-defined]
    own.nan = lambda truth, prediction, scores, weight: float("nan")  # type: ignore[attr-defined]
    own.words = lambda truth, prediction, scores, weight: "many"  # type: ignore[attr-defined]
    own.number = 3  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="'own_measures:broken' fails on 40 labelled inputs: ZeroDivisionError"):
        estimate(ROWS, measure("function", path="own_measures:broken"))
    with pytest.raises(InputError, match="'own_measures:nan' gives nan for 40 labelled inputs, which is no finite"):
        estimate(ROWS, measure("function", path="own_measures:nan"))
    with pytest.raises(InputError, match="'own_measures:words' fails on 40 labelled inputs: ValueError"):
        estimate(ROWS, measure("function", path="own_measures:words"))
    own.percentage = lambda truth, predicted, scores, weight: 93.0  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="gives 93, and a share lies between 0 and 1: divide it, or leave 'share' out"):
        estimate(ROWS, measure("function", path="own_measures:percentage", share=True))
    assert measure("function", path="own_measures:percentage").value(ROWS, np.ones(len(ROWS))) == 93
    for path, why in (
        ("own_measures:gone", "there is no measure"),
        ("right", "module:function"),
        ("own_measures:number", "is no function"),
    ):
        with pytest.raises(PluginError, match=why):
            measure("function", path=path)


def test_resamples_on_which_a_function_fails_are_left_out_and_told(own: types.ModuleType) -> None:
    def picky(truth: object, prediction: object, scores: object, weight: np.ndarray) -> float:  # type: ignore[type-arg]
        if weight[0] == 0:
            raise ValueError("the first one is needed")
        return float(weight[0] / weight.sum())

    own.picky = picky  # type: ignore[attr-defined]
    found = estimate(ROWS, measure("function", path="own_measures:picky"), size=10**6)
    assert found.notes[0].startswith("picky could not be computed on 1")
    assert found.notes[0].endswith("of 400 resamples")
