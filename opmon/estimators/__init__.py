"""Estimators: from the outcomes of a design's draws to an accuracy with an interval. Pure.

===================================  =======================================================================
:class:`AdaptiveEstimator`           design ``adaptive``
:class:`SimpleRandomEstimator`       design ``srs``, and any frame that was labelled whole
:class:`HansenHurwitz`               design ``sups``
:class:`RaoHartleyCochranEstimator`  design ``rhc``
:class:`StratifiedEstimator`         designs ``ssrs`` and ``css``
:class:`GradientBasedEstimator`      design ``gbs``
:class:`TwoStageEstimator`           design ``two_stage``
:class:`CrossEntropyEstimator`       design ``ces`` (biased)
:class:`DeepEstEstimator`            design ``deepest``
===================================  =======================================================================

Around any of them: :class:`ModelAssisted` (a proxy corrected by the labels), :func:`slice_accuracy`,
:func:`class_accuracy`, :func:`precision` and :func:`recall` (a part of the frame), :func:`combine` and :func:`rolling`
((several rounds as one).
"""

from opmon.estimators.adaptive import AdaptiveEstimator
from opmon.estimators.ces import CrossEntropyEstimator
from opmon.estimators.deepest import DeepEstEstimator
from opmon.estimators.gbs import GradientBasedEstimator
from opmon.estimators.model_assisted import ModelAssisted, assisted
from opmon.estimators.propensity import weighed
from opmon.estimators.proxies import Proxy, cross_fitted
from opmon.estimators.ratios import class_accuracy, precision, ratio, recall, slice_accuracy
from opmon.estimators.rhc import RaoHartleyCochranEstimator
from opmon.estimators.rolling import combine, rolling
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.estimators.stratified import StratifiedEstimator
from opmon.estimators.sups import HansenHurwitz
from opmon.estimators.two_stage import TwoStageEstimator
from opmon.estimators.worst_case import worst_case

__all__ = [
    "AdaptiveEstimator",
    "CrossEntropyEstimator",
    "DeepEstEstimator",
    "GradientBasedEstimator",
    "HansenHurwitz",
    "ModelAssisted",
    "Proxy",
    "RaoHartleyCochranEstimator",
    "SimpleRandomEstimator",
    "StratifiedEstimator",
    "TwoStageEstimator",
    "assisted",
    "class_accuracy",
    "combine",
    "cross_fitted",
    "precision",
    "ratio",
    "recall",
    "rolling",
    "slice_accuracy",
    "weighed",
    "worst_case",
]
