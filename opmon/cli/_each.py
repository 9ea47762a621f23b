"""One monitor after another: what keeps it from being done for one keeps it from none of the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from opmon.cli import DONE, exit_code
from opmon.cli.common import print_json
from opmon.errors import LeaseHeld, OpmonError

if TYPE_CHECKING:
    from opmon.config import Settings
    from opmon.monitor import Monitor

HELD_SECONDS = 15.0
"""For so long, in all, monitors are waited for that another process is working on: a cycle often ends sooner."""
_PAUSE = 0.5


def for_each(settings: Settings, names: Sequence[str], do: Callable[[Monitor], None]) -> Mapping[str, OpmonError]:
    """Do it for each monitor; gives why it was not done, of those where it was not."""
    from opmon.config.registry import registry_of
    from opmon.monitor import Monitor

    registry = registry_of(settings)  # one for all: it is known of one that does not answer
    make = partial(Monitor.from_settings, settings, registry=registry)
    kept, until = _tried(make, names, do), time.monotonic() + HELD_SECONDS
    while (held := [name for name in kept if isinstance(kept[name], LeaseHeld)]) and time.monotonic() < until:
        time.sleep(_PAUSE)
        again = _tried(make, held, do)
        kept = {name: again.get(name, kept[name]) for name in kept if name not in held or name in again}
    return kept


def told(kept: Mapping[str, OpmonError], what: str, as_json: bool) -> int:
    """Say of which monitors it was not done, and why; gives the exit code."""
    for name, exc in kept.items():
        if as_json:
            print_json({"monitor": name, "problem": str(exc)})
        else:
            click.echo(f"{name}: {what}: {exc}", err=True)
    return max(map(exit_code, kept.values()), default=DONE)


def _tried(
    make: Callable[[str], Monitor], names: Sequence[str], do: Callable[[Monitor], None]
) -> dict[str, OpmonError]:
    kept = {}
    for name in names:
        try:
            do(make(name))
        except OpmonError as exc:
            kept[name] = exc
    return kept
