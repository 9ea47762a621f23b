from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from opmon.sources._salvage import Flaw, Salvage


def parser(bad: set[int] | range, attempts: list[int]) -> Callable[[Sequence[int]], list[int]]:
    def parse(rows: Sequence[int]) -> list[int]:
        attempts.append(len(rows))
        wrong = [row for row in rows if row in bad]
        if wrong:
            raise ValueError(f"row {wrong[0]}")
        return list(rows)

    return parse


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.integers(1, 50))
def test_every_row_is_parsed_or_a_flaw_in_its_place(bad: set[int], flawed: set[int], at_once: int) -> None:
    flaws = dict.fromkeys(flawed, "known")
    salvage = Salvage()
    found = list(salvage.parsed(range(41), parser(bad | flawed, []), flaws, at_once))
    in_order = [row for piece in found for row in ([piece.row] if isinstance(piece, Flaw) else piece)]
    assert in_order == list(range(41))
    reasons = {piece.row: piece.reason for piece in found if isinstance(piece, Flaw)}
    assert reasons == {row: "known" if row in flawed else f"row {row}" for row in bad | flawed}
    assert (salvage.good, salvage.bad) == (41 - len(reasons), len(reasons))


def test_one_bad_row_takes_few_attempts() -> None:
    attempts: list[int] = []
    list(Salvage().parsed(range(100_000), parser({77_777}, attempts), {}, 100_000))
    assert len(attempts) < 40
    assert sum(attempts) < 400_000


def test_rows_that_are_nearly_all_bad_are_not_tried_one_by_one() -> None:
    attempts: list[int] = []
    bad = range(20_000, 200_000)
    found = list(Salvage().parsed(range(300_000), parser(bad, attempts), {}, 300_000))
    flaws = {piece.row for piece in found if isinstance(piece, Flaw)}
    assert flaws >= set(bad)
    assert len(flaws) < len(bad) + 2 * 4096, "only those go with them that stand close"
    assert len(attempts) < 8000
