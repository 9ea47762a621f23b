"""Who may do what: one line for each endpoint. The server does not start where one has no line, or another guard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from opmon.errors import OpmonError
from opmon.web.api import asking as of_api
from opmon.web.pages import asking as of_pages


class Need(StrEnum):
    """What whoever asks must be."""

    NOTHING = "nobody in particular"
    SOMEBODY = "anybody who is let in"
    LABELS = "annotators and operators"
    WATCHES = "viewers and operators"
    ACTS = "operators"

    def lets(self, role: str) -> bool:
        """Whether somebody of this role is let in."""
        return self in (Need.NOTHING, Need.SOMEBODY) or role in _ROLES[self]


_ROLES = {
    Need.LABELS: frozenset({"annotator", "operator"}),
    Need.WATCHES: frozenset({"viewer", "operator"}),
    Need.ACTS: frozenset({"operator"}),
}

_API = "/api/v1"

NEEDS: Mapping[tuple[str, str], Need] = MappingProxyType(
    {
        ("GET", "/healthz"): Need.NOTHING,
        ("GET", "/readyz"): Need.NOTHING,  # it names monitors only to those who may see them
        ("GET", "/metrics"): Need.NOTHING,  # it lets in viewers and operators of all monitors, and its own token
        ("GET", "/static/{version}/{name}"): Need.NOTHING,
        ("GET", f"{_API}/openapi.json"): Need.NOTHING,
        ("GET", "/sign-in"): Need.NOTHING,
        ("POST", "/sign-in"): Need.NOTHING,
        ("GET", "/oidc/start"): Need.NOTHING,
        ("GET", "/oidc/back"): Need.NOTHING,  # it believes the provider alone, and the browser that began
        ("POST", "/sign-out"): Need.NOTHING,  # it ends the session that comes with it, and needs its CSRF token
        ("GET", "/"): Need.SOMEBODY,  # annotators are sent on to /label
        ("GET", "/docs"): Need.SOMEBODY,
        ("GET", "/docs/{name}"): Need.SOMEBODY,
        ("GET", "/docs/{name}.svg"): Need.SOMEBODY,
        ("GET", "/label"): Need.SOMEBODY,
        ("GET", "/label/{monitor}"): Need.SOMEBODY,
        ("GET", "/monitors/{monitor}"): Need.WATCHES,
        ("GET", "/monitors/{monitor}/rounds"): Need.WATCHES,
        ("GET", "/monitors/{monitor}/rounds/{number}"): Need.WATCHES,
        ("POST", "/monitors/{monitor}/events/{event}"): Need.ACTS,
        ("GET", "/monitors/{monitor}/plan"): Need.WATCHES,
        ("GET", "/monitors/{monitor}/robustness"): Need.WATCHES,
        ("GET", "/monitors/{monitor}/robustness/{number}"): Need.WATCHES,
        ("GET", "/monitors/{monitor}/versions"): Need.WATCHES,
        ("GET", f"{_API}/me"): Need.SOMEBODY,
        ("GET", f"{_API}/monitors"): Need.SOMEBODY,
        ("GET", f"{_API}/monitors/{{monitor}}"): Need.SOMEBODY,
        ("GET", f"{_API}/monitors/{{monitor}}/classes/{{place}}/examples/{{number}}"): Need.SOMEBODY,
        ("GET", f"{_API}/tasks/{{key}}/pictures/{{field:path}}"): Need.SOMEBODY,
        ("POST", f"{_API}/monitors/{{monitor}}/take"): Need.LABELS,
        ("POST", f"{_API}/answers"): Need.LABELS,
        ("POST", f"{_API}/give-back"): Need.LABELS,
        ("GET", f"{_API}/monitors/{{monitor}}/said"): Need.LABELS,
        ("GET", f"{_API}/status"): Need.WATCHES,
        ("GET", f"{_API}/status/{{monitor}}"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/timeline"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/rounds"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/rounds/{{number}}"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/rounds/{{number}}/failures"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/versions"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/plan"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/configuration"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/robustness"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/robustness/{{number}}"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/robustness/{{number}}/answer"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/robustness/{{number}}/map"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/robustness/{{number}}/pictures/{{name}}"): Need.WATCHES,
        ("GET", f"{_API}/monitors/{{monitor}}/events"): Need.WATCHES,
        ("POST", f"{_API}/events/{{event}}/acknowledge"): Need.ACTS,
        ("POST", f"{_API}/events/{{event}}/replay"): Need.ACTS,
    }
)
"""By method and path. Whoever is limited to some monitors finds the others nowhere. What else there is to administer is
done by commands on a machine that has the configuration: there is no page for it."""

_GUARDS: Mapping[Callable[..., object], Need] = MappingProxyType(
    {
        of_pages.somebody: Need.SOMEBODY,
        of_pages.watcher: Need.WATCHES,
        of_pages.operator: Need.ACTS,
        of_api.somebody: Need.SOMEBODY,
        of_api.labeller: Need.LABELS,
        of_api.watcher: Need.WATCHES,
        of_api.operator: Need.ACTS,
    }
)


def require_stated(routes: Sequence[BaseRoute], needs: Mapping[tuple[str, str], Need] = NEEDS) -> None:
    """An error where an endpoint lets in others than its line says, or has none."""
    for method, path, need in guarded(routes):
        stated = needs.get((method, path))
        if stated is None:
            raise OpmonError(f"nobody said who may {method} {path}: add a line to opmon.web.access.NEEDS")
        if stated is not need:
            raise OpmonError(f"{method} {path} is to be for {stated}, but lets in {need}: see opmon.web.access.NEEDS")


def guarded(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str, Need]]:
    """Every method and path there is, and whom its guard lets in."""
    for path, methods, route in _flat(routes):
        calls = _calls(route.dependant) if isinstance(route, APIRoute) else ()
        needs = [_GUARDS[each] for each in calls if each in _GUARDS]
        for method in sorted(methods - {"HEAD"}):
            yield method, path, max(needs, key=list(Need).index, default=Need.NOTHING)


def _flat(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, set[str], BaseRoute]]:
    """All routes with those of the routers among them; a part whose routes cannot be told has any method."""
    for path, methods, route in _contexts(routes):
        yield (
            path or str(route),
            set(methods or ()) if isinstance(route, Route | APIRoute) else {"any method of"},
            route,
        )


def _contexts(routes: Sequence[BaseRoute]) -> Iterator[tuple[str | None, set[str] | None, BaseRoute]]:
    try:
        from fastapi.routing import iter_route_contexts
    except ImportError:  # older ones hold all routes themselves
        for each in routes:
            yield (each.path, each.methods, each) if isinstance(each, Route | APIRoute) else (None, None, each)
        return
    for found in iter_route_contexts(routes):
        yield found.path, found.methods, found.original_route


def _calls(dependant: Dependant) -> Iterator[Callable[..., object]]:
    if dependant.call is not None:
        yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)
