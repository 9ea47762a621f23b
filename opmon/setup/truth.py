"""The column of a log that looks like the truth of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from opmon.errors import OpmonError
from opmon.problems import Problem, traits
from opmon.replies import Replies
from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.setup.roles import is_truth
from opmon.spellings import Spellings
from opmon.truth.reading import Vocabulary
from opmon.wording import percent

ENOUGH = 0.9
"""So large a share of what it says must be classes of the model."""


def truth_of(log: Log, taken: Sequence[Any], problem: Problem, classes: object) -> Iterator[Choice]:
    """The key for it; nothing if no column has such a name and such values."""
    vocabulary = Vocabulary(_replies(problem, classes))
    for name in log.rows.column_names:
        if name in taken or not is_truth(name) or pa.types.is_nested(log.column(name).type):
            continue
        with suppress(OpmonError):
            named, refused = vocabulary.named(log.column(name))
            known = len(named) - named.null_count
            if known and known >= ENOUGH * (known + refused.total()):
                share = percent(known / len(named), 0)
                why = f"called like a truth, and known of {share} of the rows looked at: leave it out if it is none"
                yield Choice(("truth", "column"), name, why, guessed=True)
                return


def _replies(problem: Problem, classes: object) -> Replies:
    if not traits(problem).of_classes:
        return Replies(problem, scale=None if traits(problem).compares else "pass_fail")
    if isinstance(classes, dict):
        listed = {name: said if isinstance(said, list | tuple) else [said] for name, said in classes.items()}
        return Replies(problem, tuple(map(str, classes)), Spellings.of(listed))
    return Replies(problem, tuple(map(str, classes)) if isinstance(classes, list | tuple) else None)
