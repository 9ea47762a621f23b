"""A round with its newest estimate, what the rules said of it, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from opmon.failure_words import FAILURE_WORDS, FailureKind, FailureWords, failure_kind
from opmon.queries.drifting import round_drift
from opmon.queries.expected import ExpectedView
from opmon.queries.standing import as_told
from opmon.queries.watch import Watch
from opmon.store import grouped, revisions, sliced, truths, verdicts
from opmon.store.corrections import Corrected
from opmon.store.engine import Connection
from opmon.store.measured import Measured
from opmon.store.revisions import Revision
from opmon.store.rounds import NEVER, Round
from opmon.store.slices import arrived
from opmon.store.states import RoundState
from opmon.store.truths import Lags
from opmon.types import Estimate, Verdict, VerdictState
from opmon.types.drifting import RoundDrift
from opmon.types.expected import unexpected
from opmon.types.grouped import FailureGroup
from opmon.types.slicing import Sliced

Wait = Literal["labels", "truth", "inputs", "rounds", "run"]


@dataclass(frozen=True)
class VerdictView:
    """The verdict of a rule on a round."""

    rule: str
    state: VerdictState
    advice: bool
    """Whether it stands for no alarm, whatever it says."""
    message: str


@dataclass(frozen=True)
class RoundView:
    """A round with its newest estimate and what the rules said of it."""

    number: int
    state: RoundState
    model: str
    """The address of the model version."""
    opened_at: datetime
    ends_at: datetime | None
    received: int
    inputs: int | None
    unscorable: int | None
    duplicates: int | None
    losses: Mapping[str, Mapping[str, int]]
    """What is left out of it: for each kind (filtered, unlogged, unscorable, late) the reasons, and how many."""
    skew: float | None
    drift_share: float | None
    asked: int
    """Its tasks: how many labels it asks for."""
    spoken: int
    """Those of its tasks with a label or a skip."""
    due_at: datetime | None
    """When it stops waiting for them, at the latest."""
    estimate: Estimate | None
    failures: int | None
    """None for a regression without a tolerance, which has errors and no failures."""
    verdicts: tuple[VerdictView, ...]
    run_id: str | None
    problem: str | None
    waits_for: Wait | None
    """What it waits for: "labels", "truth" as long as annotators are not asked, or "run" where it has them all; None:
    nothing.

    One that gathers the inputs of its model version waits for more "inputs"; one whose turn to be judged has not come
    waits for the "rounds" before it. A round stays in the state ``labelling`` until a run has seen its labels.
    """
    asks_at: datetime | None = None
    """From when on annotators are asked; None: at once, or never."""
    truth: Lags | None = None
    """How soon the truth of its drawn inputs came by itself; None where none has."""
    corrected: Corrected | None = None
    """The estimate corrected for annotators who err; None where no answer is there to check another."""
    measures: tuple[Measured, ...] = ()
    """What was measured beside the estimate, from the same labels."""
    slices: tuple[Sliced, ...] = ()
    """What is known of its slices, those first that are worse than all other inputs."""
    failure_kind: FailureKind = "wrong"
    """What its failures are, such as its largest errors."""
    failure_groups: tuple[FailureGroup, ...] = ()
    """What its failures have in common, the largest group first."""
    expected: ExpectedView | None = None
    """What was told of it when it was scored, before any label; None where nothing was."""
    not_expected: str = ""
    """Why nothing was told; empty where something was, or nobody wants to know."""
    labels_pruned_at: datetime | None = None
    """When its tasks and labels were pruned: what was found out from them stays, and changes no more."""
    drift: RoundDrift | None = None
    """What drifted in it, and whether with loss; told of single rounds, and None among many."""

    @property
    def failure_words(self) -> FailureWords:
        """How pages speak of its failures."""
        return FAILURE_WORDS[self.failure_kind]


def round_views(
    connection: Connection, some: Sequence[tuple[Watch, Sequence[Round]]], now: datetime
) -> list[list[RoundView]]:
    """These rounds of each of these monitors, as they are shown."""
    ids = [round_.id for _, own in some for round_ in own]
    divided = [round_ for _, own in some for round_ in own if round_.sliced is not None]
    estimated, judged = revisions.latest_of(connection, ids), verdicts.latest_of(connection, ids)
    parts = sliced.of(connection, [estimated[round_.id].key for round_ in divided if round_.id in estimated])
    groups = grouped.of(connection, [revision.key for revision in estimated.values() if revision.failures])
    lags = truths.lags_of(connection, [round_.id for watch, own in some if watch.truth for round_ in own])

    def view(watch: Watch, round_: Round) -> RoundView:
        said = as_told(watch.advising_rules, judged.get(round_.id, ()))
        waits = _waits(round_, gathers(connection, round_, watch, now), now)
        revision = estimated.get(round_.id)
        view = _view(round_, revision, said, waits, lags.get(round_.id))
        return (
            view
            if revision is None
            else replace(view, slices=parts.get(revision.key, ()), failure_groups=groups.get(revision.key, ()))
        )

    return [[view(watch, round_) for round_ in own] for watch, own in some]


def round_view(connection: Connection, watch: Watch, round_: Round, now: datetime) -> RoundView:
    """One round as it is shown, with what its drift came with."""
    view = round_views(connection, [(watch, [round_])], now)[0][0]
    return replace(view, drift=round_drift(connection, round_, revisions.latest_estimate(connection, round_.id)))


def gathers(connection: Connection, round_: Round, watch: Watch, now: datetime) -> bool:
    """Whether the round of a version waits for more inputs of that version before it is scored."""
    if round_.state != RoundState.OPENED or round_.only_version is None or round_.received >= watch.min_inputs:
        return False
    since = min(arrived(connection, round_.id) or round_.opened_at, round_.opened_at)
    return now.astimezone(UTC) - since < watch.max_age


def _waits(round_: Round, gathering: bool, now: datetime) -> Wait | None:
    if round_.state.is_over:
        return None
    if round_.state == RoundState.ESTIMATED and not round_.ready:
        return "rounds"
    if round_.state == RoundState.LABELLING and round_.spoken < round_.asked:
        return "truth" if round_.asks_at is not None and round_.asks_at > now else "labels"
    return "inputs" if gathering else "run"


def _view(
    round_: Round, revision: Revision | None, said: Sequence[Verdict], waits: Wait | None, lags: Lags | None
) -> RoundView:
    counts_failures = round_.plan.usual_quantity.share or round_.plan.tolerance is not None
    return RoundView(
        number=round_.number,
        state=round_.state,
        model=round_.model_uri,
        opened_at=round_.opened_at,
        ends_at=round_.ends_at,
        received=round_.received,
        inputs=round_.inputs,
        unscorable=round_.unscorable,
        duplicates=round_.duplicates,
        losses=round_.losses or {},
        skew=round_.skew,
        drift_share=(round_.drift or {}).get("share"),
        asked=round_.asked,
        spoken=round_.spoken,
        due_at=round_.deadline_at,
        estimate=None if revision is None else revision.estimate,
        failures=revision.failures if revision is not None and counts_failures else None,
        failure_kind=failure_kind(round_.plan.problem, round_.plan.tolerance, round_.plan.scale),
        verdicts=tuple(VerdictView(each.rule, each.state, each.word == "advice", each.message) for each in said),
        run_id=round_.run_id,
        problem=round_.problem,
        waits_for=waits,
        asks_at=None if round_.asks_at == NEVER else round_.asks_at,
        truth=lags,
        corrected=None if revision is None else revision.corrected,
        measures=() if revision is None else revision.further,
        expected=ExpectedView.of(round_),
        not_expected=unexpected(round_.expected),
        labels_pruned_at=round_.labels_pruned_at,
    )
