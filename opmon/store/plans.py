"""What must not change while a round lives: fixed when it opens, kept with it in one piece."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Self

from opmon import kept_quantities, quantities
from opmon.adjudication import Decides
from opmon.quantities import Quantity
from opmon.replies import Replies
from opmon.scales import Scale
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Document, Json, Problem


@dataclass(frozen=True)
class RoundPlan:
    """How a round is drawn, estimated and told apart from others, as the configuration said when it opened.

    How its inputs are *read* (columns, types, classes) is not in it: that is read live, because correcting it is how a
    round that cannot be scored is mended. What rules are configured is read live too; each verdict keeps whose it is.
    """

    problem: Problem = "classification"
    unit: str | None = None
    """What the numbers of a regression are measured in."""
    scale: Scale | None = None
    """How people judge outputs."""
    tolerance: float | None = None
    """From how far on a number counts as a failure; None: the farthest do."""
    sampler: str = "srs"
    parameters: Document = field(default_factory=dict)
    budget: int = 100
    level: float = 0.95
    seed: int = 0
    since: str = ""
    """Since when this database knows the monitor: another one with the same MLflow must not go on with its runs."""
    where: str | None = None
    """Which rows of the log are inputs; None: all."""
    thinning: Mapping[str, str | float] | None = None
    """How rows that were logged with different probabilities are made even; None: all were logged alike."""
    version_column: str | None = None
    """The column of the log that names the model version; None: the one that is configured when it is read."""
    current_version: str | None = None
    """The version behind the monitor's address when the round opened: rows that name none are its."""
    versions: Mapping[str, str] | None = None
    """What the log says of versions -> the version it means."""
    proxy: Document | None = None
    """What assists the estimate, chosen before any label; None: the labels alone make it."""
    at_once: bool = False
    """Whether all is drawn in one wave, because nobody is asked: truth that arrives by itself may never come."""
    whole_budget: int | None = None
    """The budget of a round of full size, where this one has a share of it."""
    earned: float | None = None
    """The labels that the inputs so far have earned of it."""
    adjudication: Decides | None = None
    """Whose answer counts where annotators differ; None: the majority's."""
    experts: Sequence[str] | None = None
    """Those whose answer does, the first who answered."""

    measures: Sequence[Document] | None = None
    """What is estimated of it, each as the configuration wrote it; None: the main measure of its problem alone."""
    main: str | None = None
    """The name of the main one; None: that of its problem."""
    main_quantity: Document | None = None
    """What the main one estimates, where ``main`` is named."""

    @classmethod
    def of(cls, stored: Document) -> Self:
        """As :meth:`stored` wrote it; keys of other releases are left out, missing ones have their defaults."""
        known = {each.name for each in fields(cls)}
        return cls(**{key: value for key, value in stored.items() if key in known})

    def stored(self) -> dict[str, Json]:
        """As JSON can hold it; what is None is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @property
    def quantity(self) -> Quantity:
        """What a round with this plan estimates before all else."""
        return self.usual_quantity if self.main_quantity is None else kept_quantities.kept(self.main_quantity)

    @property
    def usual_quantity(self) -> Quantity:
        """What a round of its problem estimates where nothing else is said."""
        return quantities.of(self.problem, self.unit, self.scale)

    def replies(self, classes: Collection[str] | None, spellings: Spellings = AS_SPELT) -> Replies:
        """What may be answered about an input of a round with this plan."""
        return Replies(self.problem, classes, spellings, self.scale)
