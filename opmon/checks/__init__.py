"""Is everything there that a monitor needs, and would ``opmon run`` go through? What is wrong is told in plain words.

Nothing is changed by asking: no table, no file, no run.
"""

from opmon.checks.finding import Finding
from opmon.checks.monitor import check_monitor
from opmon.checks.services import check_services

__all__ = ["Finding", "check_monitor", "check_services"]
