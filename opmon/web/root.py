"""Where the pages are: at the root of their address, or below a prefix, as in MLflow's server or behind a proxy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_ROOT: ContextVar[str] = ContextVar("root", default="")
_MLFLOW: ContextVar[str | None] = ContextVar("mlflow", default=None)


def root() -> str:
    """What stands before the path of every address in the answer at work; empty at the root."""
    return _ROOT.get()


def under(path: str) -> str:
    """The address of a path of these pages.

    >>> with below({"root_path": "/opmon"}):
    ...     under("/label")
    '/opmon/label'
    """
    return root() + path


def within(path: str) -> str:
    """The path of these pages that an address has: the opposite of :func:`under`."""
    return path.removeprefix(root()) if path.startswith(f"{root()}/") else path


def mlflow_pages() -> str | None:
    """Where MLflow's own pages are, if the same server has them."""
    return _MLFLOW.get()


@contextmanager
def below(scope: Mapping[str, object], mlflow_at: str | None = None) -> Iterator[None]:
    """The answer to one request, below the prefix that it came with."""
    token = _ROOT.set(str(scope.get("root_path") or "").rstrip("/"))
    beside = _MLFLOW.set(mlflow_at)
    try:
        yield
    finally:
        _ROOT.reset(token)
        _MLFLOW.reset(beside)
