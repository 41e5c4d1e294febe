"""A service on loopback that takes the messages of Apprise's ``json://``."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.operator.live_world import until


class Receiver:
    """Keeps what it gets. A context manager.

    Attributes
    ----------
    status
        With what it answers.
    got
        Messages, each with the time of the monotonic clock when it came.
    """

    def __init__(self) -> None:
        self.status, self.got = 200, []
        receiver = self

        class _Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if receiver.status == 200:
                    receiver.got.append((time.monotonic(), content))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """What Apprise calls it."""
        return f"json://127.0.0.1:{self._server.server_port}/alerts"

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def lines(self) -> list[str]:
        """What people read, a line for each thing that happened, without its time."""
        return [line.split(" UTC: ", 1)[-1] for _, one in list(self.got) for line in one["message"].splitlines()]

    def about(self, words: str) -> list[str]:
        """Lines with these words."""
        return [line for line in self.lines() if words in line]

    def wait(self, words: str, within_s: float) -> float:
        """Wait until there is a line with these words; when it came."""
        until(lambda: self.about(words), lambda: f"{words!r} is not in {self.lines()}", within_s)
        return next(at for at, one in list(self.got) if words in one["message"])
