"""How long what opmon gathers is kept."""

from __future__ import annotations

from opmon.config.fields import Duration
from opmon.config.part import Part


class KeepSettings(Part):
    """How long after a round was closed "opmon prune" leaves what belongs to it; what is not named is kept for ever.

    Estimates, verdicts and events always stay, and labels as long as their round's ``rounds``.
    """

    payloads: Duration | None = None
    """What annotators saw of its inputs, and wherever else they are shown: in the database, in the MLflow run."""
    frames: Duration | None = None
    """The table of all its inputs with their predictions and variables."""
    artifacts: Duration | None = None
    """All files of its MLflow run; parameters and numbers of the run stay."""

    rounds: Duration | None = None
    """Its tasks, labels and draw in the database, and all that still shows its inputs; what was estimated stays."""

    @property
    def given(self) -> bool:
        """Whether anything is ever pruned."""
        return any(value is not None for value in (self.payloads, self.frames, self.artifacts, self.rounds))
