"""What texts hold: words, in the way of TF-IDF each once, and how they are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from opmon.causes.features import Feature, Measurements, Values

MOST_WORDS = 300
LEAST = 0.02
"""A word that is in a smaller share of the texts is no feature of them; nor one that is in nearly all."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def is_text(cells: Sequence[str | None]) -> bool:
    """Whether cells hold sentences, and no names or codes."""
    known = [cell for cell in cells if cell]
    several = sum(len(cell.split()) >= 3 for cell in known)
    return bool(known) and several > 0.3 * len(known) and len(set(known)) > 0.3 * len(known)


def text_features(name: str, texts: Sequence[str | None]) -> list[Feature]:
    """Which frequent words each text has, how long it is, and what share of it are capitals, digits and rare words."""
    words = [Counter(_WORD.findall((text or "").lower())) for text in texts]
    holding = Counter(word for own in words for word in own)
    least = max(4, LEAST * len(texts))
    frequent = [word for word, count in holding.most_common() if least <= count <= 0.8 * len(texts)][:MOST_WORDS]
    found: list[Feature] = []
    for word in frequent:
        values = np.full(len(texts), None, dtype=object)
        values[[word in own for own in words]] = word
        found.append(Values(name, values, "“{value}” in {name}", sparse=True))
    rare = [
        sum(count for word, count in own.items() if holding[word] <= 1) / max(1, sum(own.values())) for own in words
    ]
    found.append(_share(name, rare, f"words in {name} that no other text has", None))
    for test, above, below in (
        (str.isupper, f"capitals in {name}", f"no capitals in {name}"),
        (str.isdigit, f"digits in {name}", None),
    ):
        shares = [sum(map(test, text)) / len(text) if text else np.nan for text in texts]
        found.append(_share(name, shares, f"many {above}", below))
    marks = [sum(not (c.isalnum() or c.isspace()) for c in text) / len(text) if text else np.nan for text in texts]
    found.append(_share(name, marks, f"many signs in {name}", f"no punctuation in {name}"))
    lengths = np.array([np.nan if text is None else float(len(text)) for text in texts])
    found.append(Measurements(f"characters in {name}", lengths))
    return found


def _share(name: str, shares: Sequence[float], above: str, below: str | None) -> Measurements:
    return Measurements(name, np.array(shares, dtype=np.float64), above, below)
