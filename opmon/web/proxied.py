"""What people may do whom a proxy lets in, by their groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opmon.config.identity import GroupRole, IdentitySettings

_MOST_TO_LEAST = ("operator", "viewer", "annotator")


@dataclass(frozen=True)
class Standing:
    """A role, and the monitors it is for; None: all of them."""

    role: str
    monitors: tuple[str, ...] | None


def standing_of(settings: IdentitySettings, groups: Sequence[str]) -> Standing | None:
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
