"""Measures: what of a model is estimated from the labels of a draw. One file each. Pure.

How an estimate with an interval is made of a measure says :func:`opmon.estimators.measured.measured`.
"""
