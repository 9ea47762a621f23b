"""A log filter for problems that repeat: each is logged once, later with how often it came meanwhile."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable

from opmon.logs.place import Place

EVENT = "opmon_event"
"""What a record carries that tells an event: no two are the same, whatever they say."""
_NUMBERS = re.compile(r"\d+(?:[.,:]\d+)*")
_AT = re.compile(r"^(?:monitor \*|round \d+ of \*|\*): ")
"""How a message begins that says where the work was."""
_MOST = 1000
"""Problems that are remembered."""


class Repeats(logging.Filter):
    """Lets a warning or error through that is new, or that was last told ``seconds`` ago.

    Two messages are the same where only their numbers differ (seconds left, process ids, counts), or the monitor at
    which the work was: a server that does not answer two hundred monitors is one problem. Nor does it matter which part
    of opmon met with it.
    """

    def __init__(self, seconds: float = 600.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds, self._monotonic = seconds, monotonic
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or EVENT in record.__dict__:
            return True
        message, now = record.getMessage(), self._monotonic()
        key = _NUMBERS.sub("#", _anyones(record, message))
        with self._lock:
            at, more = self._told.get(key, (None, 0))
            if at is not None and now - at < self._seconds:
                self._told[key] = at, more + 1
                return False
            self._told.pop(key, None)
            self._told[key] = now, 0
            if len(self._told) > _MOST:
                self._told.pop(next(iter(self._told)))
        if more:
            minutes = 0 if at is None else (now - at) / 60
            record.msg, record.args = f"{message} ({more} times more in the last {minutes:.0f} min)", ()
        return True


def _anyones(record: logging.LogRecord, message: str) -> str:
    """The message without the monitor at which the work was, and without the round or stage that it begins with."""
    where = record.__dict__.get("place")
    if not isinstance(where, Place) or not where.monitor:
        return message
    name = re.escape(where.monitor)  # as a word: one called "sql" is no part of "postgresql"
    message = re.sub(rf"(?<![\w-]){name}(?![\w-])", "*", message)
    return _AT.sub("", message)
