"""Which events are known."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from opmon.ingest.known import Known

KEYS = st.lists(st.sets(st.integers(1, 2**64 - 1), max_size=20), max_size=12)


@settings(max_examples=40)
@given(KEYS, st.sets(st.integers(1, 2**64 - 1), max_size=20))
def test_what_was_added_is_known_and_nothing_else(pieces: list[set[int]], others: set[int]) -> None:
    known = Known(most=10_000)
    for piece in pieces:
        known.add(piece)
        known.seal()
    everything = set().union(*pieces)
    assert known.among(everything | others) == everything
    assert len(known) >= len(everything)


def test_the_newest_are_known_and_memory_is_bounded() -> None:
    known = Known(most=1000)
    for start in range(1, 20_001, 50):
        known.add(range(start, start + 50))
        known.seal()
    assert known.among(range(1, 20_001)) >= set(range(19_001, 20_001))
    assert len(known) <= 1300
