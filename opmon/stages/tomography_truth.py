"""The truth of inputs as a model's columns count it, and what tells one input from another."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.problems import traits
from opmon.scoring.graph.compiled import columns_of
from opmon.scoring.scorer import Scorer
from opmon.spellings import Spellings
from opmon.types import Array, Document
from opmon.values import canonical_class

_SHOWN = 5


def labelled(scorer: Scorer, rows: NDArray[np.int64], truth: Sequence[str | None]) -> tuple[NDArray[np.int64], Array]:
    """Which of the fed ``rows`` have a label, by place, and what it is: a column of the model's scores, or a number.

    A label that the model cannot give is an error: it would count as wrong whatever is done to the input.
    """
    known = [(place, str(truth[row]).strip()) for place, row in enumerate(rows.tolist()) if truth[row] is not None]
    kept = np.array([place for place, text in known if text], np.int64)
    texts = [text for _, text in known if text]
    if traits(scorer.outputs.problem).of_numbers:
        return kept, _numbers(texts)
    return kept, _columns(texts, _classes(scorer), scorer.outputs.spellings)


def names_of(inputs: Sequence[tuple[Document, str | None]]) -> NDArray[np.str_]:
    """A name for each input by what it holds, and by its label where that decides what is right."""
    return np.array([_name(row, label) for row, label in inputs], np.str_)


def _numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    found = [_number(text) for text in texts]
    odd = Counter(text for text, number in zip(texts, found, strict=True) if number is None)
    if odd:
        raise InputError(f"the label of an input of a regression model is a finite number; got {_told(odd)}")
    return np.array(found, np.float64)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _columns(texts: Sequence[str], classes: tuple[str, ...], spellings: Spellings) -> NDArray[np.int64]:
    columns = {name: column for column, name in enumerate(classes)}
    names = {text: spellings.name(canonical_class(text)) for text in set(texts)}
    odd = Counter(text for text in texts if names[text] not in columns)
    if odd:
        listed = ", ".join(classes[:12]) + (f", … ({len(classes)})" if len(classes) > 12 else "")
        raise InputError(
            f"{odd.total()} of {len(texts)} labels are none of the model's classes: {_told(odd)}; the model's classes "
            f"are {listed}. Take the column with the model's own names, or give classes: one name for each column of "
            f"its scores, in their order, and what else it is called"
        )
    return np.array([columns[names[text]] for text in texts], np.int64)


def _classes(scorer: Scorer) -> tuple[str, ...]:
    """The names of the score's columns: 0, 1, … where they have none."""
    if scorer.classes is not None:
        return scorer.classes
    score = next(item for item in scorer.session.outputs if item.name == scorer.outputs.score)
    return tuple(map(str, range(columns_of(scorer.outputs, score)[0])))


def _told(odd: Counter[str]) -> str:
    more = ", …" if len(odd) > _SHOWN else ""
    return ", ".join(f"{text[:40]!r} ({count})" for text, count in odd.most_common(_SHOWN)) + more


def _name(row: Document, label: str | None) -> str:
    text = json.dumps([row, label], sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
