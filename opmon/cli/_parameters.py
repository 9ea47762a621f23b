"""The parameters of a plugin: their types, defaults and meanings, read from its source."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opmon.cli._plain import plain

EXAMPLES: Mapping[str, object] = {
    "path": "production/",
    "threshold": 0.92,
    "rounds": 10,
    "drop": 0.03,
    "rival": "models:/digits@challenger",
    "url": "https://hooks.example.com/opmon",
    "argv": ["./retrain.sh"],
    "command": ["./judge.py"],
    "uri": "https://git.example.com/retraining",
    "column": "risk_score",
    "model": "models:/denoiser/1",
    "tracking_uri": "http://mlflow:5000",
    "database": "sqlite:///log.db",
    "tolerance": 2.0,
    "matrix": "{fraud: {ok: 500}, ok: {fraud: 20}}",
    "cursor": ["created_at", "id"],
    "experiment": "production inputs",
}
"""A value for each parameter that must be given."""

ALSO: Mapping[tuple[str, str], Mapping[str, object]] = {
    ("source", "sql"): {"table": "requests"},
    ("judge", "model"): {"model": "models:/larger@champion"},
    ("measure", "auc"): {"class": "fraud"},
    ("measure", "average_precision"): {"class": "fraud"},
    ("measure", "cost"): {"unit": "EUR"},
    ("measure", "function"): {"path": "mine.measures:gain"},
    ("measure", "f1"): {"class": "fraud"},
    ("measure", "precision"): {"class": "fraud"},
    ("measure", "recall"): {"class": "fraud"},
    ("judge", "openai"): {"url": "http://localhost:8000/v1", "model": "qwen3-8b", "at_most": 1000},
}
"""What examples show beside it, by kind and name: one of several keys of which one must be given."""


TYPES: Mapping[str, str] = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "tuple[str, ...]": "list of texts",
    "tuple[int, ...]": "list of whole numbers",
    "tuple[float, ...]": "list of numbers",
    "tuple[int, int]": "two whole numbers",
    "NDArray[np.float64]": "list of numbers",
}
"""What a value is in words, by its type in Python."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a plugin."""

    type: str
    required: bool
    default: object
    text: str
    """What it means."""


def parameters_of(factory: Callable[..., object]) -> dict[str, Parameter]:
    """The parameters of a plugin, by name."""
    from opmon.plugins import written

    defaults = {
        each.name: each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
        for each in (dataclasses.fields(factory) if dataclasses.is_dataclass(factory) else ())
    }
    meant = _meanings(factory)
    parameters = {}
    for each in inspect.signature(factory).parameters.values():
        default = defaults.get(each.name, each.default)
        required = default in (inspect.Parameter.empty, dataclasses.MISSING)
        kind = each.annotation if isinstance(each.annotation, str) else getattr(each.annotation, "__name__", "")
        parameters[written(each.name)] = Parameter(
            typed(kind), required, None if required else default, meant.get(each.name, "")
        )
    return parameters


def typed(kind: str) -> str:
    """A type in words; one that has none is called as it is.

    >>> typed("str | None"), typed("Literal['macro', 'micro'] | None"), typed("Mapping[str, float]")
    ('text', 'macro or micro', 'keys and values')
    """
    given = kind.removesuffix(" | None")
    if given.startswith("Literal["):
        *others, last = (each.strip(" '\"") for each in given.removeprefix("Literal[").removesuffix("]").split(","))
        return f"{', '.join(others)} or {last}" if others else last
    if given.startswith("Mapping["):
        return "keys and values"
    return " or ".join(TYPES.get(each, each) for each in given.split(" | "))


def _meanings(factory: Callable[..., object]) -> dict[str, str]:
    """The docstrings of the fields of a class and of its bases."""
    meanings: dict[str, str] = {}
    for base in reversed(inspect.getmro(factory) if inspect.isclass(factory) else ()):
        meanings.update(_own_meanings(base))
    return meanings


@functools.cache
def _own_meanings(base: type) -> Mapping[str, str]:
    """The docstrings of the fields that a class itself has."""
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    lines = node.body if isinstance(node, ast.ClassDef) else []
    return {
        field.target.id: " ".join(plain(inspect.cleandoc(ast.literal_eval(text.value))).split())  # type: ignore[attr-defined]
        for field, text in itertools.pairwise(lines)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(text)
    }


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
