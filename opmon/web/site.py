"""What the pages and the API work with: the configuration, the database, the queue, and who may see what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from opmon.config import MonitorSettings, Settings
from opmon.health.health import Health
from opmon.labels.queue import LabelQueue
from opmon.oidc.provider import Provider
from opmon.store.engine import Store
from opmon.web.audited import Audited
from opmon.web.identity import Door, Person
from opmon.web.refused import Refused
from opmon.web.robust import Tomographies
from opmon.web.together import Together

_SITE = "opmon.site"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Site:
    """One for each server."""

    settings: Settings
    store: Store
    clock: Callable[[], datetime] = _now
    health: Health = field(kw_only=True)
    """That of the process."""
    mlflow_pages: str | None = field(default=None, kw_only=True)
    """Where MLflow's pages are on the same server, if these pages are inside it."""
    queue: LabelQueue = field(init=False)
    door: Door = field(init=False)
    answers: Together = field(init=False)
    audited: Audited = field(init=False)
    tomographies: Tomographies = field(init=False)
    provider: Provider | None = field(init=False)
    """Where people sign in, if not by tokens alone."""
    thresholds: dict[str, float | None] = field(init=False)
    """By monitor the line that charts of it draw."""

    def __post_init__(self) -> None:
        self.queue = LabelQueue(self.store, self.settings.queue_terms, self.clock)
        self.door = Door(self.settings, self.store, self.clock, is_guest=self.mlflow_pages is not None)
        self.answers = Together(self.queue)
        self.audited = Audited(self.store, self.settings.web.keep_audit, self.clock)
        self.tomographies = Tomographies(self.store)
        self.provider = _provider(self.settings)
        self.thresholds = {name: each.threshold for name, each in self.settings.monitors.items()}

    def take(self, settings: Settings) -> None:
        """Take over a configuration; requests that are under way may still go by the old one."""
        self.thresholds |= {name: each.threshold for name, each in settings.monitors.items()}
        self.queue = LabelQueue(self.store, settings.queue_terms, self.clock)
        if settings.web.oidc != self.settings.web.oidc:
            self.provider = _provider(settings)
        self.door.settings = self.settings = settings
        self.answers.queue = self.queue

    def monitors_of(self, person: Person) -> list[MonitorSettings]:
        """The monitors that somebody may see, in the order of the configuration."""
        return [monitor for name, monitor in self.settings.monitors.items() if person.sees(name)]

    def monitor_for(self, person: Person, name: str) -> MonitorSettings:
        """A monitor that somebody may see; to others it does not exist."""
        if name not in self.settings.monitors or not person.sees(name):
            names = ", ".join(each.name for each in self.monitors_of(person)) or "none"
            raise Refused(404, f"there is no monitor {name[:100]!r} for you; there are: {names}")
        return self.settings.monitors[name]


def _provider(settings: Settings) -> Provider | None:
    return None if settings.web.oidc is None else Provider(settings.web.oidc)


@dataclass
class Sited:
    """Tells the application with each request which site it is for."""

    app: ASGIApp
    site: Site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, _SITE: self.site}, receive, send)


def site_of(request: Request) -> Site:
    site: Site = request.scope[_SITE]
    return site
