"""``opmon ingest``."""

from __future__ import annotations

import logging
import signal
import threading
from pathlib import Path

import click

from opmon.cli.common import config_option, settings_of
from opmon.errors import InputError


@click.command()
@config_option()
def ingest(path: Path | None) -> None:
    """Take what model servers send, in a process of its own, until SIGTERM or Ctrl-C.

    `opmon serve` does it too, where no other process does.
    """
    from opmon.ingest.endpoint import Endpoint, streams_of
    from opmon.ingest.pruning import Pruning
    from opmon.service.repeats import Repeats
    from opmon.store.engine import open_store

    logger = logging.getLogger("opmon")
    if logger.level == logging.WARNING:
        logger.setLevel(logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.addFilter(Repeats())
    settings = settings_of(path)
    streams = streams_of(settings)
    if not streams:
        raise InputError("no monitor reads what is sent; say source: {type: ingest} in one of them")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    pruning = Pruning(open_store(settings.database.get_secret_value()), streams, settings.ingest.keep.total_seconds())
    with Endpoint(settings, pruning.prune):
        stop.wait()
