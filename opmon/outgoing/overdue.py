"""How often this process waited in vain: for whom, by kind."""

from __future__ import annotations

import threading
from collections import Counter

KINDS = ("registry", "source", "label provider", "judge", "webhook", "command", "model", "measure", "cycle")
"""What may be waited for; the metrics count each."""

_counts: Counter[str] = Counter()
_lock = threading.Lock()


def count(kind: str) -> None:
    """Note that one of this kind did not answer in its time."""
    with _lock:
        _counts[kind] += 1


def counts() -> dict[str, int]:
    """How often, by kind; those that always answered too."""
    with _lock:
        return {kind: _counts[kind] for kind in dict.fromkeys((*KINDS, *_counts))}
