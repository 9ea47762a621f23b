"""Give the inputs of a round that was given up to a new round: the good ones need not go with the bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from opmon.errors import InputError
from opmon.stages.counting import count_inputs
from opmon.stages.toolbox import Toolbox, plan_of
from opmon.store import rounds
from opmon.store.rounds import Round
from opmon.store.slices import slices_of
from opmon.store.states import RoundState
from opmon.types import Slice

_OF_ALL = ("current_version",)
_OF_ONE_VERSION = ("version_column", "versions", "budget", "whole_budget", "earned")
"""What a new round keeps of the old one's plan."""


@dataclass(frozen=True)
class Reopened:
    """The round that was opened, with how many inputs, and the parts of the log that stay with the old one."""

    number: int
    received: int
    left_out: tuple[str, ...]


def reopen_round(work: Toolbox, number: int, without: Sequence[str]) -> Reopened:
    """Open a round with the inputs of a round that was given up, except the files that ``without`` names.

    It is of the same model version, and read, drawn and judged as the configuration now says.
    """
    with work.store.read() as connection:
        old = rounds.get(connection, work.name, number)
        slices = slices_of(connection, old.id)
    _require_given_up(old, slices)
    left_out = tuple(piece.part for piece in slices if any(_fits(piece.part, pattern) for pattern in without))
    unknown = [pattern for pattern in without if not any(_fits(part, pattern) for part in left_out)]
    if unknown:
        raise InputError(f"no file of round {number} is called {unknown[0]!r}; it has: {_some(slices)}")
    kept = [piece for piece in slices if piece.part not in set(left_out)]
    received, thinning = _received(work, old, kept, left_out)
    if not received:
        raise InputError(f"nothing is left of round {number} without {', '.join(map(repr, without))}")
    own = _OF_ALL if old.only_version is None else (*_OF_ALL, *_OF_ONE_VERSION)
    with work.write() as connection:
        new = rounds.add(
            connection,
            work.name,
            [],
            received=received,
            only_version=old.only_version,
            model_name=old.model_name,
            model_version=old.model_version,
            plan=replace(plan_of(work.settings), thinning=thinning, **{key: vars(old.plan)[key] for key in own}),
            opened_at=work.clock(),
        )
        rounds.hand_over(connection, old, new, [piece.part for piece in kept])
    return Reopened(new, received, left_out)


def _require_given_up(old: Round, slices: Sequence[Slice]) -> None:
    if old.state != RoundState.ABANDONED:
        raise InputError(
            f"round {old.number} of {old.monitor} is {old.state}; give it up first: opmon rounds abandon {old.number} "
            "--why '…'"
        )
    if not slices:
        raise InputError(f"round {old.number} of {old.monitor} has no inputs any more ({old.problem})")


def _received(
    work: Toolbox, old: Round, kept: Sequence[Slice], left_out: Sequence[str]
) -> tuple[int, Mapping[str, str | float] | None]:
    """How many inputs a new round has, and how they are made even."""
    settings = work.settings
    if not left_out and settings.inputs.where == old.plan.where:
        return old.received, old.plan.thinning
    name, meant = old.plan.version_column, old.plan.versions
    if old.only_version is None or name is None or meant is None:
        counted = count_inputs(work.source, kept, settings.where, None, settings.inclusion)
        inputs = counted.inputs
    else:
        counted = count_inputs(work.source, kept, settings.where, name, settings.inclusion)
        inputs = sum(count for text, count in counted.said.items() if meant.get(text, text) == old.only_version)
    return inputs, None if counted.thinning is None else counted.thinning.stored()


def _fits(part: str, pattern: str) -> bool:
    """Whether a file is meant: by its path in the source, or by its name alone; either may be a glob."""
    return fnmatchcase(part, pattern) or fnmatchcase(part.rsplit("/", 1)[-1], pattern)


def _some(slices: Sequence[Slice]) -> str:
    parts = [piece.part for piece in slices]
    return ", ".join(parts[:6]) + (f", … ({len(parts)})" if len(parts) > 6 else "")
