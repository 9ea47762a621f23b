"""A target that keeps callers waiting is left alone by all monitors of the process."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from opmon.errors import DeliveryError
from opmon.outgoing.breaker import left_alone
from opmon.triggers.webhook import Webhook


def test_a_target_that_does_not_answer_twice_running_is_left_alone(event: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"http://127.0.0.1:{silent.getsockname()[1]}"
        hook = Webhook(f"{where}/hook", timeout=0.1, allow=("127.0.0.1",))
        other = Webhook(f"{where}/other", timeout=60, allow=("127.0.0.1",))
        for _ in range(2):
            with pytest.raises(DeliveryError, match="did not answer within"):
                hook.act(event)
        begun = time.monotonic()
        with pytest.raises(DeliveryError, match="is left alone") as told:
            other.act(event)
        assert time.monotonic() - begun < 30
        assert 0 < (told.value.retry_after or 0) <= 15
        assert where in left_alone()
