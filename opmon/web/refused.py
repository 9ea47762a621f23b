"""A request that is not done, in the words that whoever sent it is told."""

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):
    """Becomes an answer with a status, a sentence, and what is wrong where."""

    def __init__(
        self,
        status: int,
        words: str,
        *,
        problems: Sequence[tuple[str, str]] = (),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(words)
        self.status, self.words, self.problems, self.retry_after = status, words, tuple(problems), retry_after
