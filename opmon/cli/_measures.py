"""The measures of a round, printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from opmon.store.measured import Measured

FEW = 12
"""A measure of more parts, such as a large table, is told by how many it has."""


def measures_table(
    some: Sequence[Measured], *, whole: bool = False, together: Sequence[Measured] = (), rounds: int = 0
) -> Table:
    """Each measure with its interval, or why it is not known; ``whole``: of large tables every part.

    ``together`` are the same measures of so many ``rounds``, in a column of their own.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("  measure")
    table.add_column(Text("estimate [interval]"))
    over = dict(_rows(together, whole))
    if over:
        table.add_column(Text(f"over the last {rounds} rounds"))
    for name, told in _rows(some, whole):
        table.add_row(Text(f"  {name}"), Text(told), *([Text(over.get(name, "–"))] if over else []))
    return table


def _rows(some: Sequence[Measured], whole: bool) -> Iterator[tuple[str, str]]:
    parts, said = Counter(each.measure for each in some), set[str]()
    for each in some:
        count = parts[each.measure]
        if not whole and count > FEW:
            if each.measure not in said:
                said.add(each.measure)
                yield each.measure, f"{count} numbers: opmon rounds show"
            continue
        found = each.estimate
        told = f"not known: {each.why}" if found is None else each.quantity.interval(found.value, found.low, found.high)
        yield each.quantity.title, told
