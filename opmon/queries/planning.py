"""What is known of a monitor before its labels are planned, from its newest rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtri

from opmon.errors import InputError
from opmon.estimators.census import METHOD as CENSUS
from opmon.estimators.plain_labels import spread_told
from opmon.estimators.ratio_planning import plan_ratio
from opmon.estimators.tally import Tally
from opmon.problems import traits
from opmon.quantities import ACCURACY, Problem, Quantity
from opmon.samplers.planning import Plan, Shown, plan
from opmon.samplers.widths import gain_of, spread_of, telling_of
from opmon.store import revisions, tallies
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.types import Estimate
from opmon.wording import counted, percent

ROUNDS = 10
"""Rounds that tell how wide the intervals of the monitor's sampler are, and how many draws are answered."""
ANSWERED = 0.95
"""Where so many are, a plan is one of draws."""


WHOLE = (
    "by the interval of the newest round, which allows for what its draws did not show, only labelling all is enough"
)


WORST = (
    "no labels tell yet how much inputs differ in it: this is the worst case, as if each counted 0 or 1; the first "
    "round will tell, and mostly fewer are enough"
)


@dataclass(frozen=True)
class Known:
    """What a plan of labels starts from."""

    quantity: Quantity = ACCURACY
    problem: Problem = "classification"
    level: float = 0.95
    variables: Sequence[str] = ("confidence",)
    aim: float = 0.5
    inputs: int | None = None
    """Inputs of the newest round."""
    expected: float | None = None
    """The newest estimate."""
    half_width: float | None = None
    """Half the width of its interval."""
    gain: float | None = None
    telling: float | None = None
    spread: float | None = None
    main: str | None = None
    """The main measure, where it is not the usual one of the problem."""
    of_all: bool = False
    """Whether the main measure is a mean over all inputs: what is said of an accuracy holds of such a share."""
    all_or_nothing: bool = True
    """Whether every input counts 0 or 1 for what is estimated; a score may count in part."""
    tally: Tally | None = None
    """What the newest round tells of a main measure that is a ratio, such as recall."""
    labels: int = 0
    """The draws of that round that were answered, which are what it tells of."""
    shown: Shown | None = None
    """How wide the newest round's interval was, beside simple random sampling, of what is no share of inputs."""
    aims: bool = True
    """Whether a sampler can aim at the main measure."""
    response: float = 1.0
    """The share of draws that was answered in the newest rounds."""
    counted: bool = False
    """Whether the truth of every input of the newest round has come, so that nothing was estimated."""

    @property
    def planned_as(self) -> Problem:
        """Whose intervals are planned for: those of shares are alike, whatever they are shares of."""
        if not self.quantity.share:
            return "regression"
        return "classification" if traits(self.problem).of_numbers else self.problem

    @property
    def usual_half_width(self) -> float | None:
        """What is planned for where no width is named: three points of a share, five of a main measure such as recall.

        Of what is no share it is a tenth of the newest estimate, whatever its sign, but no less than half of the
        interval that it has, which takes about four times the labels: a tenth of a bias near 0 would take any number
        of them. None where there is no estimate.
        """
        if self.quantity.share:
            return 0.03 if self.main is None else 0.05
        has = self.half_width if self.half_width is not None and math.isfinite(self.half_width) else 0.0
        return max(abs(self.expected or 0.0) / 10, has / 2) or None

    @property
    def is_share_of_inputs(self) -> bool:
        """Whether the value alone tells how much inputs differ."""
        return self.quantity.share and self.all_or_nothing


def learned(connection: Connection, monitor: str, known: Known) -> Known:
    """What is configured, with what the newest rounds of the monitor tell."""
    latest = revisions.newest_final(connection, monitor)
    if latest is None or latest.estimate.quantity != known.quantity:
        return known
    lately = revisions.latest_estimates(connection, monitor, limit=ROUNDS)
    estimates = [revision.estimate for revision in lately]
    main = known.main is not None
    tally = _tally(connection, latest) if main or not known.is_share_of_inputs else None
    return replace(
        known,
        inputs=latest.estimate.frame_size,
        expected=latest.estimate.value,
        half_width=latest.estimate.half_width,
        gain=gain_of(estimates),
        telling=telling_of(estimates, known.aim) if known.is_share_of_inputs else None,
        spread=None if known.is_share_of_inputs else _spread(latest.estimate, known, tally),
        tally=tally if main and tally is not None and tally.is_ratio else None,
        labels=round(latest.estimate.answers),
        response=_response(estimates),
        counted=latest.estimate.method == CENSUS,
        shown=None if tally is None else _shown(latest.estimate, known, tally),
    )


def _response(estimates: Sequence[Estimate]) -> float:
    draws = sum(each.n for each in estimates)
    return sum(each.answers for each in estimates) / draws if draws else 1.0


def _tally(connection: Connection, latest: Revision) -> Tally | None:
    return tallies.read(connection, [latest.key]).get(latest.key)


def _spread(estimate: Estimate, known: Known, tally: Tally | None) -> float | None:
    """How much inputs differ in what they count: as the draws tell, else as the width of the interval does."""
    told = None if tally is None or known.main is not None else spread_told(tally)
    return spread_of(estimate, known.aim, known.planned_as) if told is None or told == 0 else told


def _shown(estimate: Estimate, known: Known, tally: Tally) -> Shown | None:
    """How wide the interval was beside that of as many simple random draws."""
    labels, size = round(estimate.answers), estimate.frame_size
    if not (0 < estimate.half_width < math.inf and 0 < labels < size):
        return None
    simple, gain = estimate.method.startswith("srs"), tally.gain
    if known.main is None:
        spread = spread_told(tally) or 0.0
        plain = float(ndtri(0.5 + estimate.level / 2)) * spread * math.sqrt(1 / labels - 1 / size)
        gain = math.nan if plain == 0 else 1.0 if simple else estimate.half_width / plain
    if not math.isfinite(gain):
        return None
    aim = known.aim if known.main is None and estimate.method.startswith("adaptive/") else None
    return Shown(estimate.half_width, labels, size, gain, aim, simple)


def budget_for(known: Known, half_width: float, size: int, expected: float | None, aim: float) -> Plan:
    """The labels that the main measure needs, and how many draws have so many, as the newest rounds were answered."""
    found = _labels_for(known, half_width, size, expected, aim)
    if not 0 < known.response < ANSWERED:
        return found
    wanted = math.ceil(found.budget / known.response)
    note = f"of the last draws {percent(known.response)} were answered: for {counted(found.budget, 'label')} "
    note += f"about {wanted:,} have to be asked for" if wanted <= size else f"{counted(size, 'input')} are too few"
    return replace(found, more=min(wanted, size) - found.budget, notes=(*found.notes, note))


def _labels_for(known: Known, half_width: float, size: int, expected: float | None, aim: float) -> Plan:
    """By the draws of the newest round where the measure is a ratio, such as recall."""
    if known.quantity.share and half_width >= 1:
        points = ", which is 3 points" if known.quantity.percent else ""
        raise InputError(
            f"{known.quantity.name} lies between 0 and 1, and so does the half-width: 0.03{points}, for instance; "
            f"got {half_width:g}"
        )
    if known.tally is not None:
        aimed = plan_ratio(known.tally, half_width, known.labels, size, known.level)
        whole = (WHOLE,) if aimed.budget == size else ()
        return Plan(aimed.budget, aimed.half_width, aimed.plain_budget, None, whole)
    if known.shown is not None:
        return known.shown.aiming(aim, known.problem).plan(half_width, size)
    unsure = not known.quantity.share or (known.main is not None and not known.of_all)
    if known.spread is None and known.counted and unsure:
        raise InputError(
            f"the truth of every input of the newest round has come by itself: {known.quantity.name} is counted, and "
            "no label need be asked for"
        )
    if known.spread is None and not known.quantity.share:
        raise InputError(
            f"the labels that {known.quantity.name} needs depend on how much inputs differ in it, which labels alone "
            "tell: have one round labelled, and ask again"
        )
    if known.main is not None and known.quantity.share and not known.of_all and known.spread is None:
        raise InputError(
            f"the labels that {known.quantity.name} needs depend on how rare its inputs are and how well scores tell "
            "them apart: let the sampler adaptive draw one round, have it labelled, and ask again"
        )
    found = plan(
        half_width,
        size,
        problem=known.planned_as,
        accuracy=expected if known.quantity.share else None,
        spread=known.spread,
        variables=len(known.variables),
        level=known.level,
        aim=aim,
        telling=known.telling,
    )
    if known.spread is None and not known.all_or_nothing:
        return replace(found, notes=(*found.notes, WORST))
    return found
