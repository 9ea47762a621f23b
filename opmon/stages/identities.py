"""Who is who: the inputs' ids, and the ones that production logged before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError
from opmon.stages.toolbox import Toolbox
from opmon.store import seen
from opmon.store.rounds import Round

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
        for known in seen.hashes_before(connection, round_):
            fresh &= known[np.minimum(np.searchsorted(known, hashes), len(known) - 1)] != hashes
    return hashes, fresh
