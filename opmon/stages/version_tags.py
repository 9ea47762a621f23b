"""The tags of a model version: how it does, as each monitor sees it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from opmon.errors import NotFoundError
from opmon.queries.standing import standing_of
from opmon.stages.timeline import model_of
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types import ModelVersion

log = logging.getLogger(__name__)

OWNER_TAG = "opmon.monitor"
"""Whose the plain tags of a version are."""


def tag_round(work: Toolbox, round_: Round, revision: Revision) -> None:
    """How the model version does, on the version itself; setting a tag fires MLflow's own webhooks."""
    with work.store.read() as connection:
        if revisions.newest_estimated(connection, work.name, round_.model) != round_.number:
            return
        stands = standing_of(connection, work.name, round_.model, work.settings.watch.acting_rules)
    model = model_of(work, round_)
    if model is None:
        return
    estimate = revision.estimate
    key = estimate.quantity.key
    bounds = {key: estimate.value, f"{key}.low": estimate.low, f"{key}.high": estimate.high}
    told = {
        "status": stands.status,
        **{name: _number(value, estimate.quantity.share) for name, value in bounds.items()},
    }
    try:
        set_tags(work, model, told | {"round": str(round_.number)})
    except NotFoundError as exc:
        log.warning("%s is not there to be tagged any more: %s", model.uri, exc)


def set_tags(work: Toolbox, model: ModelVersion, told: Mapping[str, str]) -> None:
    """Set ``opmon.<monitor>.<name>`` and, where no monitor before this one has them, ``opmon.<name>``.

    Two monitors may watch one version: each has its own tags, and the plain ones are those of the first of them in the
    configuration, which :data:`OWNER_TAG` names.
    """
    tags = {f"opmon.{work.name}.{name}": value for name, value in told.items()}
    if not work.settings.before or work.registry.version_tags(model).get(OWNER_TAG) not in work.settings.before:
        tags |= {f"opmon.{name}": value for name, value in told.items()} | {OWNER_TAG: work.name}
    work.registry.tag_version(model, tags)


def _number(value: float, share: bool) -> str:
    return f"{value:.4f}" if share or not math.isfinite(value) else f"{value:.6g}"
