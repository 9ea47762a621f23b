"""``scores: {ok: p_ok, fraud: p_fraud}``: the column with the scores of each class, in any order."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import PydanticCustomError

from opmon.config.classes import class_name
from opmon.config.part import at_key
from opmon.wording import meant, nearest


def in_order(data: Mapping[str, object]) -> Mapping[str, object]:
    """A monitor's keys with its columns of scores as a list in the order of the classes.

    Where ``classes`` are left out, the classes are those whose columns are named.
    """
    columns = data.get("columns")
    given = columns.get("scores") if isinstance(columns, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(columns, Mapping):
        return data
    by_class = _by_class(given)
    classes = data.get("classes")
    if classes is None:
        return {**data, "classes": list(by_class), "columns": {**columns, "scores": list(by_class.values())}}
    if not isinstance(classes, Mapping | list | tuple) or not all(type(name) in (str, int, float) for name in classes):
        return data  # it is told what classes are
    names = [_named(name) for name in classes]
    unknown = next((name for name in by_class if name not in names), None)
    if unknown is not None:
        hint = meant(nearest(unknown, names))
        raise _wrong(f"there is no class {unknown!r}{hint}; the classes are: {', '.join(names)}")
    missing = [name for name in names if name not in by_class]
    if missing:
        raise _wrong(
            f"names no column for the {'class' if len(missing) == 1 else 'classes'} {', '.join(map(repr, missing))}: "
            f"each class has one"
        )
    return {**data, "columns": {**columns, "scores": [by_class[name] for name in names]}}


def _by_class(given: Mapping[object, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, column in given.items():
        name = _named(key)
        if not isinstance(column, str) or not column:
            raise _wrong(f"must name the column with the scores of {name!r}")
        if name in found:
            raise _wrong(f"names the class {name!r} twice")
        other = next((before for before, taken in found.items() if taken == column), None)
        if other is not None:
            raise _wrong(f"names the column {column!r} for {other!r} and for {name!r}: each class has its own")
        found[name] = column
    if len(found) < 2:
        raise _wrong(
            "must name the columns of at least two classes; one column that holds all scores is its name alone"
        )
    return found


def _named(key: object) -> str:
    return str(class_name(key))


def _wrong(message: str) -> PydanticCustomError:
    return at_key("columns", message, "scores")
