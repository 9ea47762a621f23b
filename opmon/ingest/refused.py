"""What is answered to a request that is not taken."""

from __future__ import annotations


class Refused(Exception):
    """A request that is answered with ``status`` and these words, and of which nothing is kept."""

    def __init__(self, status: int, words: str, retry_after: int | None = None) -> None:
        super().__init__(words)
        self.status, self.words, self.retry_after = status, words, retry_after
