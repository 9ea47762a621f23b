"""Checks whether a monitor has all that it needs and ``opmon run`` would go through; what is wrong, in plain words.

They change nothing: no table, no file, no run.
"""

from opmon.checks.finding import Finding
from opmon.checks.monitor import check_monitor
from opmon.checks.services import check_services

__all__ = ["Finding", "check_monitor", "check_services"]
