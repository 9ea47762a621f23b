"""Open a round when enough has come in, or has waited long enough. This moves the cursor.

Where the log names model versions, each has rounds of its own, and ``min_inputs`` and ``max_age`` hold for each: a
canary's few inputs gather in one round until they are enough to be judged. Together the versions ask for one budget:
each for so many of the labels as its inputs are of all that came, or with ``canary: whole`` for all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TypedDict

from opmon.errors import NotFoundError
from opmon.queries.rounds import gathers
from opmon.stages import losses
from opmon.stages.counting import Counted, count_inputs
from opmon.stages.losses import Losses
from opmon.stages.passing import pass_over, set_flaws_aside
from opmon.stages.toolbox import Toolbox, plan_of
from opmon.stages.versions import versions_meant
from opmon.store import positions, rounds, waits
from opmon.store.engine import Connection
from opmon.store.plans import RoundPlan
from opmon.store.rounds import Round
from opmon.types import ModelVersion, Slice

FEWEST_LABELS = 10
"""What a round of a version asks for at least, however few its inputs."""


@dataclass(frozen=True)
class Opened:
    """The numbers of the rounds that inputs went to: new ones, and such as waited for more."""

    new: tuple[int, ...] = ()
    grown: tuple[int, ...] = ()


def open_round(work: Toolbox) -> Opened | None:
    """Open the next round, or one for each model version that answered; None where there is nothing to open yet."""
    if _is_full(work):
        return None
    slices = work.looks.pending(set_flaws_aside(work, _stands(work)), work.settings.round.max_inputs)
    if not slices:
        _forget_wait(work)
        return None
    where, column = work.settings.where, work.settings.columns.model_version
    if (
        where is None
        and work.settings.inclusion is None
        and not _is_ripe(work, slices, sum(piece.rows for piece in slices))
    ):
        return None  # nothing need be read to know it
    counted = count_inputs(work.source, slices, where, column, work.settings.inclusion)
    if not _is_ripe(work, slices, counted.inputs) and counted.rows < work.settings.round.max_inputs:
        return None
    if not counted.inputs:
        pass_over(work, slices)
        return Opened()
    model = work.current()
    if column is None:
        return _open_one(work, slices, model, counted)
    received, meant = _versions(work, column, counted, model)
    _require_layer(work, model, received)
    return _open_each(work, slices, model, counted, received, meant)


def _is_full(work: Toolbox) -> bool:
    """Whether annotators have as much to do as they should: what comes meanwhile goes into one round together."""
    most = work.settings.labels.max_open
    if most is None:
        return False
    with work.store.read() as connection:
        unfinished = rounds.unfinished_of(connection, [work.name], work.clock()).get(work.name, [])
    return sum(each.open for each in unfinished) >= most


def _stands(work: Toolbox) -> Mapping[str, str]:
    """Where the monitor stands in the log: where its rounds stopped, or where the source says that it begins."""
    with work.store.read() as connection:
        stands = positions.read(connection, work.name)
    if stands:
        return stands
    begins = work.source.begins()
    if begins:
        with work.write() as connection:
            positions.move(connection, work.name, begins)
    return begins


def _open_one(work: Toolbox, slices: Sequence[Slice], model: ModelVersion, counted: Counted) -> Opened:
    _require_layer(work, model, [model.version])
    plan = replace(plan_of(work.settings), current_version=model.version, thinning=_thinning(counted))
    lost = losses.opened(work.source, slices, counted)
    with work.write() as connection:
        waits.end(connection, work.name)
        number = _add(work, connection, slices, model.name, model.version, None, counted.inputs, plan, lost)
        return Opened(new=(number,))


def _open_each(
    work: Toolbox,
    slices: Sequence[Slice],
    model: ModelVersion,
    counted: Counted,
    received: Mapping[str, int],
    meant: Mapping[str, str],
) -> Opened:
    new, grown = [], []
    plan = replace(
        plan_of(work.settings), current_version=model.version, versions=dict(meant), thinning=_thinning(counted)
    )
    of_log, bears = losses.opened(work.source, slices, counted), max(received, key=received.__getitem__)
    with work.write() as connection:
        waits.end(connection, work.name)
        waiting = _waiting(work, connection, plan)
        for version, count in received.items():
            round_ = waiting.get((model.name, version))
            share = count / sum(received.values())
            lost = of_log if version == bears else {}  # nobody knows of which version they would have been
            if round_ is None:
                own = replace(plan, **_budget(work, plan.budget, plan.budget * share))
                new.append(_add(work, connection, slices, model.name, version, version, count, own, lost))
                continue
            before = round_.plan
            whole = before.budget if before.whole_budget is None else before.whole_budget
            grown_budget = _budget(work, whole, (before.earned or 0.0) + whole * share)
            both = replace(before, versions={**(before.versions or {}), **meant}, **grown_budget)
            rounds.extend(
                connection, round_, slices, received=count, plan=both, losses=losses.added(round_.losses, lost)
            )
            grown.append(round_.number)
    return Opened(tuple(new), tuple(grown))


def _thinning(counted: Counted) -> Mapping[str, str | float] | None:
    return None if counted.thinning is None else counted.thinning.stored()


def _waiting(work: Toolbox, connection: Connection, plan: RoundPlan) -> dict[tuple[str, str], Round]:
    """By model version, the rounds that wait for more inputs, and read the log as ``plan`` does."""
    found = {}
    for round_ in rounds.unfinished(connection, work.name):
        if gathers(connection, round_, work.settings.watch, work.clock()) and _read_alike(round_.plan, plan):
            found[round_.model] = round_
    return found


def _read_alike(one: RoundPlan, other: RoundPlan) -> bool:
    """Whether two plans take the same rows for inputs, and the versions from the same column, and mean the same by
    what it says."""
    first, second = one.versions, other.versions or {}
    rows_alike = one.where == other.where and one.thinning == other.thinning
    if not first or not rows_alike or one.version_column != other.version_column:
        return False
    return all(second[text] == version for text, version in first.items() if text in second)


class Budget(TypedDict):
    """The part of a round's plan that follows from how many inputs it has."""

    budget: int
    whole_budget: int
    earned: float


def _budget(work: Toolbox, whole: int, earned: float) -> Budget:
    """How many labels a version's round asks for: its inputs' share of the budget of each time some of them came."""
    shared = min(whole, max(math.ceil(round(earned, 6)), FEWEST_LABELS))
    budget = shared if work.settings.round.canary == "share" else whole
    return {"budget": budget, "whole_budget": whole, "earned": earned}


def _add(
    work: Toolbox,
    connection: Connection,
    slices: Sequence[Slice],
    model: str,
    version: str,
    only_version: str | None,
    received: int,
    plan: RoundPlan,
    lost: Losses,
) -> int:
    return rounds.add(
        connection,
        work.name,
        slices,
        received=received,
        losses=dict(lost) or None,
        only_version=only_version,
        model_name=model,
        model_version=version,
        plan=plan,
        opened_at=work.clock(),
    )


def _require_layer(work: Toolbox, model: ModelVersion, versions: Iterable[str]) -> None:
    """A sampler that looks at a hidden layer needs a model that has one: else no round is opened and no input lost."""
    if work.settings.sampler.plugin.activation_levels is None:
        return
    for version in versions:
        try:
            found = model if version == model.version else work.registry.resolve(f"models:/{model.name}/{version}")
        except NotFoundError:
            continue  # its round waits until the registry knows it
        work.scorer_of(found, traced=True)


def _forget_wait(work: Toolbox) -> None:
    """What waited is gone from the log: what comes next has not waited as long."""
    with work.store.read() as connection:
        is_waiting = waits.is_waiting(connection, work.name)
    if is_waiting:
        with work.write() as connection:
            waits.end(connection, work.name)


def _is_ripe(work: Toolbox, slices: Sequence[Slice], inputs: int) -> bool:
    limits = work.settings.round
    if inputs >= limits.min_inputs:
        return True
    oldest = min(work.clock(), *(piece.arrived_at for piece in slices))  # the log's clock may be ahead
    with work.write() as connection:
        since = waits.since(connection, work.name, oldest)
    return work.clock().astimezone(UTC) - since >= limits.max_age


def _versions(
    work: Toolbox, column: str, counted: Counted, model: ModelVersion
) -> tuple[dict[str, int], dict[str, str]]:
    """How many inputs each model version answered, and what is meant by what the log says of them."""
    meant = versions_meant(counted.said, column, model, work.registry)
    counts: Counter[str] = Counter()
    for text, count in counted.said.items():
        counts[meant[text]] += count
    if counted.unreadable:  # nobody knows which version answered them: the round that gets most inputs bears them
        counts[max(counts, key=counts.__getitem__, default=model.version)] += counted.unreadable
    return dict(sorted(counts.items())), meant
