"""HTTP for senders that may be slow on purpose: the head of a request has its time, as its body has."""

from __future__ import annotations

import asyncio

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
except ImportError:  # it is quicker, and need not be there
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol  # type: ignore[assignment]

HEAD_SECONDS = 10.0


class Hurried(Protocol):
    """Closes a connection on which no whole head of a request came in time."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is None and not self._is_at_work:
            self._expect_head()
        super().data_received(data)
        if self._is_at_work:
            self._head_came()

    @property
    def _is_at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _head_came(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None
