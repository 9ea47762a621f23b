"""What went wrong on the way to a server, as people call it: the one place that reads how libraries name it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TRUST = "Name the certificate of the authority that signed it in {trust}, or have it signed by one that is known"
_WORDS: Mapping[str, str] = {
    r"certificate has expired": "its certificate has expired. Renew it there, unless a clock is wrong, there or here",
    r"certificate is not yet valid": "its certificate is not valid yet. A clock is wrong, there or here",
    r"(?:Hostname|IP address) mismatch|doesn't match|does not match host ?name": (
        "its certificate is for another name. Write the name that the certificate has into the address, or get one for "
        "this name"
    ),
    r"self[- ]signed certificate in certificate chain|unable to get (?:local )?issuer|verify the first certificate": (
        f"its certificate is signed by somebody who is not known here. {_TRUST}"
    ),
    r"self[- ]signed certificate": f"its certificate is signed by itself. {_TRUST}",
    r"CERTIFICATE_VERIFY_FAILED|certificate verify failed": (
        "its certificate is not trusted here: it has expired, is not valid yet, or is signed by somebody who is not "
        f"known. {_TRUST}"
    ),
    r"WRONG_VERSION_NUMBER|wrong version number|UNKNOWN_PROTOCOL|record layer failure": (
        "it speaks no TLS (HTTPS) there"
    ),
    r"does not support SSL, but SSL was required": "it does not speak TLS, which 'sslmode' of the address asks for",
    r"Connection refused": "nobody listens there (connection refused)",
    r"Temporary failure in name resolution": "the name server does not answer",
    r"Name or service not known|Failed to resolve|name resolution|getaddrinfo failed|nodename nor servname|"
    r"No address associated|could not translate host name": "nobody knows a host of that name",
    r"No route to host|Network is unreachable": "there is no way to it through the network",
    r"Connection reset|RemoteDisconnected|Connection aborted|Connection broken|Server disconnected": (
        "it cut the connection"
    ),
    r"[Tt]imed out": "it did not answer in time",
}
"""The first that fits: each is a part of those behind it, or none of them."""


def on_the_way(problem: object, trust: str = "SSL_CERT_FILE") -> str | None:
    """The words for what a library says of a server that it did not reach, without a full stop; None for all else.

    ``trust`` is where the certificates of authorities are named that this library believes.

    >>> on_the_way("[Errno 111] Connection refused")
    'nobody listens there (connection refused)'
    """
    text = str(problem)
    words = next((words for pattern, words in _WORDS.items() if re.search(pattern, text)), None)
    return None if words is None else words.format(trust=trust)
