"""Whose answer counts, and how sure that is."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.annotators import Coded, Opinion, by_expert, by_majority, by_weight, fit

APART = Opinion({"ann": "7", "ben": "1"}, "7")


def test_the_majority_counts_and_of_a_tie_the_latest() -> None:
    assert by_majority(APART) == ("1", 0.5)
    assert by_majority(Opinion({"ann": "7", "ben": "1", "cem": "7"})) == ("7", pytest.approx(2 / 3))
    assert by_majority(Opinion({})) == (None, 0.0)


def test_the_first_expert_who_answered_counts() -> None:
    assert by_expert(APART, ["zoe", "ann", "ben"]).truth == "7"
    assert by_expert(APART, ["zoe"]) == by_majority(APART)


@pytest.mark.parametrize("rule", [by_majority, lambda opinion: by_expert(opinion, ["ann"])])
def test_known_truth_counts_above_all(rule) -> None:  # type: ignore[no-untyped-def]
    assert rule(Opinion({"ann": "7", "ben": "7"}, "7", "3")) == ("3", 1.0)


def test_whom_the_error_model_trusts_more_counts_more() -> None:
    gold = [Opinion({"ann": str(k % 2), "ben": "0"}, "0", "0", 1) for k in range(60)]  # ann errs on every other one
    doubt = Opinion({"ben": "1", "ann": "7"}, "3")
    model = fit(Coded.of([doubt, APART, *gold]), np.ones(62), classes=10)
    found = by_weight(model, {0: doubt, 1: APART})
    assert found[0].truth == "1"
    assert 0.5 < found[0].sure < 1
    assert by_majority(doubt).truth == "7"  # the latest


def test_the_models_own_answer_tips_the_balance() -> None:
    """A model that is nearly always right is a witness too: of two answers the one that it gave is likelier."""
    alike = [Opinion({"ann": "0", "ben": "0"}, "0")] * 50
    model = fit(Coded.of([APART, *alike]), np.ones(51), classes=10)
    assert by_weight(model, {0: APART})[0].truth == "7"
