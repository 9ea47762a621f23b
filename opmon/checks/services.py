"""Whether the services that every monitor needs answer."""

from __future__ import annotations

from collections.abc import Iterator

from opmon import disk
from opmon.checks.finding import Finding, asked, trouble
from opmon.config import Settings
from opmon.config.registry import registry_of
from opmon.errors import OpmonError
from opmon.oidc.provider import Provider
from opmon.store import migrate
from opmon.store.engine import connect


def check_services(settings: Settings) -> Iterator[Finding]:
    """The database, the registry that holds the models, and where people sign in."""
    yield asked("database", lambda: (_ask_database(settings), None))[0]
    yield from _of_state(settings)
    about = "mlflow" if settings.registry is None else "registry"
    yield asked(about, lambda: (registry_of(settings).check(), None))[0]
    oidc = settings.web.oidc
    if oidc is not None:
        yield asked("web: oidc", lambda: (Provider(oidc).check(), None))[0]


def _of_state(settings: Settings) -> Iterator[Finding]:
    """Nothing where the folder for opmon's own files can be used."""
    try:
        disk.require_place(settings.state)
    except OpmonError as exc:
        yield trouble("state", exc)


def _ask_database(settings: Settings) -> str:
    store = connect(settings.database.get_secret_value())
    return f"{store.where} answers; {migrate.state(store)}"
