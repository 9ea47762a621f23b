"""What people may do whom a proxy or a provider of identities knows, by their groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request

from opmon.config.identity import GroupRole, IdentitySettings, RolesOfGroups
from opmon.errors import InputError
from opmon.web.refused import Refused
from opmon.web.secrets import usable_name
from opmon.web.sent import meant

_MOST_TO_LEAST = ("operator", "viewer", "annotator")


@dataclass(frozen=True)
class Standing:
    """A role, and the monitors it is for; None: all of them."""

    role: str
    monitors: tuple[str, ...] | None


def told_by(proxies: IdentitySettings, request: Request) -> tuple[str, list[str]]:
    """The name and the groups of whoever asks, as the headers of a proxy say; a refusal where no proxy says it."""
    peer = request.client.host if request.client else ""
    if not proxies.trusts(peer):
        words = f"{peer} may not say in the header {proxies.header} who asks: it is none of web: identity: trusted"
        raise Refused(403, words)
    given = request.headers.getlist(proxies.header)
    if len(given) != 1:
        raise Refused(403, f"the header {proxies.header} came {len(given)} times: the proxy must set it once")
    try:
        name = usable_name(meant(given[0]))
    except InputError as exc:
        raise Refused(403, f"the header {proxies.header} holds no name: {exc}") from exc
    lines = [] if proxies.groups is None else request.headers.getlist(proxies.groups)
    return name, [meant(each).strip() for line in lines for each in line.split(",")]


def standing_of(settings: RolesOfGroups, groups: Sequence[str]) -> Standing | None:
    """What somebody of these groups may do; None: nothing.

    Of several roles it is the one that may do the most, over all monitors that any group with that role has.
    """
    own = [settings.roles[group] for group in groups if group in settings.roles]
    for role in _MOST_TO_LEAST:
        those = [each for each in own if each.role == role]
        if those:
            return Standing(role, _all_of(those))
    return None if settings.role is None else Standing(settings.role, None)


def _all_of(some: Sequence[GroupRole]) -> tuple[str, ...] | None:
    found: list[str] = []
    for each in some:
        if each.monitors is None:
            return None
        found += each.monitors
    return tuple(dict.fromkeys(found))
