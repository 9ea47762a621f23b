"""``opmon ingest``."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, log_format_option, settings_of
from opmon.errors import InputError

if TYPE_CHECKING:
    from opmon.logs.formats import Form


@click.command()
@config_option()
@log_format_option()
def ingest(path: Path | None, form: Form) -> None:
    """Take what model servers send, in a process of its own, until SIGTERM or Ctrl-C.

    `opmon serve` does it too, where no other process does.
    """
    from opmon.ingest.endpoint import Endpoint, streams_of
    from opmon.ingest.pruning import Pruning
    from opmon.logs.formats import set_up
    from opmon.store.engine import open_store

    set_up(form)
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
