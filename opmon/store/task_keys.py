"""The key of a task: its number, and a proof that this database asked for it, and of which input.

Numbers alone begin at 1 in every database: a file of another one, such as a staging system's, would label other inputs.
"""

from __future__ import annotations

import hashlib
import re

LARGEST = 2**63 - 1
_KEY = re.compile(r"t([1-9][0-9]{0,18})-[0-9a-f]{12}")


def key_of(task_id: int, monitor: str, round_number: int, input_id: str, since: str) -> str:
    """The key of a task; ``since`` is when the database first knew the monitor.

    >>> key_of(7, "digits", 4, "a-1", "2026-03-01T12:00:00+00:00")
    't7-35af99ce5acd'
    """
    said = "\0".join((str(task_id), monitor, str(round_number), input_id, since))
    return f"t{task_id}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"


def number_in(key: str) -> int | None:
    """The number of the task that a key is of; None where it is no key.

    >>> number_in("t7-35af99ce5acd"), number_in("7")
    (7, None)
    """
    found = _KEY.fullmatch(key)
    return int(found[1]) if found and int(found[1]) <= LARGEST else None
