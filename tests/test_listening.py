"""What is true of each connection to opmon's own servers."""

from __future__ import annotations

import asyncio
import socket

import pytest

from opmon.errors import ConfigError
from opmon.listening import listen


def test_what_is_written_to_a_connection_is_sent_at_once() -> None:
    async def of_an_accepted_connection() -> int:
        said: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            said.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(accepted, sock=listen("127.0.0.1", 0, "web")) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            try:
                return await said
            finally:
                writer.close()

    assert asyncio.run(of_an_accepted_connection())


def test_why_an_address_cannot_be_had_is_told_by_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("127.0.0.1", 0, "web") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=r"End that one, or say another address in web: \{listen: ") as raised:
            listen("127.0.0.1", port, "web")
        assert "Errno" not in str(raised.value)
        monkeypatch.setenv("OPMON_WEB_LISTEN", f"127.0.0.1:{port}")
        with pytest.raises(ConfigError, match="say another address in OPMON_WEB_LISTEN="):
            listen("127.0.0.1", port, "web")
    for host, words in {"192.0.2.1": "this machine has no such address", "no.such.invalid": "knows a host"}.items():
        with pytest.raises(ConfigError, match=words) as raised:
            listen(host, 0, "metrics")
        assert "listens there" not in str(raised.value)
