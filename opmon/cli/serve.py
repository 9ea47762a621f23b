"""``opmon serve``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from opmon.cli.common import config_option, settings_of


@click.command()
@config_option()
def serve(path: Path | None) -> None:
    """Run every monitor on its schedule, with the pages, until SIGTERM or Ctrl-C.

    It also takes what model servers send, where a monitor reads that.
    """
    from opmon.ingest.endpoint import Standby, streams_of
    from opmon.ingest.pruning import Pruning
    from opmon.service.repeats import Repeats
    from opmon.service.scheduler import Service
    from opmon.web.server import beside

    logger = logging.getLogger("opmon")
    if logger.level == logging.WARNING:
        logger.setLevel(logging.INFO)  # a service that says nothing looks dead
    for handler in logging.getLogger().handlers:
        handler.addFilter(Repeats())
    settings = settings_of(path)
    service = Service(settings)
    pruning = Pruning(service.store, streams_of(settings), settings.ingest.keep.total_seconds())
    with beside(settings, service.store), Standby(settings, pruning.prune):
        service.run()
