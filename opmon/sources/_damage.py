"""Damage: what was read is not what it should be, and will not be when it is read again.

It is told apart from what cannot be read just now (a folder that is not mounted, a right that is missing): damaged rows
may be left out, the others must wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opmon.errors import SourceError
from opmon.wording import sentence

WAY_ON = "To go on without it, say 'broken: skip' in the source"
"""Behind damage that stops a round, where the source may leave it out."""


class Damaged(SourceError):
    """A file, or rows of it, that cannot be read however often it is tried."""


class CutShort(Damaged):
    """A file that ends too early: it may still be written."""


class Conflicting(Damaged):
    """A file that is well, and cannot be read together with another one: it waits for a round of its own."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows that follow each other and cannot be read, however often it is tried."""

    rows: int
    why: Callable[[], str]
    """Says it in full, the file and the line included; that may take reading the file up to there."""

    @classmethod
    def because(cls, rows: int, reason: str) -> Lost:
        return cls(rows, lambda: reason)


def stopping(problem: SourceError) -> SourceError:
    """The error for damage that stops a round: it names the key that lets the source leave it out."""
    if not isinstance(problem, Damaged) or isinstance(problem, Conflicting) or WAY_ON in str(problem):
        return problem
    return type(problem)(f"{sentence(str(problem))} {WAY_ON}")


def not_readable(message: str, exc: Exception) -> SourceError:
    """The error for what a library could not read: with an error number it is the system's, and may pass.

    So may a lack of memory. What the library says of damaged bytes may hold some of them: they are told as escapes.
    """
    passing = isinstance(exc, MemoryError) or (isinstance(exc, OSError) and exc.errno is not None)
    told = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in message.strip())
    return SourceError(told) if passing else Damaged(told)


def rewritten(part: str, what: str) -> Damaged:
    """The error for a file that is no longer the one that was read."""
    return Damaged(
        f"{part}: {what}, so it is not known which of its rows are new. Production must append to a file or write a "
        f"new one. Put back the file that was there; what is in it now is read from its start under another name. A "
        f"round that cannot have it back: 'opmon rounds abandon' gives it up, 'opmon rounds reopen --without' gives "
        f"its other inputs to a new round."
    )
