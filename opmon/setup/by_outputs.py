"""The configuration for logged answers that are not one value of a few: several classes at once, or free outputs."""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from opmon import label_sets
from opmon.errors import InputError
from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.setup.roles import is_answer, is_score

_PROMPTS = re.compile(
    r"(^|_)(prompt|question|query|instruction|input|request|message|text|source)s?($|_)", re.IGNORECASE
)
_OUTPUTS = re.compile(r"(^|_)(completion|generat\w*|reply|summary|translation|ranking|detection|boxe)s?($|_)", re.I)
_SETS = re.compile(r"(^|_)(tags?|labels|topics|categories|codes|classes)($|_)", re.I)
_MOST = 500
"""More different names than that are no classes."""
_WORDS = 4
"""Answers of so many words on average are sentences."""
_MARKED = 0.1
"""In so many of the rows a list of names in text has a mark between two names."""


def by_outputs(log: Log) -> tuple[list[Choice], tuple[str, ...]] | None:
    """The keys of a monitor, and the columns that they name; None where the log's answers are of another kind."""
    base = [Choice(("scoring",), {"by": "logged"}, "no model is run: production's own answers are judged")]
    names = [name for name in log.rows.column_names if not is_score(name)]
    called = [name for name in names if is_answer(name) or _OUTPUTS.search(name)]
    for name in [*called, *(name for name in names if _SETS.search(name) and name not in called)]:
        classes = _classes(log, name)
        if classes:
            return [*base, *_of_sets(log, name, classes)], (name,)
    output = next((name for name in called if _is_free(log, name)), None)
    if output is None or any(_tells_classes(log, name) for name in called):
        return None
    return [*base, *_of_outputs(log, output)], (output,)


def _of_sets(log: Log, name: str, classes: list[str]) -> list[Choice]:
    of, why = (
        f"{len(classes)} different classes in the rows looked at",
        "what the log says: add those that it does not say",
    )
    if _places(log, name):
        of = f"lists of 0 and 1, for {len(classes)} classes"
        why = "the places in these lists: write the names of the classes instead, in this order"
    return [
        Choice(("problem",), "multilabel", "the answers name several classes at once, or none"),
        Choice(("columns", "prediction"), name, of),
        Choice(("classes",), classes, why, guessed=True),
    ]


def _places(log: Log, name: str) -> int:
    """The length of a column's lists of 0 and 1, which is one for each class; 0 where it holds none such."""
    column = log.column(name)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return 0
    lists = [value for value in column.to_pylist() if value is not None]
    lengths = {len(value) for value in lists}
    are = len(lengths) == 1 and all(each in (0, 1) for value in lists for each in value)
    return lengths.pop() if are and max(lengths) > 2 else 0


def _of_outputs(log: Log, name: str) -> list[Choice]:
    kind = "lists or objects" if pa.types.is_nested(log.column(name).type) else "free text"
    found = [
        Choice(("problem",), "judged", f"the answers are {kind}: people say how good they are"),
        Choice(("columns", "prediction"), name, "what people judge"),
    ]
    prompt = next((each for each in log.rows.column_names if _is_prompt(log, each, name)), None)
    if prompt is not None:
        found.append(Choice(("columns", "text"), prompt, "what people read beside it"))
    return [*found, Choice(("labels", "scale"), "pass_fail", "or score (0 to 1), or stars (1 to 5)")]


def _is_prompt(log: Log, name: str, output: str) -> bool:
    return name != output and log.is_text(name) and bool(_PROMPTS.search(name))


def _tells_classes(log: Log, name: str) -> bool:
    """Whether a column of answers holds one of a few words in each row, which is what is watched then."""
    return not pa.types.is_nested(log.column(name).type) and log.says(name) and not _is_free(log, name)


def _is_free(log: Log, name: str) -> bool:
    """Whether a column holds sentences, or lists and objects, that are hardly ever the same."""
    column = log.column(name)
    if pa.types.is_nested(column.type):
        return True
    if not log.is_text(name):
        return False
    said = pc.drop_null(column)
    if not len(said) or log.different(name) < max(len(said) / 2, 2):
        return False
    words = pc.mean(pc.add(pc.count_substring(pc.utf8_trim_whitespace(said), " "), 1)).as_py()
    return bool(words >= _WORDS)


def _classes(log: Log, name: str) -> list[str]:
    """The classes that a column names, several in a row; none where it does not look like that."""
    column = log.column(name)
    kind, places = column.type, _places(log, name)
    if places:
        return [str(place) for place in range(places)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = kind.value_type
        if not (pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_integer(inner)):
            return []
    elif not log.is_text(name):
        return []
    counted: Counter[str] = Counter()
    several = 0
    for value in column.to_pylist():
        try:
            names = [] if value is None else label_sets.parsed(value)
        except InputError:
            return []
        several += len(set(names)) > 1
        counted.update(set(names))
    listed = not log.is_text(name)
    enough = several >= (1 if listed else _MARKED * len(column))
    # of classes there are few, and each comes again
    usual = len(counted) <= min(_MOST, len(column) / 4) and all(" " not in each or len(each) < 40 for each in counted)
    return sorted(counted) if counted and enough and usual and len(counted) > 1 else []
