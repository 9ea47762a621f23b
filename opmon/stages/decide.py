"""From a final estimate to verdicts and events, in the transaction that saves the estimate.

A round is judged once, when its estimate becomes final. A rule's evidence is kept in its verdict's details and handed
back with the next round of the model version. A label that comes later makes a revision of the estimate: rules on
estimates look again, sequential ones repeat what they said, and nobody is woken up for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from opmon import plugins
from opmon.decisions.case import Case
from opmon.errors import OpmonError
from opmon.stages.judge import judge, raise_event
from opmon.stages.rivals import rival_outcomes
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions, rounds, verdicts
from opmon.store.engine import Connection
from opmon.store.queue import Answered
from opmon.store.rounds import Round
from opmon.types import Estimate, Sample

log = logging.getLogger(__name__)

ROBUSTNESS_METRIC, ROBUSTNESS_QUERY = "robustness/aggregate", "robustness/query/"
ROBUSTNESS_TAG = "opmon.robustness"
"""The tag of a model version that may hold its aggregate robustness, where it was measured elsewhere; with a dot and
the name behind it, that of a saved query."""


@dataclass(frozen=True)
class Witness:
    """What rules may ask for and the database does not know: gathered before the transaction."""

    rivals: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """By rule: the outcomes of the draws under the version it compares with."""
    robustness: Mapping[str, float] = field(default_factory=dict)
    """By rule: the robustness it watches."""


def hear(work: Toolbox, round_: Round, tasks: Sequence[Answered], sample: Sample) -> Witness:
    """Ask for what the configured rules need; what cannot be had leaves its rule without an answer."""
    rivals: dict[str, NDArray[np.float64]] = {}
    robustness: dict[str, float] = {}
    for rule in work.settings.rules:
        address = getattr(rule.plugin, "rival", None)
        try:
            if address is not None:
                found = rival_outcomes(work, round_, tasks, sample, str(address))
                if found is not None:
                    rivals[rule.name] = found
            elif rule.type == "robustness_level":
                known = _robustness(work, round_, rule.plugin.query)
                if known is not None:
                    robustness[rule.name] = known
        except OpmonError as exc:
            log.warning("rule %s: %s", rule.name, exc)
    return Witness(rivals, robustness)


def decide(
    work: Toolbox,
    connection: Connection,
    round_: Round,
    tasks: Sequence[Answered],
    sample: Sample,
    estimate: Estimate,
    revision: int,
    witness: Witness,
) -> None:
    """Keep what every rule says of the round, and the events that follow."""
    found = []
    case = _case(work, connection, round_, tasks, sample)
    for rule in work.settings.rules:
        judged = verdicts.of_round(connection, round_.id, rule.name)
        if judged is not None and hasattr(rule.plugin, "judge") and not hasattr(rule.plugin, "decide"):
            found.append(replace(judged, message=f"{judged.message.removesuffix(_LATE)}{_LATE}"))
            continue
        before = verdicts.newest(connection, work.name, round_.model, rule.name)
        heard = replace(case, robustness=witness.robustness.get(rule.name))
        verdict = judge(rule, heard, before.details if before else {}, witness.rivals.get(rule.name))
        found.append(verdict)
        if judged is None:
            raise_event(work, connection, round_, rule, verdict, estimate)
    verdicts.add_verdicts(connection, round_.id, revision, found)


_LATE = " (labels came late: they correct the estimate, not the evidence)"


def _case(
    work: Toolbox,
    connection: Connection,
    round_: Round,
    tasks: Sequence[Answered],
    sample: Sample,
) -> Case:
    found = revisions.latest_estimates(connection, work.name, model=round_.model)
    history = [r for r in found if r.round_number <= round_.number and not r.estimate.provisional]
    by_position = {task.position: task for task in tasks}
    drawn = [by_position[int(position)] for position in sample.draw.positions]
    estimator = plugins.make("estimator", sample.draw.design)
    names = set(drawn[0].variables) if drawn else set()
    return Case(
        number=round_.number,
        estimates=[revision.estimate for revision in history],
        numbers=[revision.round_number for revision in history],
        sample=sample,
        elapsed=_elapsed(connection, work, round_),
        classes=np.array([task.prediction for task in drawn], dtype=np.str_),
        class_names=tuple(round_.classes or ()),
        variables={name: np.array([task.variables.get(name, np.nan) for task in drawn]) for name in names},
        coefficients=estimator.coefficients(sample) if hasattr(estimator, "coefficients") else None,
        asked=len(tasks),
        answered=sum(task.answer is not None and task.answer.truth is not None for task in tasks),
        received=round_.received,
        scored=round_.received - (round_.unscorable or 0),
        drift=(round_.drift or {}).get("share"),
    )


def _elapsed(connection: Connection, work: Toolbox, round_: Round) -> timedelta:
    """The production time since the round before of this model version; of the first one, its own."""
    known = rounds.versions(connection, work.name)
    ends = round_.ends_at or round_.opened_at
    before = [
        at for number, (version, at) in known.items() if version == round_.model_version and number < round_.number
    ]
    began = max(before, default=round_.starts_at or ends)
    return max(ends - began, timedelta())


def _robustness(work: Toolbox, round_: Round, query: str | None) -> float | None:
    """What the model version's timeline tells last, of all tests or of a saved query; or else the version's tag."""
    metric = ROBUSTNESS_METRIC if query is None else ROBUSTNESS_QUERY + query
    tag = ROBUSTNESS_TAG if query is None else f"{ROBUSTNESS_TAG}.{query}"
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
