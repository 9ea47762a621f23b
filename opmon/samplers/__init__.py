"""Samplers: which inputs are worth a label. Pure: a frame, a budget and a random generator in, a draw out.

===============================  ===========================================================================
:class:`Adaptive`                the default: stratified waves that learn from the labels, all variables at once
:class:`SimpleRandom`            SRS, the yardstick
:class:`ProportionalToSize`      SUPS, unequal probabilities with replacement
:class:`RaoHartleyCochran`       RHC-S, one draw from each of n random groups
:class:`Stratified`              SSRS, strata of one variable, Neyman's allocation
:class:`GradientBased`           GBS, strata in waves that follow the labels
:class:`TwoStage`                2-UPS, a stratum by its size, an input inside it
:class:`CrossEntropy`            CES, activations like those of the frame (biased)
:class:`ConfidenceStratified`    CSS, three strata of confidence
:class:`DeepEst`                 DeepEST, adaptive by suspicion
===============================  ===========================================================================

``draw.design`` names the estimator for it. A frame no larger than the budget is labelled whole. :func:`advise` says
which sampler to take and why, :func:`plan` how many labels a wanted half-width needs.
"""

from opmon.samplers.adaptive import Adaptive
from opmon.samplers.advisor import advise
from opmon.samplers.ces import CrossEntropy
from opmon.samplers.css import ConfidenceStratified
from opmon.samplers.deepest import DeepEst
from opmon.samplers.gbs import GradientBased
from opmon.samplers.planning import plan
from opmon.samplers.rhc import RaoHartleyCochran
from opmon.samplers.srs import SimpleRandom
from opmon.samplers.ssrs import Stratified
from opmon.samplers.sups import ProportionalToSize
from opmon.samplers.two_stage import TwoStage

__all__ = [
    "Adaptive",
    "ConfidenceStratified",
    "CrossEntropy",
    "DeepEst",
    "GradientBased",
    "ProportionalToSize",
    "RaoHartleyCochran",
    "SimpleRandom",
    "Stratified",
    "TwoStage",
    "advise",
    "plan",
]
