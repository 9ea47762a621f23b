"""A certificate that cannot be believed is told in words, by whatever asks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from opmon.errors import DatabaseUnavailable, DeliveryError, RegistryUnavailable
from opmon.registry import MlflowRegistry
from opmon.store.engine import connect
from opmon.triggers.webhook import Webhook
from tests.certificates import DAY, self_signed, tls_server

EVENT = {"id": "1", "type": "opmon.alarm", "at": "2026-11-18T08:00:00+00:00"}
KINDS = {
    "expired": ("has expired", "localhost", -10 * DAY, -DAY),
    "too early": ("not valid yet", "localhost", DAY, 10 * DAY),
    "of another": ("for another name", "elsewhere.example", -DAY, DAY),
    "of nobody": ("signed by itself", "localhost", -DAY, DAY),
}


class Case(NamedTuple):
    words: str
    certificate: Path
    trusted: Path
    """The certificates that the client believes."""


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    words, host, begins, ends = KINDS[request.param]
    certificate, other = tmp_path / "server.pem", tmp_path / "other.pem"
    certificate.write_bytes(self_signed(host, begins, ends))
    other.write_bytes(self_signed("other.example"))
    return Case(words, certificate, other if request.param == "of nobody" else certificate)


def test_of_a_webhook(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(case.trusted))
    with tls_server(case.certificate) as port, pytest.raises(DeliveryError, match=case.words) as raised:
        Webhook(f"https://localhost:{port}/hidden", allow=("localhost",), timeout=60.0).act(EVENT)
    assert "_ssl.c" not in str(raised.value)
    assert "hidden" not in str(raised.value)
    assert not raised.value.final


def test_of_mlflow(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(case.trusted))
    with tls_server(case.certificate) as port, pytest.raises(RegistryUnavailable, match=case.words) as raised:
        MlflowRegistry(f"https://localhost:{port}").check()
    assert "_ssl.c" not in str(raised.value)


def test_of_postgresql(case: Case) -> None:
    """Its library says little more than that it does not trust it."""
    words = case.words if "name" in case.words else "expired, is not valid yet, or is signed by somebody who is not"
    with tls_server(case.certificate, greeting=b"S") as port:
        where = f"postgresql+psycopg://ann:s3cret-pw@localhost:{port}/opmon"
        store = connect(f"{where}?sslmode=verify-full&sslrootcert={case.trusted}")
        with pytest.raises(DatabaseUnavailable, match=words) as raised, store.read():
            pass
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("held", "words"), [(None, "sslrootcert of 'database'; sslrootcert=system"), ("no certificate", "a file for TLS")]
)
def test_certificates_to_trust_that_are_not_there_are_no_silence_of_postgresql(
    tmp_path: Path, held: str | None, words: str
) -> None:
    server, trusted = tmp_path / "server.pem", tmp_path / "trusted.pem"
    server.write_bytes(self_signed("localhost"))
    if held is not None:
        trusted.write_text(held)
    with tls_server(server, greeting=b"S") as port:
        store = connect(f"postgresql+psycopg://ann@localhost:{port}/opmon?sslmode=verify-full&sslrootcert={trusted}")
        with pytest.raises(DatabaseUnavailable, match=words) as raised, store.read():
            pass
    assert "did not answer" not in str(raised.value)
