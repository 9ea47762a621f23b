"""Who is who: the inputs' ids, and the ones that production logged before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.stages.toolbox import Toolbox
from opmon.store.rounds import Round
from opmon.store.schema import rounds as rounds_table
from opmon.store.schema import seen

REMEMBERED_ROUNDS = 10
"""In how many earlier rounds an input id is looked for, to find inputs that production logged twice."""

LONGEST_ID = 500


def ids_of(values: pa.Array, name: str | None) -> pa.Array:
    """The ids as text; an error where one of them can be no id."""
    try:
        ids = pc.cast(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
        raise SourceError(
            f"column {name!r} ({values.type}) cannot be the id: {exc}; use a column of text or whole numbers, "
            "or leave id out of 'columns' so that the place in the log is the id"
        ) from exc
    if ids.null_count:
        raise SourceError(
            f"{ids.null_count} of {len(ids)} inputs have no {name!r}; an id column must be filled in every row, "
            "or left out of 'columns' so that the place in the log is the id"
        )
    bad = pc.or_(pc.greater(pc.utf8_length(ids), LONGEST_ID), pc.match_substring(ids, "\0"))
    if pc.any(bad).as_py():
        example = ids.filter(bad)[0].as_py()
        raise SourceError(
            f"column {name!r} holds the id {example[:40]!r} of {len(example)} characters; an id has at most "
            f"{LONGEST_ID} and no NUL character. Name another column, or leave id out of 'columns'."
        )
    return ids


def first_met(work: Toolbox, round_: Round, ids: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The ids' hashes, and which of them are met for the first time, here and in the rounds remembered."""
    import pandas as pd

    hashes = pd.util.hash_array(ids.to_pandas().to_numpy(dtype=object), categorize=False)
    fresh = ~pd.Series(hashes).duplicated().to_numpy()
    with work.store.read() as connection:
        for (packed,) in connection.execute(sa.select(seen.c.hashes).where(seen.c.round_id.in_(_remembered(round_)))):
            known = np.frombuffer(packed, dtype=np.uint64)
            fresh &= known[np.minimum(np.searchsorted(known, hashes), len(known) - 1)] != hashes
    return hashes, fresh


def remember(connection: sa.Connection, round_: Round, hashes: NDArray[np.uint64] | None) -> None:
    """Keep the sorted hashes of a round's inputs, and forget those of rounds long past."""
    if hashes is None or not len(hashes):
        return
    connection.execute(seen.delete().where(seen.c.round_id == round_.id))
    connection.execute(seen.insert().values(round_id=round_.id, hashes=hashes.astype(np.uint64).tobytes()))
    long_past = _same_version(round_).where(rounds_table.c.number < round_.number)
    long_past = long_past.order_by(rounds_table.c.number.desc()).offset(REMEMBERED_ROUNDS)
    connection.execute(seen.delete().where(seen.c.round_id.in_(long_past)))


def _remembered(round_: Round) -> Any:
    """The rounds before this one, and those after it that were scored earlier."""
    table = rounds_table.c
    before = _same_version(round_).where(table.number < round_.number).order_by(table.number.desc())
    after = _same_version(round_).where(table.number > round_.number)
    return sa.union_all(sa.select(before.limit(REMEMBERED_ROUNDS).subquery()), after)


def _same_version(round_: Round) -> sa.Select[tuple[int]]:
    table = rounds_table.c
    return sa.select(table.id).where(
        table.monitor == round_.monitor,
        table.model_name == round_.model_name,
        table.model_version == round_.model_version,
    )
