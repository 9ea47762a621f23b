"""Which ids were added to a set, from a hundred letters that were kept of it."""

from __future__ import annotations

import pytest

from opmon.sources.mlflow.sketch import MOST, Sketch

IDS = [f"tr-{k:032x}" for k in range(500)]


@pytest.mark.parametrize("more", range(MOST + 1))
@pytest.mark.parametrize("count", [0, 1, 400])
def test_the_few_that_were_added_are_told(count: int, more: int) -> None:
    kept = str(Sketch.of(IDS[:count]))
    assert len(kept) <= 100
    found = Sketch.parse(kept)
    assert found == Sketch.of(IDS[:count][::-1])
    assert found is not None
    assert found.added(IDS[: count + more]) == frozenset(IDS[count : count + more])


def test_many_more_and_others_in_their_place_cannot_be_told() -> None:
    sketch = Sketch.of(IDS[:20])
    assert sketch.added(IDS[: 21 + MOST]) is None
    assert sketch.added(IDS[:19]) is None
    assert sketch.added(IDS[1:21]) is None
    assert sketch.added(IDS[2:24]) is None


@pytest.mark.parametrize("text", ["", "7", "7.", "x.AAAA", "7.?", "-1." + "A" * 86])
def test_other_text_is_no_sketch(text: str) -> None:
    assert Sketch.parse(text) is None
