"""Who may send, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from opmon.config import Settings
from opmon.errors import ConfigError

TOKEN = "a-token-of-some-length"


def settings(**ingest: object) -> Settings:
    monitor = {"model": "models:/digits/1", "source": {"type": "ingest"}}
    return Settings.from_mapping({"ingest": ingest, "state": "/s", "monitors": {"digits": monitor}}, "/x", {})


@pytest.mark.parametrize("listen", ["127.0.0.1:8787", "localhost:1", "[::1]:8787", "127.3.2.1:80"])
def test_this_machine_may_send_without_a_token(listen: str) -> None:
    settings(listen=listen)


@pytest.mark.parametrize("listen", ["0.0.0.0:8787", "[::]:8787", "opmon.example:8787", "10.0.0.1:80"])
def test_another_address_needs_a_token(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"ingest\.listen: .* can be reached from other machines: set token"):
        settings(listen=listen)
    assert TOKEN not in str(settings(listen=listen, token=TOKEN).dump())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"listen": "127.0.0.1"}, "an address and a port"),
        ({"listen": "127.0.0.1:70000"}, "an address and a port"),
        ({"token": "short"}, "at least 16 characters"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings(**given)


def test_each_monitor_has_a_folder_of_its_own_unless_it_names_one() -> None:
    assert settings().monitors["digits"].source.plugin.receives == Path("/s/ingest/digits/inputs")
