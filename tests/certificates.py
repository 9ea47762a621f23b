"""Certificates that sign themselves, and servers on loopback that speak TLS with them."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = timedelta(days=1)
PEM = serialization.Encoding.PEM


def self_signed(host: str, begins: timedelta = -DAY, ends: timedelta = DAY) -> bytes:
    """A key and its certificate for a host, good from so long after now until so long after now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + certificate.public_bytes(PEM)


@contextmanager
def tls_server(certificate: Path, greeting: bytes = b"") -> Iterator[int]:
    """The port of a server that shakes hands with this certificate and says no more.

    With a ``greeting`` it waits for a request in plain first, and answers that: so does PostgreSQL.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, context, greeting), daemon=True).start()
        yield int(listener.getsockname()[1])


def _serve(listener: socket.socket, context: ssl.SSLContext, greeting: bytes) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with contextlib.suppress(OSError), connection:
            if greeting:
                connection.recv(8)
                connection.sendall(greeting)
            with context.wrap_socket(connection, server_side=True) as safe:
                safe.recv(1)
