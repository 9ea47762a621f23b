"""Columns of a log that may divide the inputs into slices."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.setup.roles import is_answer, is_score, is_truth

_FEWEST, _MOST = 2, 8
_NAMED = 3


def dividing(log: Log, choices: Sequence[Choice]) -> str:
    """A comment that names columns of few different words or truth values; empty where there are none.

    It is for the user to say which slices matter: the more there are, the less can be said of each.
    """
    taken = {str(choice.value) for choice in choices if choice.key[0] in ("columns", "truth")}
    found = [name for name in log.rows.column_names if name not in taken and _divides(log, name)]
    if not found:
        return ""
    listed = f"    # slices: [{', '.join(found[:_NAMED])}]"
    return f"{listed:<43} # how is the model there? Few words each; see opmon/docs/slices.md\n"


def _divides(log: Log, name: str) -> bool:
    if is_truth(name) or is_answer(name) or is_score(name):
        return False
    if not name.isprintable() or any(letter in name for letter in ",[]{}:#'\" "):
        return False
    kind = log.column(name).type
    if not (log.is_text(name) or pa.types.is_boolean(kind)):
        return False
    return _FEWEST <= log.different(name) <= _MOST
