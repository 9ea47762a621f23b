"""What pydantic found wrong, in one or two plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from opmon.config.document import Document, KeyPath, dotted
from opmon.config.redaction import shown
from opmon.errors import ConfigError
from opmon.redaction import HIDDEN, is_secret_name

_LONGEST = 300
_NOTHING = object()
_PLAIN = {
    "missing": "is required",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text (in quotes where it looks like a number, true or false)",
    "string_too_short": "must not be empty",
    "model_type": "must hold keys (key: value)",
    "dict_type": "must hold keys (key: value)",
    "mapping_type": "must hold keys (key: value)",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
}

_SHAPES = ("model_type", "dict_type", "mapping_type", "list_type", "tuple_type", "too_short")


def config_error(error: ValidationError, document: Document, overridden: Mapping[KeyPath, str]) -> ConfigError:
    """The first problem in full, the others by their keys; ``overridden`` names the variables that set a key."""
    found = [(problem, _path(problem, document.data)) for problem in error.errors(include_url=False)]
    found = [(problem, path) for problem, path in found if not _says_only_the_shape(problem, path, found)] or found
    problems, paths = [problem for problem, _ in found], [path for _, path in found]
    message = _line(problems[0], paths[0], document, overridden)
    others = list(dict.fromkeys(dotted(path) for path in paths[1:] if path != paths[0]))
    if others:
        more = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
        message += f"\nalso wrong: {more}"
    return ConfigError(message)


def _says_only_the_shape(problem: ErrorDetails, path: KeyPath, found: Sequence[tuple[ErrorDetails, KeyPath]]) -> bool:
    """Whether it only says that a list was no mapping, a mapping no list, or a list too short, where what it holds is
    what is wrong."""
    deeper = any(len(other) > len(path) and other[: len(path)] == path for _, other in found)
    return problem["type"] in _SHAPES and deeper


def words(problem: ErrorDetails) -> str:
    """What is wrong and what is allowed, without the value."""
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        sign = {"greater_than": ">", "greater_than_equal": ">=", "less_than": "<", "less_than_equal": "<="}[kind]
        return f"must be {sign} {next(iter(context.values()))}"
    if kind == "too_short":
        return f"must hold at least {context['min_length']}"
    if kind == "too_long":
        return f"must hold at most {context['max_length']}"
    if kind == "value_error" and "error" in context:
        return str(context["error"])
    return problem["msg"].replace("Input should be", "must be")


def _path(problem: ErrorDetails, data: object) -> KeyPath:
    """The key path of the problem, without the parts that pydantic adds for the members of a union."""
    path: list[str | int] = []
    last = len(problem["loc"]) - 1
    for place, part in enumerate(problem["loc"]):
        inner = _inside(data, part)
        if inner is not _NOTHING:
            data = inner
        elif not (isinstance(data, Mapping) and problem["type"] == "missing" and place == last):
            continue
        path.append(part)
    if problem["type"] in ("at_key", "unknown_key"):
        path += [problem["ctx"]["key"], *problem["ctx"].get("deeper", ())]
    return tuple(path)


def _line(problem: ErrorDetails, path: KeyPath, document: Document, overridden: Mapping[KeyPath, str]) -> str:
    what = " ".join(words(problem).split())
    value = None if problem["type"] == "unknown_key" else _given(path, document)
    told = value is None or f"got {value}" in what
    got = "" if told else f"; got {value}"
    for reference, secret in document.resolved.items():
        if len(secret) > 3 and secret not in reference:
            what = what.replace(secret, reference)
    what = what if len(what) <= _LONGEST else what[:_LONGEST] + "…"
    where = f"{overridden[path]}: " if path in overridden else document.place(path)
    return f"{where}{what}{got}"


def _given(path: KeyPath, document: Document) -> str | None:
    """The value as it may be shown: as written where it holds a reference, hidden where the key is secret."""
    keys = path[:1] + path[2:] if path[:1] == ("monitors",) else path  # a monitor may be called "tokens"
    if any(isinstance(part, str) and is_secret_name(part) for part in keys):
        return HIDDEN
    value = document.written.get(path, _at(path, document.data))
    if value is _NOTHING or isinstance(value, Mapping | list):
        return None
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    text = shown(value, str(path[-1]) if path else "")
    text = text if len(str(text)) <= 80 else f"{str(text)[:80]}…"
    return repr(text)


def _at(path: KeyPath, value: object) -> object:
    for part in path:
        value = _inside(value, part)
    return value


def _inside(value: object, part: str | int) -> object:
    """What a mapping or a list holds at a key or a place, or nothing."""
    if isinstance(value, Mapping):
        return value.get(part, _NOTHING)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return _NOTHING
