"""The inputs' ids as text, and their hashes, by which duplicates are found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from opmon.errors import SourceError

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
    bad = pc.invert(may_be_ids(ids))
    if pc.any(bad).as_py():
        example = ids.filter(bad)[0].as_py()
        raise SourceError(
            f"column {name!r} holds the id {example[:40]!r} of {len(example)} characters; an id has at most "
            f"{LONGEST_ID} and no NUL character. Name another column, or leave id out of 'columns'."
        )
    return ids


def may_be_ids(texts: pa.Array) -> pa.Array:
    """Whether each text can be an id; null where there is none."""
    return pc.and_(pc.less_equal(pc.utf8_length(texts), LONGEST_ID), pc.invert(pc.match_substring(texts, "\0")))


def hashes_of(ids: pa.Array) -> NDArray[np.uint64]:
    """A hash of each id, the same in every process and release: rounds remember them."""
    import pandas as pd

    return np.asarray(pd.util.hash_array(ids.to_pandas().to_numpy(dtype=object), categorize=False))
