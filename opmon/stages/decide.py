"""From a final estimate to verdicts and events.

Rounds are judged in their order, whatever the order in which annotators label them: one whose labels are complete waits
for those before it that are still being labelled, until their deadline at the latest. A label that comes later makes a
revision of the estimate, and the rules look again (:mod:`chain`). Nothing is computed inside a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon import plugins
from opmon.adjudication import Asked
from opmon.config import RuleSettings
from opmon.decisions.case import Case
from opmon.errors import OpmonError
from opmon.quantities import Quantity
from opmon.stages import census
from opmon.stages.beside import frame_path
from opmon.stages.census import Whole
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.frames import read_frame
from opmon.stages.judge import Chains, conclusions, looks_back, read_chains, write_conclusions
from opmon.stages.measures import rows_of
from opmon.stages.rivals import rival_outcomes
from opmon.stages.slices import drawn_cuts
from opmon.stages.toolbox import Toolbox
from opmon.store import measured, revisions, rounds, verdicts, versions
from opmon.store.engine import Connection
from opmon.store.measured import Measured
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types import Estimate, Sample

log = logging.getLogger(__name__)

ROBUSTNESS_METRIC, ROBUSTNESS_QUERY = "robustness/aggregate", "robustness/query/"
ROBUSTNESS_TAG = "opmon.robustness"
"""The tag of a model version that may hold its aggregate robustness, where it was measured elsewhere; with a dot and
the name behind it, that of a saved query."""


@dataclass(frozen=True)
class Witness:
    """What rules may ask for and the database does not know."""

    rivals: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By rule: the outcomes of the draws under the version it compares with."""
    robustness: Mapping[str, float] = field(default_factory=dict)
    """By rule: the robustness it watches."""


def decide_round(work: Toolbox, round_: Round) -> bool:
    """Keep what every rule says of the newest revision, and the events that follow; false where nothing was said.

    That is where it was said before, where rounds before this one are waited for, and where answers have come in since
    the estimate was made: the round is estimated again first.
    """
    with work.store.read() as connection:
        revision = revisions.latest_estimate(connection, round_.id)
        if revision is None or verdicts.is_judged(connection, round_.id, revision.revision):
            return False
        awaited = versions.awaited(connection, round_, work.clock())
        answers = read_answers(connection, round_, payloads=False)
        case = _case(connection, round_, answers)
        chains = read_chains(work, connection, round_)
        history = _history(work, connection, round_, chains)
    if awaited and work.settings.rules:
        _tell_waiting(work, round_, awaited)
        return False
    if answers.labels_seen != revision.labels_seen:
        return False
    witness = _hear(work, round_, answers.tasks, answers.sample)
    whole = census.of_estimate(work, round_, revision.estimate)
    everything = None if whole is None or whole.sample is None else _of_all(work, round_, case, whole, whole.sample)

    def case_for(rule: RuleSettings) -> Case:
        known = history[rule.name]
        here = known.estimates[-1:] if known.numbers[-1:] == (round_.number,) else ()
        bets = rule.plugin.bets_on_ratio and bool(here)
        measure = work.settings.watched(rule.plugin.watches()).plugin if bets else None
        rival = witness.rivals.get(rule.name)
        rows, ground = None, case
        if everything is not None and rival is None:
            rows = whole.rows if whole is not None and measure is not None and not measure.needs_scores else None
            ground = everything if measure is None or rows is not None else case
        if measure is not None and rows is None:
            rows = rows_of(round_, answers.tasks, answers.sample.draw)
        return replace(
            ground,
            estimates=known.estimates if here else (),
            numbers=known.numbers if here else (),
            why="" if here else f"the {known.measure.title} is not known of round {round_.number}",
            measure=measure,
            rows=rows,
            rival=rival,
            robustness=witness.robustness.get(rule.name),
        )

    found = conclusions(work.settings.rules, chains, round_.number, case_for)
    if not found and round_.reported < revision.revision:
        return False  # there is no rule: the report closes the round
    with work.write() as connection:
        write_conclusions(work, connection, round_, revision.revision, found)
        reported = min(round_.reported, revision.revision - 1)  # what MLflow was told did not hold the verdicts
        rounds.update(connection, round_.id, reported=reported, problem=None)
    return True


def is_decided(work: Toolbox, connection: Connection, round_: Round, revision: Revision) -> bool:
    """Whether a round's newest revision waits for no verdict."""
    if revision.estimate.provisional or not work.settings.rules:
        return True
    return verdicts.is_judged(connection, round_.id, revision.revision)


def _tell_waiting(work: Toolbox, round_: Round, awaited: Sequence[Round]) -> None:
    """Say what the round waits for, once."""
    names = ", ".join(str(each.number) for each in awaited)
    last = max((each.deadline_at for each in awaited if each.deadline_at is not None), default=None)
    until = "" if last is None else f"; a run after {last:%Y-%m-%d %H:%M} UTC does not wait for them"
    plural = "s" if len(awaited) > 1 else ""
    text = f"it is judged after round{plural} {names}, for which labels are awaited{until}"
    if round_.problem != text:
        with work.write() as connection:
            rounds.update(connection, round_.id, problem=text)


def _hear(work: Toolbox, round_: Round, tasks: Sequence[Asked], sample: Sample) -> Witness:
    """Ask for what the configured rules need; what cannot be had leaves its rule without an answer."""
    rivals: dict[str, NDArray[np.float64]] = {}
    robustness: dict[str, float] = {}
    for settings in work.settings.rules:
        address, query = settings.plugin.rival_version(), settings.plugin.watched_robustness()
        try:
            if address is not None:
                found = rival_outcomes(work, round_, tasks, sample, address)
                if found is not None:
                    rivals[settings.name] = found
            if query is not None:
                known = _robustness(work, round_, query)
                if known is not None:
                    robustness[settings.name] = known
        except OpmonError as exc:
            log.warning("rule %s: %s", settings.name, exc)
    return Witness(rivals, robustness)


@dataclass(frozen=True)
class Known:
    """The estimates that a rule looks back on, with the numbers of their rounds."""

    measure: Quantity
    numbers: tuple[int, ...]
    estimates: tuple[Estimate, ...]


def _history(work: Toolbox, connection: Connection, round_: Round, chains: Chains) -> Mapping[str, Known]:
    """By rule: the last estimates of what it watches, as many as it looks back."""
    wanted = {rule.name: looks_back(rule, chains.of[rule.name]) for rule in work.settings.rules}
    known = {
        limit: revisions.finals_until(connection, work.name, round_.model, round_.number, limit)
        for limit in set(wanted.values())
    }
    settings = work.settings
    watched = {rule.name: settings.watched(rule.plugin.watches()).quantity(settings.unit) for rule in settings.rules}
    some = max(known.values(), key=len, default=[])
    aside = [each.key for each in some if any(not each.estimate.quantity.same(of) for of in watched.values())]
    beside = measured.read(connection, aside) if aside else {}
    return {name: _of(watched[name], known[limit], beside) for name, limit in wanted.items()}


def _of(of: Quantity, known: Sequence[Revision], beside: Mapping[int, Sequence[Measured]]) -> Known:
    """The estimates of one measure among these revisions, main or beside the main one."""
    found = []
    for each in known:
        others = (other.estimate for other in beside.get(each.key, ()))
        of_it = [one for one in (each.estimate, *others) if one is not None and one.quantity.same(of)]
        found += [(each.round_number, one) for one in of_it[:1]]
    return Known(of, tuple(number for number, _ in found), tuple(estimate for _, estimate in found))


def _case(connection: Connection, round_: Round, answers: Answers) -> Case:
    """All of the case but what each rule asks for."""
    by_position = {task.position: task for task in answers.tasks}
    drawn = [by_position[int(position)] for position in answers.sample.draw.positions]
    names = set(drawn[0].variables) if drawn else set()
    return Case(
        number=round_.number,
        estimates=(),
        sample=answers.sample,
        design=plugins.make("estimator", answers.sample.draw.design),
        elapsed=_elapsed(connection, round_),
        classes=np.array([task.prediction for task in drawn], dtype=np.str_),
        class_names=tuple(round_.classes or ()),
        variables={name: np.array([task.variables.get(name, np.nan) for task in drawn]) for name in names},
        cuts=drawn_cuts(round_.slicing, answers.sample.draw),
        asked=len(answers.tasks),
        answered=answers.returned,
        received=round_.received,
        scored=round_.received - (round_.unscorable or 0),
        drift=(round_.drift or {}).get("share"),
    )


def _of_all(work: Toolbox, round_: Round, case: Case, whole: Whole, sample: Sample) -> Case:
    """The case of a round of which every input has its truth: each was drawn once, and has an answer."""
    frame = read_frame(frame_path(work, round_))
    return replace(
        case,
        sample=sample,
        design=plugins.make("estimator", sample.draw.design),
        classes=np.array(whole.said.cast(pa.string()).to_pylist(), dtype=np.str_),
        variables={name: np.asarray(frame.variables[name], dtype=np.float64) for name in frame.variables},
        cuts=drawn_cuts(round_.slicing, sample.draw),
    )


def _elapsed(connection: Connection, round_: Round) -> timedelta:
    """The production time since the round before of this model version; of the first one, its own."""
    ends = round_.ends_at or round_.opened_at
    began = versions.last_end_before(connection, round_) or round_.starts_at or ends
    return max(ends - began, timedelta())


def _robustness(work: Toolbox, round_: Round, query: str) -> float | None:
    """What the model version's timeline tells last, of all tests or of a saved query; or else the version's tag."""
    metric = ROBUSTNESS_QUERY + query if query else ROBUSTNESS_METRIC
    tag = f"{ROBUSTNESS_TAG}.{query}" if query else ROBUSTNESS_TAG
    if round_.timeline_run_id is not None:
        history = work.registry.metric_history(round_.timeline_run_id, metric)
        if history:
            return history[-1][2]
    text = work.registry.version_tags(work.model(round_)).get(tag)
    try:
        return None if text is None else float(text)
    except ValueError:
        log.warning("the tag %s of %s is no number: %r", tag, round_.model_uri, text)
        return None
