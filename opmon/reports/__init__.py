"""The reports of a round: metrics, figures, failures, a drift report and a page.

Everything here takes plain values and writes files; who stores them is decided elsewhere. Heavy libraries are imported
when a function that needs them is called.
"""
