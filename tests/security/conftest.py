"""One service for all attacks of a test process; after each it is alive, and in the end it has told nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.attacked import SECRETS, Attacked, attacked


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with attacked(tmp_path_factory.mktemp("attacked")) as made:
        yield made
        said = made.said
    assert "Traceback" not in said
    assert "a fault in opmon" not in said
    assert not [name for name, secret in SECRETS.items() if secret in said]
    assert not [role for role, token in made.tokens.items() if token in said]


@pytest.fixture
def service(served: Attacked) -> Iterator[Attacked]:
    """The service, which an attack must leave alive."""
    yield served
    while served.clients:
        served.clients.pop().close()
    assert served.is_alive
