"""What PostgreSQL and its library say to one who may not connect, in words: the driver gives no code then."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HBA = r"no pg_hba\.conf entry|pg_hba\.conf rejects"
_UNUSABLE = "{address} cannot be used as it is written: {said}"
_FILE = "a file for TLS cannot be used: {said}. Put it right, or name another in {address}"

_WORDS: Mapping[str, str] = {
    r"password authentication failed|no password supplied": (
        "it refused the user or the password. Write the right ones into {address}"
    ),
    r"role \"[^\"]*\" does not exist": "it knows no such user. Create it there, or write another into {address}",
    r"is not permitted to log in": (
        "its user may not log in. Let it (ALTER ROLE … LOGIN), or write another into {address}"
    ),
    rf"(?:{_HBA}).*no encryption": (
        "it does not let this user in from here, at least not without TLS ({said}). Add sslmode=require to {address}, "
        "or a line for this user to its pg_hba.conf"
    ),
    _HBA: "it does not let this user in from here ({said}). Add a line for this user to its pg_hba.conf",
    r"authentication failed": "it refused the user ({said}). Write another into {address}, or change its pg_hba.conf",
    r"database \"[^\"]*\" does not exist": "it is not there. Create it, or name another in {address}",
    r"permission denied for database": "its user may not connect to it. Grant CONNECT on it",
    r"not currently accepting connections": (
        "it takes no connections. Allow them (ALTER DATABASE … ALLOW_CONNECTIONS true), or name another in {address}"
    ),
    r"the database system is|not yet accepting connections": "the server is starting up or shutting down ({said})",
    r"session is (?:not )?read-only|server is (?:not )?in hot standby mode": (
        "no server that {address} names is as its target_session_attrs asks for ({said})"
    ),
    r"root certificate file \"[^\"]*\" does not exist": (
        "there is no file with the certificates to trust ({said}). Name one in sslrootcert of {address}; "
        "sslrootcert=system takes those that this machine trusts"
    ),
    r"(?:certificate|private key|revocation list)[a-z ,]* file \"|certificate present, but not private key": _FILE,
    r"connection is bad: (?:invalid|weak|definition of service)|invalid connection option|bad value for \w+:|"
    r"could not match \d+": _UNUSABLE,
    r"FATAL:": "it refused the connection: {said}. Put that right there, or in {address}",
}
"""The first that fits."""

_SAID = re.compile(
    r"(?:connection (?:failed|is bad): )?(?:connection to server .*? failed: )?(?:FATAL:\s+)?(?P<said>.*)\Z", re.DOTALL
)


def refused(said: str, address: str) -> str | None:
    """Why there is no connection though somebody answers, or though none was tried; None for all else.

    ``address`` is what the address is called where it is written. There is no full stop.

    >>> refused('connection failed: FATAL:  role "ann" does not exist', "'database'")
    "it knows no such user. Create it there, or write another into 'database'"
    >>> refused("invalid sslmode value", "'database'"), refused("Connection refused", "'database'")
    (None, None)
    """
    words = next((words for pattern, words in _WORDS.items() if re.search(pattern, said)), None)
    if words is None:
        return None
    found = _SAID.match(said)
    return words.format(address=address, said=found["said"] if found else said)
