"""Tokens and sessions: how they are made, and what of them is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from opmon.adjudication import TRUTH
from opmon.errors import InputError

PREFIX = "opmon_"
"""Begins every token, so that scanners for secrets in code and logs know one."""
LONGEST_NAME = 200


def new_token() -> str:
    """A token that nobody can guess: 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def sha256_of(secret: str) -> str:
    """What is kept of a token or session.

    A plain hash is enough: a slow one protects secrets that can be guessed, which 256 random bits cannot.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def csrf_of(session: str) -> str:
    """What a form of this session carries: other sites can make a browser send its cookie, but do not know this."""
    return hmac.new(session.encode("utf-8", "surrogateescape"), b"csrf", hashlib.sha256).hexdigest()


def link_with(address: str, token: str) -> str:
    """A link that signs in; browsers send what is behind # to no server, so that it is in no log."""
    return f"{address}/sign-in#{token}"


def usable_name(name: str) -> str:
    """A name as it is kept with labels; an error where it cannot be one.

    >>> usable_name("  Ann Lee ")
    'Ann Lee'
    """
    name = " ".join(name.split())
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise InputError(f"a name has 1 to {LONGEST_NAME} characters that can be seen; got {name[:40]!r}")
    if name == TRUTH:
        raise InputError(f"nobody may be called {TRUTH!r}: it is the name of truth that arrives by itself")
    return name
