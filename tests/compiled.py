"""What SQLAlchemy compiles is shared by the engines of all tests.

An engine keeps what it has compiled to itself. A service has one engine for its life; here each test has a database,
and so an engine, of its own, and most of what opmon asks a database would be compiled thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.engine import URL, Engine
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.util import LRUCache

_SIZE = 5000
_kinds: dict[type[Dialect], type[Dialect]] = {}
_compiled: dict[type[Dialect], LRUCache[object, object]] = {}


def _alike(kind: type[Dialect]) -> type[Dialect]:
    """The class of dialects that count as the same as any other of it: all were made and set up in the same way."""
    own = {
        "__eq__": lambda self, other: type(self) is type(other),
        "__hash__": lambda self: hash(type(self)),
        "supports_statement_cache": True,
    }
    return type(kind.__name__, (kind,), own)


def sharing(make: Callable[[URL], Engine]) -> Callable[[URL], Engine]:
    """Makes engines as ``make`` does; what one of them has compiled the others have too."""

    def made(url: URL) -> Engine:
        engine = make(url)
        kind = type(engine.dialect)
        if kind not in _kinds:
            _kinds[kind], _compiled[kind] = _alike(kind), LRUCache(_SIZE)
        engine.dialect.__class__ = _kinds[kind]
        engine._compiled_cache = _compiled[kind]
        return engine

    return made
