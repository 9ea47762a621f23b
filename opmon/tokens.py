"""What is kept of tokens, so that whoever reads the database learns none.

A token is 256 random bits. Of its SHA-256 the first 64 bits find its row, and the whole of it is hashed once more, with
scrypt and a salt of its own: it takes 16 MB and some hundredths of a second, for whoever guesses too. What was right
once is remembered in memory, so that requests do not wait for it; whether the row is still there and still good is
asked of the database all the same.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import secrets

LOG2_COST = 14
"""The cost of what is hashed from now on; hashes that are there carry theirs."""
_BLOCK, _PARALLEL, _SALT, _BYTES = 8, 1, 16, 32
_FOUND_BY = 16
_REMEMBERED = 4096


def found_by(token_hash: str) -> str:
    """What finds the row of a token, by the token's SHA-256."""
    return token_hash[:_FOUND_BY]


def kept_of(token_hash: str) -> str:
    """What is kept of a token, by its SHA-256: how it was hashed, the salt, and the hash."""
    salt = secrets.token_bytes(_SALT)
    return f"scrypt${LOG2_COST}${_BLOCK}${_PARALLEL}${salt.hex()}${_hashed(token_hash, LOG2_COST, salt).hex()}"


@functools.lru_cache(maxsize=_REMEMBERED)
def is_kept(token_hash: str, kept: str) -> bool:
    """Whether ``kept`` was made of this token's SHA-256.

    >>> kept = kept_of("ab" * 32)
    >>> is_kept("ab" * 32, kept), is_kept("ac" * 32, kept), is_kept("ab" * 32, "sha256$nonsense")
    (True, False, False)
    """
    match kept.split("$"):
        case ["scrypt", cost, _, _, salt, hashed]:
            return hmac.compare_digest(_hashed(token_hash, int(cost), bytes.fromhex(salt)), bytes.fromhex(hashed))
    return False


def _hashed(token_hash: str, log2_cost: int, salt: bytes) -> bytes:
    cost = 1 << log2_cost
    room = 256 * _BLOCK * cost
    return hashlib.scrypt(token_hash.encode(), salt=salt, n=cost, r=_BLOCK, p=_PARALLEL, maxmem=room, dklen=_BYTES)
