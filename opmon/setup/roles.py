"""What the columns of a log are for, by their names, types and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from opmon.abc import Registry
from opmon.errors import OpmonError
from opmon.jobs.ids import ids_of
from opmon.jobs.moments import span_of
from opmon.jobs.versions import said_of
from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.stages.versions import versions_meant
from opmon.types import ModelVersion
from opmon.wording import counted

_IDS = re.compile(r"(^|_|\b)(id|uid|uuid|guid|key)$|[a-z]Id$|ID$", re.ASCII)
_TIMES = re.compile(
    r"(^|_)(timestamp|time|ts|at|date|datetime|when|logged|created)($|_)|Time$|Timestamp$", re.IGNORECASE
)
_VERSIONS = re.compile(r"model.?(version|uri)|^(served_)?version$", re.IGNORECASE)
_TRUTHS = re.compile(r"(^|_)(label|target|truth|true|actual|outcome|gold)s?($|_)|^y$", re.IGNORECASE)
_ANSWERS = re.compile(
    r"(^|_)(pred|predict\w*|answer\w*|said|output|response|decision|result|verdict|class|y_?hat|category)s?($|_)",
    re.IGNORECASE,
)
_SCORES = re.compile(r"(^|_)(score|prob\w*|p|logit|confidence)s?($|_|\d)", re.IGNORECASE)

_LONGEST_ID = 100
"""Longer texts, such as pictures in base64, are taken for no ids where their names do not say so."""
_SPARSE = 0.95
"""In a column called an id so many values must differ: clients send some requests again."""


def is_truth(name: str) -> bool:
    """Whether a column is named like a truth and not like an answer.

    >>> is_truth("y_true"), is_truth("label"), is_truth("predicted_label")
    (True, True, False)
    """
    flat = _flat(name)
    return bool(_TRUTHS.search(flat)) and not _ANSWERS.search(flat)


def is_answer(name: str) -> bool:
    """Whether a column is named like production's answers."""
    return bool(_ANSWERS.search(_flat(name))) and not _is_score(name)


def is_score(name: str) -> bool:
    """Whether a column is named like scores."""
    return bool(_SCORES.search(_flat(name))) and not is_truth(name)


def is_aside(log: Log, name: str) -> bool:
    """Whether a column does not look like an input of the model."""
    called = is_truth(name) or is_answer(name) or is_score(name) or bool(_VERSIONS.search(name))
    return called or (bool(_IDS.search(name)) and _may_be_id(log, name)) or _is_time(log, name)


def _is_time(log: Log, name: str) -> bool:
    return pa.types.is_timestamp(log.column(name).type) or (
        (log.is_text(name) or bool(_TIMES.search(_flat(name)))) and _holds_times(log, name)
    )


def _is_score(name: str) -> bool:
    return bool(re.search(r"score|prob|logit|confidence", name, re.IGNORECASE))


def _flat(name: str) -> str:
    """The words of a name, whatever stands between them.

    >>> _flat("request.created-at"), _flat("seen at"), _flat("predictedLabel")
    ('request_created_at', 'seen_at', 'predicted_Label')
    """
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).strip("_")


def place_columns(log: Log, taken: Sequence[str], registry: Registry, model: ModelVersion) -> Iterator[Choice]:
    """The columns with the id, the time and the model version, as far as there are any."""
    left = [name for name in log.rows.column_names if name not in taken]
    key = _id(log, left)
    if key is not None:
        yield _told_id(log, key)
    when = _time(log, [name for name in left if name != key])
    if when is not None:
        yield Choice(("columns", "timestamp"), *when)
    for name in left:
        if _VERSIONS.search(name) and name != key:
            with suppress(OpmonError):
                said = said_of(log.column(name), name)
                meant = versions_meant(said, name, model, registry)
                known = {meant.get(text, text) for text in said}
                for version in known:
                    registry.resolve(f"models:/{model.name}/{version}")
                yield Choice(("columns", "model_version"), name, f"names version {', '.join(sorted(known))}")
                return


def _told_id(log: Log, key: str) -> Choice:
    different = log.different(key)
    why = f"{counted(different, 'different id')} in the rows looked at"
    if different == log.rows.num_rows:
        return Choice(("columns", "id"), key, why)
    why = f"{different:,} different ids in {counted(log.rows.num_rows, 'row')}: what comes twice is taken once"
    return Choice(("columns", "id"), key, why, guessed=True)


def _id(log: Log, names: Sequence[str]) -> str | None:
    """The column with another value in every row: one called an id, else one called an id in which hardly
    a value comes twice, else the only one with text, or with single words."""
    whole = [name for name in names if log.different(name) == log.rows.num_rows and _may_be_id(log, name)]
    called = [name for name in whole if _IDS.search(name)]
    if called:
        return called[0]
    nearly = [name for name in names if _IDS.search(name) and log.different(name) >= _SPARSE * log.rows.num_rows]
    nearly = [name for name in nearly if _may_be_id(log, name)]
    if nearly:
        return nearly[0]
    texts = [name for name in whole if log.is_text(name) and not _holds_times(log, name) and log.rows.num_rows > 20]
    words = [name for name in texts if _are_words(log, name)] if len(texts) > 1 else texts
    return words[0] if len(words) == 1 else None


def _are_words(log: Log, name: str) -> bool:
    """Whether a column holds short texts of one word, as ids are and prompts are not."""
    column = pc.utf8_trim_whitespace(log.column(name).cast(pa.string()))
    longest = pc.max(pc.utf8_length(column)).as_py()
    return longest <= _LONGEST_ID and not pc.any(pc.match_substring_regex(column, r"\s")).as_py()


def _may_be_id(log: Log, name: str) -> bool:
    if not (log.is_text(name) or log.is_whole(name)):
        return False
    with suppress(OpmonError):
        ids_of(log.column(name), name)
        return True
    return False


def _time(log: Log, names: Sequence[str]) -> tuple[str, str] | None:
    typed = [name for name in names if pa.types.is_timestamp(log.column(name).type)]
    called = [name for name in names if _TIMES.search(_flat(name)) and _holds_times(log, name)]
    texts = [name for name in names if log.is_text(name) and _holds_times(log, name)]
    for name in [*(name for name in typed if name in called), *typed, *called, *texts]:
        span = span_of(log.column(name), name)
        if span is not None:
            return name, f"from {span[0]:%Y-%m-%d %H:%M} to {span[1]:%Y-%m-%d %H:%M} UTC in the rows looked at"
    return None


def _holds_times(log: Log, name: str) -> bool:
    if not (log.is_text(name) or log.is_number(name) or pa.types.is_timestamp(log.column(name).type)):
        return False
    with suppress(OpmonError):
        span = span_of(log.column(name), name)
        return span is not None and span[0].year > 1971
    return False
