"""Warnings that any request may cause, logged at most once a minute."""

from __future__ import annotations

import logging
import time

_SECONDS = 60.0


class Rarely:
    """Logs at most one warning a minute."""

    def __init__(self, log: logging.Logger) -> None:
        self._log, self._told = log, -_SECONDS

    def warning(self, words: str, *values: object) -> None:
        now = time.monotonic()
        if now - self._told >= _SECONDS:
            self._told = now
            self._log.warning(words, *values)
