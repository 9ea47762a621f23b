"""``opmon.yaml`` and the ``OPMON_*`` variables: the one place where configuration is read.

:func:`load` gives frozen :class:`Settings`, or a :class:`opmon.errors.ConfigError` of one or two lines that names the
file, the line, the key, the value and what is allowed.
"""

from __future__ import annotations

from opmon.config.actions import ActionSettings
from opmon.config.example import render_example
from opmon.config.files import load
from opmon.config.groups import (
    ColumnSettings,
    DriftSettings,
    InputSettings,
    MissingSettings,
    MlflowSettings,
    RollingSettings,
    RoundSettings,
)
from opmon.config.kinds import HeadSettings, SamplerSettings, SourceSettings
from opmon.config.labels import LabelSettings
from opmon.config.monitor import MonitorSettings
from opmon.config.plugged import Plugged
from opmon.config.redaction import Address
from opmon.config.rules import RuleSettings
from opmon.config.schedule import ScheduleSettings
from opmon.config.settings import Settings
from opmon.config.truth import TruthSettings
from opmon.durations import duration
from opmon.redaction import without_password

__all__ = [
    "ActionSettings",
    "Address",
    "ColumnSettings",
    "DriftSettings",
    "HeadSettings",
    "InputSettings",
    "LabelSettings",
    "MissingSettings",
    "MlflowSettings",
    "MonitorSettings",
    "Plugged",
    "RollingSettings",
    "RoundSettings",
    "RuleSettings",
    "SamplerSettings",
    "ScheduleSettings",
    "Settings",
    "SourceSettings",
    "TruthSettings",
    "duration",
    "load",
    "render_example",
    "without_password",
]
