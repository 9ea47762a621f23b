"""A set of ids in a hundred letters: enough to tell which few were added to it later.

Kept are the number of the ids and the sums of the first powers of their hashes, modulo a prime. What a larger set has
more of each sum are the power sums of the ids that were added; Newton's identities make of them the polynomial whose
roots these are (Minsky, Trachtenberg, Zippel: Set reconciliation with nearly optimal communication complexity, 2003).
Pure.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MOST = 8
"""So many ids that were added can be told."""
_PRIME = 2**61 - 1
_BYTES = 8


@dataclass(frozen=True)
class Sketch:
    """How many ids a set has, and the power sums of their hashes."""

    count: int
    sums: tuple[int, ...]

    @classmethod
    def of(cls, ids: Collection[str]) -> Sketch:
        """
        >>> Sketch.of(["b", "c", "a"]).added(["a", "b", "c", "late"])
        frozenset({'late'})
        """
        return cls(len(ids), _sums([_hash(each) for each in ids]))

    def __str__(self) -> str:
        packed = b"".join(each.to_bytes(_BYTES, "big") for each in self.sums)
        return f"{self.count}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    @classmethod
    def parse(cls, text: str) -> Sketch | None:
        """As ``str(sketch)`` wrote it; None for what it did not write."""
        count, _, packed = text.partition(".")
        try:
            found = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        except ValueError:
            return None
        if not count.isdecimal() or len(found) != MOST * _BYTES:
            return None
        pieces = (found[at : at + _BYTES] for at in range(0, len(found), _BYTES))
        return cls(int(count), tuple(int.from_bytes(piece, "big") for piece in pieces))

    def added(self, ids: Collection[str]) -> frozenset[str] | None:
        """Which of these ids the set did not have; None where more were added than can be told, or some are gone."""
        by_hash = {_hash(each): each for each in ids}
        more = len(ids) - self.count
        if not 0 <= more <= MOST or len(by_hash) < len(ids):
            return None
        sums = [(now - then) % _PRIME for now, then in zip(_sums(list(by_hash)), self.sums, strict=True)]
        polynomial = _polynomial(sums[:more])
        roots = [each for each in by_hash if _value(polynomial, each) == 0]
        if len(roots) != more or list(_sums(roots)) != sums:
            return None
        return frozenset(by_hash[each] for each in roots)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_BYTES).digest(), "big") % (_PRIME - 1) + 1


def _sums(hashes: Sequence[int]) -> tuple[int, ...]:
    """The sums of their first powers."""
    powers, sums = [1] * len(hashes), []
    for _ in range(MOST):
        powers = [power * each % _PRIME for power, each in zip(powers, hashes, strict=True)]
        sums.append(sum(powers) % _PRIME)
    return tuple(sums)


def _polynomial(sums: Sequence[int]) -> list[int]:
    """The polynomial whose roots have these power sums, the highest power first."""
    elementary = [1]
    for degree in range(1, len(sums) + 1):
        terms = ((-1) ** (k - 1) * elementary[degree - k] * sums[k - 1] for k in range(1, degree + 1))
        elementary.append(sum(terms) * pow(degree, -1, _PRIME) % _PRIME)
    return [(-1) ** degree * each for degree, each in enumerate(elementary)]


def _value(polynomial: Sequence[int], at: int) -> int:
    found = 0
    for each in polynomial:
        found = (found * at + each) % _PRIME
    return found
