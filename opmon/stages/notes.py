"""What MLflow's pages say of a round, put together from the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from urllib.parse import quote

from opmon.adjudication import Asked
from opmon.queries.drifting import round_drift
from opmon.queries.standing import standing_of
from opmon.reports.notes import RoundNote, RuleNote
from opmon.stages.toolbox import Toolbox
from opmon.store import verdicts
from opmon.store.revisions import Revision
from opmon.store.rounds import Round


def note_of(work: Toolbox, round_: Round, revision: Revision, tasks: Sequence[Asked]) -> RoundNote:
    """What is told of a round, and of how its model version stands now."""
    advising = set(work.settings.watch.advising_rules)
    with work.store.read() as connection:
        stands = standing_of(connection, work.name, round_.model, work.settings.watch.acting_rules)
        said = verdicts.latest_verdicts(connection, round_.id)
        drift = round_drift(connection, round_, revision)
    counts = round_.plan.usual_quantity.share or round_.plan.tolerance is not None
    picture, timeline = f"{revision.estimate.quantity.key}.png", round_.timeline_run_id or ""
    return RoundNote(
        monitor=work.name,
        model=round_.model_name,
        version=round_.model_version,
        round=round_.number,
        status=stands.status,
        why=stands.why,
        estimate=revision.estimate,
        ended_at=(round_.ends_at or round_.opened_at).astimezone(UTC),
        inputs=round_.inputs or 0,
        asked=len(tasks),
        answered=sum(task.truth is not None for task in tasks),
        failures=revision.failures if counts else None,
        threshold=work.settings.threshold,
        rules=[RuleNote(each.rule, each.state, each.message, each.rule in advising) for each in said],
        drift=() if drift is None else drift.words,
        page=None if work.settings.pages is None else f"{work.settings.pages}/monitors/{quote(work.name)}",
        timeline=work.registry.page_of(timeline),
        run=work.registry.page_of(round_.run_id or ""),
        picture=None if revision.estimate.provisional else work.registry.picture_of(timeline, picture),
    )
