"""Robustness tomography: how right a model stays under combined perturbations, measured in part and predicted.

Pure: a model comes as a function, inputs as arrays, random numbers as a generator or a seed.
"""

from __future__ import annotations
