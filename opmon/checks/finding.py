"""What one check found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, TypeVar

from opmon.errors import InputError, ModelError, NotFoundError, OpmonError, SourceError
from opmon.types import Json

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    about: str
    level: Literal["ok", "warning", "problem"]
    message: str
    needs_change: bool = False
    """Whether somebody must change something; if not, trying again may help."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Some inputs as opmon sees them, under a row of headings, from a trial that went through."""

    def as_dict(self) -> dict[str, Json]:
        return asdict(self)


def asked(about: str, question: Callable[[], tuple[str, T]]) -> tuple[Finding, T | None]:
    """The answer to a question as a finding, with its value; a problem and None if it fails."""
    try:
        words, found = question()
        return Finding(about, "ok", words), found
    except OpmonError as exc:
        return trouble(about, exc), None


def trouble(about: str, exc: OpmonError, consequence: str = "") -> Finding:
    """An error as a problem, with what follows from it."""
    needs_change = isinstance(exc, InputError | NotFoundError | ModelError | SourceError)
    return Finding(about, "problem", f"{str(exc).rstrip('.')}. {consequence}".rstrip(" "), needs_change)


def short(value: object) -> str:
    """
    >>> short(["a", "b"]), short(range(8)[:2]), short(3)
    ('a, b', 'range(0, 2)', '3')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value[:6])) + (f", … ({len(value)})" if len(value) > 6 else "")
    return str(value)
