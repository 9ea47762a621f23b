"""Counts of words that stay small, whatever the words are."""

from __future__ import annotations

from collections import Counter

MOST = 1000
"""The most different words that are counted apart."""
OTHERS = "…"


def bounded(counts: Counter[str], most: int = MOST) -> Counter[str]:
    """The counts, with the rarest words as one where there are too many; the total is the same.

    >>> bounded(Counter("aaabbc"), 2)
    Counter({'a': 3, '…': 3})
    """
    if len(counts) <= most:
        return counts
    kept = Counter(dict(counts.most_common(most - 1)))
    kept[OTHERS] += counts.total() - kept.total()
    return kept
