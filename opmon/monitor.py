"""A monitor, and one cycle of it: the story of opmon on one page.

::

    production ─► open ─► score ─► draw ─► labels come in ─► estimate ─► decide ─► report ─► act
     inputs      (cursor) (frame)  (tasks)                   (interval)  (events)  (MLflow)  (outbox)

:meth:`Monitor.advance` moves every round as far as it can go. It may be called at any time, from several processes, and
after a kill at any point: the monitor's lease lets one process work, every change of a round is one transaction that
checks the lease, and whatever is made outside the database is found again before it is made.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, Unpack

from opmon.abc import Action, Registry
from opmon.config import MonitorSettings, Settings, load
from opmon.config.registry import registry_of
from opmon.decisions.comparison import Comparison
from opmon.decisions.measure_comparison import MeasureComparison
from opmon.errors import InputError
from opmon.jobs.model import Answering, Way
from opmon.logs.place import within
from opmon.private import close_to_others, private_folder
from opmon.queries.rounds import gathers
from opmon.stages import census
from opmon.stages.compare import compare
from opmon.stages.compare_measures import compare_measures
from opmon.stages.cycle import Cycle, attempt
from opmon.stages.decide import decide_round
from opmon.stages.draw import draw_round, publish_draw
from opmon.stages.erasing import Erased, prune
from opmon.stages.erasing_input import Forgotten, erase_input
from opmon.stages.estimate import estimate_round
from opmon.stages.expecting import tell_expected
from opmon.stages.judged_labels import label_by_judge
from opmon.stages.labelling import Desk, desk_of, pull_labels, push_tasks
from opmon.stages.open import open_round
from opmon.stages.reopen import Reopened, reopen_round
from opmon.stages.report import report_round
from opmon.stages.score import score_round
from opmon.stages.toolbox import Progress, Toolbox, silent
from opmon.stages.truth import judge_truths, pull_truths
from opmon.store import cycles, readiness, revisions, rounds, set_aside
from opmon.store.engine import Connection, Store, open_store
from opmon.store.leases import hold
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.triggers import delivery
from opmon.types import ModelVersion

MLFLOW_SECONDS = 90.0
"""How long a cycle waits for the registry in all: what is not told by then is told by the next cycle."""


class Options(TypedDict, total=False):
    """What a monitor may be given beside its settings."""

    clock: Callable[[], datetime]
    progress: Progress
    stopping: Callable[[], bool]


@dataclass
class Monitor:
    """A configured watch over one registered model."""

    settings: MonitorSettings
    store: Store
    registry: Registry
    folder: Path
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    progress: Progress = silent
    stopping: Callable[[], bool] = lambda: False
    """Asked between steps: true makes :meth:`advance` return early, with everything in order."""
    given_up: bool = False
    """Set where a cycle hangs for good: its lease is not renewed any more, and no further step is begun."""
    _scorers: dict[str, Answering] = field(default_factory=dict, repr=False)
    _ways: dict[tuple[ModelVersion, bool], Way[Answering]] = field(default_factory=dict, repr=False)
    _models: dict[str, ModelVersion] = field(default_factory=dict, repr=False)
    _timelines: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    _fresh: set[int] = field(default_factory=set, repr=False)
    _desk: Desk | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._desk = desk_of(self.settings)

    @classmethod
    def from_yaml(cls, path: Path | str | None = None, name: str | None = None) -> Monitor:
        """The monitor ``name`` of a configuration file, or its only one."""
        settings = load(None if path is None else Path(path))
        if name is None and len(settings.monitors) > 1:
            raise InputError(f"name one of the monitors of that file: {', '.join(settings.monitors)}")
        return cls.from_settings(settings, name or next(iter(settings.monitors)))

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        name: str,
        *,
        store: Store | None = None,
        registry: Registry | None = None,
        **options: Unpack[Options],
    ) -> Monitor:
        """The monitor ``name``; those of one process share the ``store`` and the ``registry`` where they are given."""
        close_to_others(settings.state)
        return cls(
            settings.monitor(name),
            store or open_store(settings.database.get_secret_value()),
            registry or registry_of(settings),
            settings.state,
            **options,
        )

    def advance(
        self,
        *,
        open_new: bool = True,
        seconds: float = math.inf,
        begin: Callable[[Connection], bool] | None = None,
    ) -> Cycle:
        """Move every round of this monitor as far as it can go; raises LeaseHeld where another process is at it.

        With ``open_new=False`` no new inputs are read: only what labels and deliveries allow is done. After
        ``seconds`` no further step is begun: the next call goes on. ``begin`` is asked first, under the lease, and
        nothing is done where it says no: another process has done what was due.
        """
        cycle = Cycle(until=time.monotonic() + seconds)
        with self._at_work() as work, self.registry.within(MLFLOW_SECONDS):
            if begin is not None:
                with work.write() as connection:
                    if not begin(connection):
                        return cycle
            self._do(work, cycle, open_new)
        if cycle.faults:
            raise cycle.faults[0]
        return cycle

    def _do(self, work: Toolbox, cycle: Cycle, open_new: bool) -> None:
        attempt(work, cycle, lambda: pull_labels(work, self._desk), stage="pulling labels")
        attempt(work, cycle, lambda: pull_truths(work), stage="reading truth")
        self._advance_rounds(work, cycle, known := self._rounds(work))
        numbers = {round_.number for round_ in known}  # a late label may have changed what is to be told of others
        self._advance_rounds(work, cycle, [round_ for round_ in self._rounds(work) if round_.number not in numbers])
        while (
            open_new
            and not self._ends(cycle)
            and (opened := attempt(work, cycle, lambda: open_round(work), stage="opening rounds"))
        ):
            cycle.opened += len(opened.new)
            self._fresh |= set(opened.new)
            touched = {*opened.new, *opened.grown}
            self._advance_rounds(work, cycle, [round_ for round_ in self._rounds(work) if round_.number in touched])
        attempt(work, cycle, lambda: push_tasks(work, self._desk), stage="handing out tasks")
        with work.store.read() as connection:
            cycle.waiting = rounds.waiting(connection, work.name)
        with within(monitor=work.name, stage="delivering events"):
            cycle.delivered, cycle.undelivered = delivery.deliver(
                work.lease, work.name, self.actions(), self.clock, lambda: self._ends(cycle)
            )
        if open_new:
            self._note(work, cycle)

    def compare(
        self, first: str, second: str, newest: int | None = None, alpha: float = 0.05, *, fresh: bool = False
    ) -> Comparison:
        """Which of two model versions is better, on the inputs that were labelled for this monitor.

        ``fresh``: only on rounds that were opened after both were registered.
        """
        one, two = self.registry.resolve(first), self.registry.resolve(second)
        with self._at_work() as work:
            return compare(work, one, two, newest, alpha, fresh)

    def compare_measures(
        self,
        first: str,
        second: str,
        measures: Sequence[str] = (),
        newest: int | None = None,
        alpha: float = 0.05,
        *,
        fresh: bool = False,
    ) -> tuple[MeasureComparison, ...]:
        """By how much measures of two model versions differ, on the same labelled inputs; the main one by default."""
        one, two = self.registry.resolve(first), self.registry.resolve(second)
        with self._at_work() as work:
            return compare_measures(work, one, two, measures, newest, alpha, fresh=fresh)

    def abandon(self, number: int, why: str) -> None:
        """Give up a round that cannot go on, such as one whose files are gone for good; its run ends as killed."""
        if not why.strip():
            raise InputError("say why the round is given up: it stays in the books")
        with hold(self.store, self.settings.name) as lease:
            with lease.write() as connection:
                round_ = rounds.get(connection, self.settings.name, number)
                rounds.abandon(connection, round_, why.strip(), self.clock())
            if round_.run_id is not None:
                self.registry.finish_run(round_.run_id, "KILLED")

    def reopen(self, number: int, without: Sequence[str] = ()) -> Reopened:
        """Give the inputs of a round that was given up to a new round, but for the files that ``without`` names."""
        with self._at_work() as work:
            return reopen_round(work, number, without)

    def retry_inputs(self, part: str) -> None:
        """Give back a part of the log that was set aside: the next cycle tries to read it again."""
        with hold(self.store, self.settings.name) as lease, lease.write() as connection:
            set_aside.retry(connection, self.settings.name, part)

    def give_up_inputs(self, part: str) -> None:
        """Give up a part of the log that was set aside: what is in it now is never read."""
        with hold(self.store, self.settings.name) as lease, lease.write() as connection:
            set_aside.forget(connection, self.settings.name, part)

    def prune(self, *, really: bool) -> Sequence[Erased]:
        """Remove what was kept long enough; or only say what would go."""
        with self._at_work() as work:
            return tuple(prune(work, really=really))

    def erase_input(self, input_id: str, *, really: bool) -> Forgotten:
        """Remove what an input held wherever opmon put it; or only say where it is."""
        with self._at_work() as work:
            return erase_input(work, self._desk, input_id, really=really)

    def has_work(self) -> bool:
        """Whether labels or due deliveries give something to do before the schedule says so; quick to ask."""
        with self.store.read() as connection:
            return self.settings.name in readiness.monitors_with_work(connection, self.clock())

    def _advance_rounds(self, work: Toolbox, cycle: Cycle, unfinished: Sequence[Round]) -> None:
        """The given rounds in order, each as far as it can go."""
        for round_ in unfinished:
            if self._ends(cycle):
                break
            reached = attempt(work, cycle, lambda: self._advance_round(work, round_, cycle), round_)  # noqa: B023
            cycle.closed += reached == "closed"

    def _rounds(self, work: Toolbox) -> list[Round]:
        """Every unfinished round, and those of whose inputs the last truths have come; in order."""
        with self.store.read() as connection:
            found = {round_.number: round_ for round_ in census.due(work, connection)}
            found |= {round_.number: round_ for round_ in rounds.unfinished(connection, work.name)}
        return [found[number] for number in sorted(found)]

    def _note(self, work: Toolbox, cycle: Cycle) -> None:
        """How the cycle ended: who watches the monitors wants to know which of them get nowhere."""
        failed = bool(cycle.problems or cycle.faults)
        end = cycles.End(
            self.clock(), not failed and not self._ends(cycle), failed, cycle.kept_out, time.monotonic() - cycle.began
        )
        with work.write() as connection:
            cycles.record(connection, work.name, end)

    def _ends(self, cycle: Cycle) -> bool:
        """Whether the cycle begins nothing further."""
        return self.stopping() or self.given_up or cycle.is_over

    def _advance_round(self, work: Toolbox, round_: Round, cycle: Cycle) -> str:
        """One step after another until the round is closed or waits for people."""
        while not self._ends(cycle):
            match round_.state:
                case RoundState.OPENED:
                    if self._gathers(round_):
                        return round_.state
                    with within(stage="scoring"):
                        score_round(work, round_)
                case RoundState.SCORED:
                    with within(stage="drawing"):
                        judge_truths(work, round_)
                        draw_round(work, round_)
                case RoundState.DRAWN:
                    with within(stage="publishing the draw"):
                        tell_expected(work, round_)
                        publish_draw(work, round_)
                case RoundState.LABELLING | RoundState.ESTIMATED | RoundState.CLOSED:
                    with within(stage="estimating"):
                        label_by_judge(work, round_)
                        new = estimate_round(work, round_)
                    round_ = self._again(round_)
                    with within(stage="deciding"):
                        judged = round_.state == RoundState.ESTIMATED and decide_round(work, round_)
                    round_ = self._again(round_) if judged else round_
                    with within(stage="reporting"):
                        told = self._owes_report(round_) and report_round(work, round_)
                    if not new and not judged and not told:
                        return round_.state
            round_ = self._again(round_)
        return round_.state

    def _gathers(self, round_: Round) -> bool:
        with self.store.read() as connection:
            return gathers(connection, round_, self.settings.watch, self.clock())

    def _again(self, round_: Round) -> Round:
        with self.store.read() as connection:
            return rounds.get(connection, round_.monitor, round_.number)

    def _owes_report(self, round_: Round) -> bool:
        with self.store.read() as connection:
            latest = revisions.latest_estimate(connection, round_.id)
        return latest is not None and latest.revision > round_.reported

    @contextmanager
    def _at_work(self) -> Iterator[Toolbox]:
        with hold(self.store, self.settings.name, lambda: not self.given_up) as lease:
            if lease.left_by is not None:
                with lease.write() as connection:
                    cycles.cut_short(connection, self.settings.name, self.clock(), lease.left_by)
            with suppress(OSError):  # whoever writes there says what is wrong with it
                private_folder(self.folder)
            yield Toolbox(
                name=self.settings.name,
                settings=self.settings,
                store=self.store,
                lease=lease,
                registry=self.registry,
                source=self.settings.reads,
                looks=self.settings.reads.for_cycle(),
                folder=self.folder,
                clock=self.clock,
                progress=self.progress,
                executor=self.settings.executor.plugin,
                scorers=self._scorers,
                ways=self._ways,
                models=self._models,
                timelines=self._timelines,
                fresh=self._fresh,
            )

    def actions(self) -> dict[str, Action]:
        """The configured actions by name, given the registry where they ask for it."""
        return {action.name: action.plugin.bind(self.registry) for action in self.settings.actions}
