"""The forms of a line of the log: JSON for programs, text for people. Both say where the work was."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from opmon.logs.place import Place, place
from opmon.logs.repeats import Repeats
from opmon.redaction import redacted

Form = Literal["auto", "text", "json"]
_LONGEST = 20_000
"""Characters of one message, or of one traceback."""
_PLACE = ("monitor", "round", "stage", "waiting_for")


class Placed(logging.Filter):
    """Notes on each record where the work was when it was made."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.place = place()
        return True


class Json(logging.Formatter):
    """One JSON object a line: ``time, level, logger, message``, and ``monitor, round, stage`` where they are known."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage())[:_LONGEST],
        }
        told |= {key: value for key in _PLACE if (value := getattr(_place_of(record), key)) is not None}
        if record.exc_info:
            told["traceback"] = redacted("".join(traceback.format_exception(*record.exc_info))[-_LONGEST:])
        return json.dumps(told, ensure_ascii=False, default=str)


class Plain(logging.Formatter):
    """One line for people, without secrets, in tracebacks too."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class Text(Plain):
    """One line for people, with the monitor and the round before the message where it does not name them."""

    def format(self, record: logging.LogRecord) -> str:
        where, message = _place_of(record), record.getMessage()
        names = [where.monitor or ""] + ([] if where.round is None else [f"round {where.round}"])
        before = " ".join(name for name in names if name and name not in message)
        if not before:
            return super().format(record)
        told = logging.makeLogRecord({**record.__dict__, "msg": f"{before}: {message}", "args": ()})
        return super().format(told)


_FORMS: Mapping[str, type[logging.Formatter]] = {"json": Json, "text": Text}


def set_up(form: Form) -> None:
    """Let a service's log have this form, say what it does, and say the same thing once.

    ``auto`` is text on a terminal, and JSON where programs read it.
    """
    logger = logging.getLogger("opmon")
    if logger.level == logging.WARNING:
        logger.setLevel(logging.INFO)  # a service that says nothing looks dead
    chosen = form if form != "auto" else "text" if sys.stderr.isatty() else "json"
    for handler in logging.getLogger().handlers:
        handler.addFilter(Placed())
        handler.addFilter(Repeats())
        handler.setFormatter(_FORMS[chosen]())


def _place_of(record: logging.LogRecord) -> Place:
    found = getattr(record, "place", None)
    return found if isinstance(found, Place) else Place()
