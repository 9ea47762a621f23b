"""What is true of each connection to opmon's own servers."""

from __future__ import annotations

import asyncio
import socket

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
