"""The suite that every source passes: each row comes once, and the same ones come again."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opmon.abc import Source
from opmon.errors import InputError
from opmon.types import Slice

if TYPE_CHECKING:
    import pyarrow as pa

Key = str | int
"""A value of the first column, by which rows are told apart."""


def check_source(source: Source, expected: pa.Table, *, ordered: bool = True) -> None:
    """Check that the pending rows of a source, ``expected``, come once, in pieces of any size, and again when asked.

    ``expected`` has at least 20 rows and a first column whose values are all different. ``ordered``: they come in just
    this order.
    """
    assert isinstance(source, Source), f"{type(source).__name__} does not subclass opmon.abc.Source"
    key = expected.column_names[0]
    keys = expected[key].to_pylist()
    assert len(keys) >= 20, "the suite needs at least 20 rows"
    assert len(set(keys)) == len(keys), "the suite needs a first column of different values"
    again = pickle.loads(pickle.dumps(source))  # noqa: S301 - what was pickled a moment ago
    assert again == source, "it cannot be pickled, and jobs carry it"
    whole = source.pending({})
    _reads(source, whole, keys, key, ordered)
    _reads_in_pieces(source, keys, key, ordered)
    _prunes_columns(source, whole, expected)
    _reads_some(source, whole, key)
    _fetches(source, whole, key)
    _tells_losses(source, whole)
    _tells_inclusion(source, whole)


def positions_after(positions: dict[str, str], slices: Sequence[Slice]) -> dict[str, str]:
    """The position to which each part was read, as a monitor keeps it."""
    for piece in slices:
        assert positions.get(piece.part) in (None, piece.start), (
            f"a slice of {piece.part} starts at {piece.start}, the one before stopped at {positions[piece.part]}"
        )
        positions[piece.part] = piece.stop
    return positions


def _values(source: Source, slices: Sequence[Slice], key: str) -> list[Key]:
    values: list[Key] = []
    expected_row = dict.fromkeys(range(len(slices)), 0)
    for batch in source.read(slices):
        assert batch.first_row == expected_row[batch.slice_index], "batches of a slice follow each other row by row"
        expected_row[batch.slice_index] += batch.rows.num_rows
        values += batch.rows.column(batch.rows.schema.get_field_index(key)).to_pylist()
    said = [piece.rows for piece in slices]
    assert list(expected_row.values()) == said, f"slices said {said} rows and gave {list(expected_row.values())}"
    return values


def _same(values: list[Key], expected: list[Key], ordered: bool) -> None:
    assert len(values) == len(expected), f"{len(values)} rows came of {len(expected)}"
    assert (values if ordered else sorted(values)) == (expected if ordered else sorted(expected)), "other rows came"


def _reads(source: Source, slices: list[Slice], keys: list[Key], key: str, ordered: bool) -> None:
    _same(_values(source, slices, key), keys, ordered)
    _same(_values(source, slices, key), keys, ordered)  # the same ones when asked again
    assert source.pending(positions_after({}, slices)) == [], "what was read is pending again"


def _reads_in_pieces(source: Source, keys: list[Key], key: str, ordered: bool) -> None:
    positions: dict[str, str] = {}
    values: list[Key] = []
    for _ in range(len(keys) + 1):
        slices = source.pending(positions, limit=7)
        if not slices:
            break
        values += _values(source, slices, key)
        positions = positions_after(positions, slices)
    _same(values, keys, ordered)


def _prunes_columns(source: Source, slices: list[Slice], expected: pa.Table) -> None:
    wanted = expected.column_names[-1]
    batches = list(source.read(slices, [wanted]))
    assert all(batch.rows.schema.names == [wanted] for batch in batches), f"other columns came than [{wanted!r}]"
    assert sum(batch.rows.num_rows for batch in batches) == expected.num_rows, "with one column other rows came"


def _reads_some(source: Source, slices: list[Slice], key: str) -> None:
    """A job's share of a round, with the columns and types that all of it has."""
    whole = list(source.read(slices))
    numbers = list(range(0, len(slices), 2))
    some = list(source.read_some(slices, numbers))
    assert {batch.slice_index for batch in some} <= set(numbers), "read_some() gives slices that it was not asked for"
    expected = [value for batch in whole if batch.slice_index in numbers for value in batch.rows[key].to_pylist()]
    values = [value for batch in some for value in batch.rows[key].to_pylist()]
    assert values == expected, "read_some() gives other rows"
    assert {batch.rows.schema for batch in some} == {batch.rows.schema for batch in whole}, "or other columns and types"


def _fetches(source: Source, slices: list[Slice], key: str) -> None:
    by_slice: dict[int, list[Key]] = {}
    for batch in source.read(slices):
        by_slice.setdefault(batch.slice_index, []).extend(batch.rows.column(key).to_pylist())
    wanted = {index: [len(values) - 1, 0] for index, values in by_slice.items()}
    expected = [values[row] for index, values in sorted(by_slice.items()) for row in wanted[index]]
    assert source.fetch(slices, wanted)[key].to_pylist() == expected, "fetch() gives other rows, or another order"
    try:
        source.fetch(slices, {0: [slices[0].rows]})
    except InputError:
        return
    raise AssertionError("fetch() gives a row that the slice does not have")


def _tells_losses(source: Source, slices: list[Slice]) -> None:
    """What production did not log is told once, with one of the slices."""
    lost = source.lost(slices)
    assert all(isinstance(why, str) and count > 0 for why, count in lost.items()), f"lost() says {lost}"
    one_by_one = sum((Counter(source.lost([piece])) for piece in slices), Counter[str]())
    assert one_by_one == Counter(lost), f"lost() says {dict(lost)} together and {dict(one_by_one)} slice by slice"
    assert not source.lost([]), "lost() tells losses of no slices"


def _tells_inclusion(source: Source, slices: list[Slice]) -> None:
    """The column of probabilities is there, and holds probabilities of what was kept."""
    name = source.inclusion
    if name is None:
        return
    for batch in source.read(slices, [name]):
        values = batch.rows.column(0).to_pylist()
        assert all(value is not None and 0 < value <= 1 for value in values), f"{name!r} holds no probabilities"
