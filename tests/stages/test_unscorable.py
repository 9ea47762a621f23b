from __future__ import annotations

from collections import Counter

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
    missing = {"age": 200, "income": 199}
    with pytest.raises(SourceError, match="takes 'age', which holds nothing in any of 200 inputs"):
        require_filled(missing, 200, ())
    require_filled(missing, 200, ("age",))
    require_filled({"age": 20}, 20, ())
