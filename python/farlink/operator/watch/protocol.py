"""HTTP/1.1 as uvicorn has it, with a limit to how long a client may take to say what it wants."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD_S = 10.0


class Http(H11Protocol):
    """A connection. One that has begun no request, or has not ended its head, within 10 to 20 s is closed: there are few."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch it."""
        super().connection_made(transport)
        self._watch(before=None)

    def _watch(self, before: object) -> None:
        """Close the connection if it waits for the same request as a while ago."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:  # a websocket has a protocol of its own
            return
        is_waiting = self.cycle is None or self.cycle.response_complete
        # No cycle yet is a state of its own.
        state = (self.cycle,) if is_waiting else None
        if state is not None and state == before:
            self.transport.close()
            return
        self.loop.call_later(_HEAD_S, self._watch, state)
