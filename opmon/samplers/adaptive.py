"""opmon's own sampler: stratified waves, each drawn by what the labels so far say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Sampler
from opmon.errors import InputError
from opmon.samplers import _aimed, _proxy
from opmon.samplers._aim import Aim
from opmon.samplers._cells import NONE, Strata, binned, centres, drawn, populations, strata
from opmon.samplers._checks import checked_budget, checked_share
from opmon.samplers._reserved import Wave, parts_drawn
from opmon.types import Array, Draw, Frame, Positions, Sample
from opmon.types.draw import KIND
from opmon.types.prospect import Foreseen

DESIGN = "adaptive"
AIMED_LATER = 1.5
"""The worth of a draw of a later wave beside one of this wave, of draws that aim at a measure."""


@dataclass(frozen=True)
class Adaptive(Sampler):
    """Stratified random sampling in waves, for any number of auxiliary variables, informative or not.

    ``aim`` runs from 0 (``estimate``: the least error) to 1 (``expose``: the most failures). ``waves=1`` draws all at
    once, without looking at labels. ``variables`` names those to use; all of the frame by default.

    1. The first wave (30 % of the budget, 15 % at ``expose``) is a defensive mixture: tilted by
       ``c + (1 − c)·mean_j χ_ij/χ̄_j``.
    2. Later waves fit a ridge logistic model (log-linear for losses) of the labels so far on rank and tail of every
       variable, and are tilted by a mixture of ``sqrt(f(1 − f))``, ``f^1.5`` and 1; beyond the middle more and more by
       the density that exposes 0.73 of what could be exposed at the least variance; see :mod:`_aim`.
    3. Each wave is cut along its score into strata that expect six draws each, and drawn at random without
       replacement inside them, from the inputs not drawn before. Inside a wave the order is random.

    Every wave alone estimates the frame without bias, and the waves' shares are fixed before their labels are seen,
    so the sum is unbiased whatever the model says; a wrong model costs precision only. The shares know the size of the
    frame: a wave that takes nearly all that is left has nearly all the weight (:func:`_share`). No weight exceeds the
    inverse of the uniform share (0.7 then 0.2 in the middle).

    A frame that has ``foreseen`` what the main measure's linearised value is likely to be is drawn by that in place of
    the variables: tilted by a floor and its standard deviation, cut along its mean, kind by kind where there are draws
    for each (:mod:`_aimed`). The caller foresees it again for each wave, from the labels so far. ``aim`` sets the
    floor: 0.65, 0.6 or 0.2 for a ratio over a part of the frame, such as recall, whose misses may hide anywhere, 0.4,
    0.35 or 0.1 for a mean.

    Draws that are promised to parts of the frame are kept in every wave: strata are then cut inside each part
    (:mod:`_reserved`), and each part gets its share of the wave or what it is promised, if that is more.

    Columns of the draw: ``wave``, ``stratum`` (numbered over all waves). Constants: ``stratum_size``,
    ``stratum_wave``, ``wave_share`` (of the weight that the waves before have left), and of an aimed draw
    ``stratum_kind``.

    Where failures are few, SUPS draws the same ones again and again; this design draws without replacement, and shows
    different ones. What was measured, and what was tried and is not better, is in ``opmon/docs/adaptive.md``.
    """

    aim: float = 0.5
    """From 0 (the least error) to 1 (the most failures)."""
    waves: int = 2
    """How many batches it draws, each by what the labels so far say."""
    variables: tuple[str, ...] | None = None
    """The auxiliary variables to use; all of the frame where none are named."""

    def __post_init__(self) -> None:
        checked_share(self.aim, "aim")
        if isinstance(self.waves, bool) or not isinstance(self.waves, int) or self.waves < 1:
            raise InputError(f"waves is a whole number, at least 1 (2 is usual); got {self.waves!r}")
        if isinstance(self.variables, str):
            raise InputError(f"variables is a list of names; got the text {self.variables!r}: write [{self.variables}]")
        if self.variables is not None:
            object.__setattr__(self, "variables", tuple(self.variables))

    aims: ClassVar[bool] = True

    def drawn_by(self) -> tuple[str, ...]:
        return self.variables or ()

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        """The first wave; the whole draw where there is only one."""
        if frame.size < 1:
            raise InputError("the frame is empty; there is nothing to draw from")
        return self._wave(frame, min(checked_budget(budget), frame.size), None, rng)

    def next_batch(self, frame: Frame, budget: int, sample: Sample, rng: np.random.Generator) -> Draw:
        """The draw of ``sample`` followed by the next wave; unchanged once ``budget`` is spent."""
        before, budget = sample.draw, min(checked_budget(budget), frame.size)
        if before.design != DESIGN or before.frame_size != frame.size:
            raise InputError(
                f"the draw to go on with must be of design {DESIGN!r} from this frame of {frame.size} inputs; "
                f"got {before.design!r} from {before.frame_size}. Begin with draw()."
            )
        return before if len(before) >= budget else self._wave(frame, budget, sample, rng)

    @property
    def reserves(self) -> bool:
        return True

    def at_once(self) -> Adaptive:
        return replace(self, waves=1)

    def _wave(self, frame: Frame, budget: int, sample: Sample | None, rng: np.random.Generator) -> Draw:
        wave, done = (0, 0) if sample is None else (_waves(sample.draw), len(sample.draw))
        left = budget - done
        aim = Aim.of(self.aim)
        whole = budget == frame.size or budget < aim.smallest
        size = left if whole else self._wave_size(budget, left, wave, aim.first_share)
        if frame.foreseen is not None:
            return _aimed_wave(frame, frame.foreseen, sample, wave, size, left - size, aim, rng)
        names = tuple(frame.variables) if self.variables is None else self.variables
        variables = _proxy.coded(frame, names)
        parts, binary = (_proxy.prior(variables), True) if sample is None else _proxy.learned(variables, sample)
        bins, low, high = binned(variables, parts, frame.size)
        if sample is not None:
            bins[sample.draw.positions] = NONE
        population = populations(bins)
        score = centres(low, high)
        first = sample is None
        density = aim.first(score, population) if first else aim.later(score, population, budget, size, binary)
        if frame.reserved is None:
            cut = strata(population, density, size)
            positions, stratum = drawn(bins, cut, rng)
        else:
            positions, stratum, cut, _ = parts_drawn(
                Wave(bins, NONE, size, left - size, _drawn_before(sample)),
                frame.reserved,
                lambda own: populations(own, NONE) * density,
                lambda own, _, many: (strata(own, density, many), None),
                rng,
            )
        share = _share(size, frame.size - done, left - size, aim.later_value)
        return _extended(sample, frame.size, positions, stratum, cut, wave, share)

    def _wave_size(self, budget: int, left: int, wave: int, first: float) -> int:
        if wave >= self.waves - 1:
            return left
        return round(first * budget) if wave == 0 else max(left // (self.waves - wave), 1)


def _aimed_wave(
    frame: Frame,
    foreseen: Foreseen,
    sample: Sample | None,
    wave: int,
    size: int,
    later: int,
    aim: Aim,
    rng: np.random.Generator,
) -> Draw:
    """The next wave, of ``size`` draws before ``later`` more, by what is foreseen of every input."""
    bins, none = _aimed.binned(foreseen)
    done = 0 if sample is None else len(sample.draw)
    if sample is not None:
        bins[sample.draw.positions] = none
    kinds: NDArray[np.int64] | None
    if frame.reserved is None:
        mass = _aimed.masses(foreseen, bins, none, aim.uniform(foreseen))
        cut, kinds = _aimed.strata(populations(bins, none), mass, size)
        positions, stratum = drawn(bins, cut, rng)
    else:
        mean = _aimed.mean_spread(foreseen, bins, none)
        positions, stratum, cut, kinds = parts_drawn(
            Wave(bins, none, size, later, _drawn_before(sample)),
            frame.reserved,
            lambda own: _aimed.masses(foreseen, own, none, aim.uniform(foreseen), mean),
            _aimed.strata,
            rng,
        )
    share = _share(size, frame.size - done, later, AIMED_LATER)
    return _extended(sample, frame.size, positions, stratum, cut, wave, share, kinds)


def _drawn_before(sample: Sample | None) -> Positions:
    return np.empty(0, np.int64) if sample is None else sample.draw.positions


def _waves(draw: Draw) -> int:
    return len(draw.constants["wave_share"])


def _share(now: int, inputs: int, later: int, later_value: float) -> float:
    """The share of a wave of ``now`` draws from ``inputs`` that are left, before ``later`` more; fixed before labels.

    Weights in inverse proportion to the variances, were all waves simple random samples with outcomes of variance 1:
    ``1/m − 1/M`` of this wave and ``((M − m)/M)² (1/L − 1/(M − m))`` of all later ones, which know what this one saw.
    A draw of a later wave counts ``later_value`` times. In a large frame this is ``m / (m + L·later_value)``.
    """
    if later == 0:
        return 1.0
    rest = inputs - now
    variance = 1 / now - 1 / inputs
    variance_later = (rest / inputs) ** 2 * (1 / later - 1 / rest)
    return variance_later / (variance_later + later_value * variance)


def _extended(
    sample: Sample | None,
    frame_size: int,
    positions: NDArray[np.int64],
    stratum: NDArray[np.int64],
    cut: Strata,
    wave: int,
    share: float,
    kinds: NDArray[np.int64] | None = None,
) -> Draw:
    """The draw of ``sample`` followed by one wave; ``kinds`` are those of the strata of an aimed one."""
    before = None if sample is None else sample.draw
    first = 0 if before is None else len(before.constants["stratum_size"])
    columns = {"wave": np.full(len(positions), wave), "stratum": stratum + first}
    constants = {
        "stratum_size": cut.sizes,
        "stratum_wave": np.full(len(cut.sizes), wave),
        "wave_share": np.array([share]),
    }
    aimed = before is None or KIND in before.constants
    if kinds is not None and aimed:
        constants[KIND] = kinds
    if before is None:
        return Draw(DESIGN, frame_size, positions, columns, constants)
    positions = np.concatenate([before.positions, positions])
    return Draw(DESIGN, frame_size, positions, _joined(before.columns, columns), _joined(before.constants, constants))


def _joined(before: Mapping[str, Array], after: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.concatenate([before[name], after[name]]) for name in after if name in before}
