"""The process that sends: one JSON object a line on its standard input, one a line on its standard output.

It alone has Apprise, whose services may hang, crash or tell secrets: URLs come over the pipe, and what goes back is one of
`farlink`'s own texts, never one of a service or of Apprise.
"""

from __future__ import annotations

import json
import logging
import os
import re
import resource
import sys
import threading
from contextlib import suppress
from typing import Any

from farlink.operator.core_dumps import forbid_core_dumps

_MOST_MEMORY_BYTES = 1 << 29
_STACK_BYTES = 1 << 20
_STATUS = re.compile(r"error=(\d{3})\b")
_TEXTS = (
    (re.compile("timed? ?out", re.IGNORECASE), "the service does not answer in time"),
    (re.compile("resol", re.IGNORECASE), "the name of the service is not found"),
    (re.compile("connection|socket|network", re.IGNORECASE), "no connection to the service"),
    (re.compile("auth", re.IGNORECASE), "the service refuses user or password"),
)


class _Heard(logging.Handler):
    """Messages of Apprise in one thread."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._thread = threading.get_ident()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and len(self.texts) < 100:
            with suppress(Exception):
                self.texts.append(record.getMessage()[:1000])


def why_of(texts: list[str]) -> str:
    """Why nothing was sent, of what Apprise has said: nothing of its own words is in it.

    Examples
    --------
    >>> why_of(["Failed to send JSON notification: Page not found, error=404."])
    'the service answers with HTTP status 404'
    >>> why_of(["A Connection error occurred sending JSON notification to canary."]), why_of(["?"])
    ('no connection to the service', 'the service was not reached, or refuses the message')
    """
    for text in texts:
        status = _STATUS.search(text)
        if status is not None:
            return f"the service answers with HTTP status {status[1]}"
    for pattern, words in _TEXTS:
        if any(pattern.search(text) for text in texts):
            return words
    return "the service was not reached, or refuses the message"


def send(request: dict[str, Any]) -> str:
    """Send a message; why it was not sent, empty if it was."""
    try:
        import apprise
    except ImportError:
        return "Apprise is not installed: pip install 'farlink[alerts]'"
    log, heard = logging.getLogger("apprise"), _Heard()
    log.addHandler(heard)
    try:
        asset = apprise.AppriseAsset(app_id="farlink", app_desc="farlink", app_url="", async_mode=False)
        service = apprise.Apprise.instantiate(request["url"], asset=asset)
        if service is None:
            return "Apprise knows no such URL"
        is_sent = service.notify(
            title=request["title"], body=request["body"], notify_type=request["type"], body_format=apprise.NotifyFormat.TEXT
        )
        return "" if is_sent else why_of(heard.texts)
    except Exception as error:  # of a service: whatever it raises
        return f"the service fails with {type(error).__name__}"
    finally:
        log.removeHandler(heard)


def _bound_memory() -> None:
    """An answer without end fills this process only, and only so far."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _MOST_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(_MOST_MEMORY_BYTES, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def main() -> None:
    """Send what comes until the input ends: its parent is gone then, or wants the end."""
    forbid_core_dumps()
    _bound_memory()
    # Services write to standard output now and then.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def answer(request: dict[str, Any]) -> None:
        why = send(request)
        with lock, suppress(OSError, ValueError):
            answers.write(json.dumps({"id": request["id"], "why": why}) + "\n")
            answers.flush()

    log = logging.getLogger("apprise")
    log.setLevel(logging.INFO)
    log.propagate = False
    threading.stack_size(_STACK_BYTES)
    for line in sys.stdin:
        threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
    os._exit(0)  # a thread that hangs in a service is not waited for


if __name__ == "__main__":
    main()
