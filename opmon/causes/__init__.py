"""What failures have in common: a few causes instead of many cases. Pure: arrays in, dataclasses out.

==========================  ========================================================================
:func:`failure_groups`      failures divided by what sets them apart from what the model has right
:class:`Moments`            when each input came: since when failures are more frequent
:func:`features_of`         what rows of a table say of each input, as numbers and words
:func:`picture_features`    how blurred, noisy, dark or tilted pictures are
:func:`text_features`       which words texts hold, and how they are written
==========================  ========================================================================
"""

from opmon.causes.features import Feature, Measurements, Values
from opmon.causes.found import Found, Grouping
from opmon.causes.grouping import failure_groups
from opmon.causes.onsets import Moments, Onset
from opmon.causes.pictures import picture_features
from opmon.causes.shifts import Shift
from opmon.causes.tables import features_of
from opmon.causes.texts import text_features

__all__ = [
    "Feature",
    "Found",
    "Grouping",
    "Measurements",
    "Moments",
    "Onset",
    "Shift",
    "Values",
    "failure_groups",
    "features_of",
    "picture_features",
    "text_features",
]
