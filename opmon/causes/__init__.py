"""What failures have in common: a few causes instead of many cases. Pure: arrays in, dataclasses out.

==========================  ========================================================================
:func:`failure_groups`      failures divided by what sets them apart from what the model has right
:func:`features_of`         what rows of a table say of each input, as numbers and words
:func:`picture_features`    how blurred, noisy, dark or tilted pictures are
:func:`text_features`       which words texts hold, and how they are written
==========================  ========================================================================
"""

from opmon.causes.features import Feature, Measurements, Values
from opmon.causes.grouping import Found, Grouping, failure_groups
from opmon.causes.pictures import picture_features
from opmon.causes.tables import features_of
from opmon.causes.texts import text_features

__all__ = [
    "Feature",
    "Found",
    "Grouping",
    "Measurements",
    "Values",
    "failure_groups",
    "features_of",
    "picture_features",
    "text_features",
]
