"""Whether the services that every monitor needs answer."""

from __future__ import annotations

from collections.abc import Iterator

from opmon.checks.finding import Finding, asked
from opmon.config import Settings
from opmon.config.registry import registry_of
from opmon.oidc.provider import Provider
from opmon.store import migrate
from opmon.store.engine import connect


def check_services(settings: Settings) -> Iterator[Finding]:
    """The database, the registry that holds the models, and where people sign in."""
    yield asked("database", lambda: (_ask_database(settings), None))[0]
    about = "mlflow" if settings.registry is None else "registry"
    yield asked(about, lambda: (registry_of(settings).check(), None))[0]
    oidc = settings.web.oidc
    if oidc is not None:
        yield asked("web: oidc", lambda: (Provider(oidc).check(), None))[0]


def _ask_database(settings: Settings) -> str:
    store = connect(settings.database.get_secret_value())
    return f"{store.where} answers; {migrate.state(store)}"
