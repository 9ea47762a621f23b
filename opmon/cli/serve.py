"""``opmon serve``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from opmon.cli.common import config_option, settings_of


@click.command()
@config_option()
def serve(path: Path | None) -> None:
    """Run every monitor on its schedule until SIGTERM or Ctrl-C."""
    from opmon.service.repeats import Repeats
    from opmon.service.scheduler import Service

    logger = logging.getLogger("opmon")
    if logger.level == logging.WARNING:
        logger.setLevel(logging.INFO)  # a service that says nothing looks dead
    for handler in logging.getLogger().handlers:
        handler.addFilter(Repeats())
    Service(settings_of(path)).run()
