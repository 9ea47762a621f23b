"""The rule on slices of the configuration: one bound over all that there can ever be, each remembered by its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opmon.decisions.accuracy_slices import AccuracySlices
from opmon.decisions.case import Case
from opmon.plugins import make
from opmon.types import Draw, Sample, Verdict
from opmon.types.slicing import DrawnCut

SIZE = 200


def case(seed: int, wrong_in: str, shops: tuple[str, ...], before: Any = None, *, room: int = 10) -> Case:
    """A round drawn at random: of one shop every other answer is wrong, of the others one in fifty."""
    rng = np.random.default_rng(seed)
    shop = rng.choice(shops, SIZE)
    outcomes = (rng.random(SIZE) < np.where(shop == wrong_in, 0.5, 0.02)).astype(np.float64)
    draw = Draw("srs", 10_000, np.arange(SIZE), constants={"replacement": np.array(False)})
    sample, design = Sample(draw, outcomes, "classification"), make("estimator", "srs")
    cut = DrawnCut("shop", {f"shop {name}": shop == name for name in shops}, room, fixed=False)
    return Case(seed, (design.estimate(sample),), sample, design, before or {}, cuts=(cut,))


def judged(rule: AccuracySlices, *rounds: Case) -> Verdict:
    verdict, before = None, {}
    for each in rounds:
        verdict = rule.judge(replace(each, before=before))
        before = dict(verdict.details)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize("by", ["shop", "slices"])
def test_the_alarm_names_the_slice(by: str) -> None:
    rule = AccuracySlices(0.9, by=by)
    verdict = judged(rule, *(case(seed, "north", ("north", "south", "west")) for seed in range(3)))
    assert verdict.state == "alarm"
    assert verdict.details["slices_alarmed"] == ["shop north"]
    assert "accuracy under 90 % in 1 of 3 slices: shop north: " in verdict.message


def test_a_class_is_named_as_the_predicted_one() -> None:
    one = case(1, "north", ("north", "south"))
    taken = np.where(one.cuts[0].members["shop north"], "leaves", "stays")
    rule = AccuracySlices(0.9, classes=("leaves", "stays"))
    verdict = judged(rule, *(replace(one, classes=taken) for _ in range(3)))
    assert "in 1 of 2 slices: predicted leaves: " in verdict.message
    assert verdict.details["slices_alarmed"] == ["leaves"], "what is remembered keeps its name"


def test_a_slice_is_remembered_while_it_is_not_there() -> None:
    rule = AccuracySlices(0.9, by="shop")
    first = judged(rule, case(1, "north", ("north", "south")))
    both = judged(rule, case(1, "north", ("north", "south")), case(2, "", ("south", "west")))
    assert set(both.details["of"]) == {"shop north", "shop south", "shop west"}
    north = [verdict.details["of"]["shop north"]["watch"]["capital"] for verdict in (first, both)]
    assert north[0] == pytest.approx(north[1], rel=1e-6), "it neither gains nor loses"
    anew = judged(rule, case(1, "north", ("north", "south")), case(2, "", ("south", "west"), room=12))
    assert set(anew.details["of"]) == {"shop south", "shop west"}, "other slices are another rule"


def test_the_bound_is_shared_by_all_slices_that_there_can_be() -> None:
    rule = AccuracySlices(0.9, by="shop")
    evidence = [
        judged(rule, case(1, "north", ("north", "south"), room=room)).details["of"]["shop north"]["evidence"]
        for room in (2, 20)
    ]
    assert evidence[0] == pytest.approx(10 * evidence[1], rel=1e-6), "of a bound ten times as small"


def test_slices_that_are_not_known_are_told() -> None:
    verdict = AccuracySlices(0.9, by="country").judge(case(1, "north", ("north",)))
    assert verdict.state == "unknown"
    assert verdict.message.endswith("the columns of its slices: shop")


def test_a_late_label_is_judged_by_the_same_slices() -> None:
    rule = AccuracySlices(0.9, by="shop")
    verdict = judged(rule, case(1, "north", ("north", "south")))
    again = rule.restate({}, dict(verdict.details))
    assert again is not None
    assert again.details["slices_alarmed"] == verdict.details["slices_alarmed"] == ["shop north"]
    assert again.details["evidence"] == pytest.approx(verdict.details["evidence"], rel=1e-6)
