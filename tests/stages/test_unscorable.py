from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from opmon.errors import SourceError
from opmon.stages.unscorable import require_filled, require_scorable


def test_the_reasons_are_told_with_the_limit() -> None:
    reasons = Counter({"column 'age' is empty": 12, "too long": 9})
    require_scorable(reasons, 210, 0.1)
    with pytest.raises(
        SourceError, match=r"21 of 200 inputs cannot be scored \(10.5 %\).*is empty \(12\); too long \(9\)"
    ):
        require_scorable(reasons, 200, 0.1)


def test_a_column_that_holds_nothing_stops_unless_it_may() -> None:
    parts = [(150, {"age": 150, "income": 149}), (50, {"age": 50, "income": 50})]
    with pytest.raises(SourceError, match=r"takes 'age', which holds nothing in 200 inputs in a row\. Was it"):
        require_filled(parts, 0.1, ())
    require_filled(parts, 0.1, ("age",))
    require_filled([(20, {"age": 20})], 0.1, ())


@pytest.mark.parametrize("files", [[(400, 400)], [(40, 40)] * 10, [(1, 1)] * 400])
def test_files_without_a_column_that_the_others_have_stop_the_round(files: list[tuple[int, int]]) -> None:
    parts = [(rows, {"income": missing}) for rows, missing in [(600, 48), *files]]
    with pytest.raises(SourceError, match="nothing in 400 inputs in a row, and something in 92 % of the others"):
        require_filled(parts, 0.1, ())


def test_what_chance_leaves_empty_is_nothing_odd() -> None:
    rng = np.random.default_rng(0)
    for rate in (0.001, 0.02, 0.5, 0.92, 0.9999):
        for rows in (1, 7, 100):
            missing = rng.binomial(rows, 1 - rate, 2000)
            require_filled([(rows, {"age": int(count)}) for count in missing], 0.01, ())


def test_an_outage_of_a_few_inputs_is_what_production_saw() -> None:
    require_filled([(900, {"age": 0}), (100, {"age": 100})], 0.1, ())
    with pytest.raises(SourceError, match="holds nothing in 101 inputs in a row"):
        require_filled([(899, {"age": 0}), (101, {"age": 101})], 0.1, ())
