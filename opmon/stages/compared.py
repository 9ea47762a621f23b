"""The rounds in which two versions can be asked about the same labelled inputs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from opmon.errors import InputError, NotFoundError, SourceError
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions, rounds
from opmon.store.rounds import Round
from opmon.types import ModelVersion

log = logging.getLogger(__name__)

T = TypeVar("T")


def require_two(first: ModelVersion, second: ModelVersion) -> None:
    """An error where both are one version, which would be compared with its own answers."""
    if first.uri == second.uri:
        raise InputError(f"both are {first.uri}: name two versions that differ")


def asked_of_both(
    work: Toolbox,
    first: ModelVersion,
    second: ModelVersion,
    newest: int | None,
    ask: Callable[[Round, Round], T],
    *,
    fresh: bool,
) -> tuple[list[T], int]:
    """What ``ask`` gives for each of the ``newest`` labelled rounds, oldest first, and how many were opened too early.

    ``ask`` is given the round and the newest of all; one that it cannot ask about is left out with its reason. Too
    early is before both versions were registered: one may have learned from its labels. ``fresh`` leaves these out.
    """
    registered = max(work.registry.registered_at(model) for model in (first, second))
    with work.store.read() as connection:
        known = revisions.latest_estimates(connection, work.name)
        judged = [revision.round_number for revision in known if not revision.estimate.provisional]
        chosen = [rounds.get(connection, work.name, number) for number in judged[-newest if newest else None :]]
    if fresh:
        chosen = [round_ for round_ in chosen if round_.opened_at > registered]
    found: list[T] = []
    before, why = 0, ""
    for number, round_ in enumerate(chosen):
        work.progress(f"comparing {first.uri} with {second.uri}", number, len(chosen))
        try:
            found.append(ask(round_, chosen[-1]))
        except (SourceError, NotFoundError, InputError) as exc:
            log.warning("round %d is left out: %s", round_.number, exc)
            why = f". Of round {round_.number}: {exc}"
        else:
            before += round_.opened_at <= registered
    if not found:
        since = f" since {registered:%Y-%m-%d %H:%M} UTC, when the later version was registered," if fresh else ""
        raise InputError(
            f"monitor {work.name!r} has no round{since} with labels on which both can be asked; label a round "
            f"first{why}"
        )
    return found, before
