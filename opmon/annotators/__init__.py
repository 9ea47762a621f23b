"""Annotators who err: how far they agree, how often each is wrong, whose answer counts, and estimates corrected for it.
Pure.

===========================  ===========================================================================
:func:`percent_agreement`    the share of pairs of answers that are the same
:func:`cohen`                kappa of two annotators
:func:`fleiss`               kappa of several
:func:`krippendorff`         alpha, of classes or of numbers, with answers missing
:func:`fit`                  the error model of a team, from overlap, gold tasks and truth that arrived
:func:`by_majority`          the answer that counts, as most say
:func:`by_expert`            … as named people say
:func:`by_weight`            … as the error model says
:func:`by_class`             … of several classes, each as most say
:func:`by_middle`            … of scores and numbers, their mean or median
:func:`corrected`            an accuracy corrected for annotators who err
:func:`denoised`             a mean squared error less the noise of annotators
===========================  ===========================================================================
"""

from opmon.annotators.adjudication import Ruling, by_class, by_expert, by_majority, by_middle, by_weight
from opmon.annotators.agreement import Agreement, cohen, fleiss, krippendorff, percent_agreement
from opmon.annotators.corrected import Correction, corrected
from opmon.annotators.error_model import AnnotatorError, ErrorModel, fit
from opmon.annotators.noise import Denoised, denoised
from opmon.annotators.opinions import Coded, Opinion

__all__ = [
    "Agreement",
    "AnnotatorError",
    "Coded",
    "Correction",
    "Denoised",
    "ErrorModel",
    "Opinion",
    "Ruling",
    "by_class",
    "by_expert",
    "by_majority",
    "by_middle",
    "by_weight",
    "cohen",
    "corrected",
    "denoised",
    "fit",
    "fleiss",
    "krippendorff",
    "percent_agreement",
]
