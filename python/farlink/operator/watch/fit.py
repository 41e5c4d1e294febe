"""The statistics of `farlink bundle fit` from a journal: one at a time, since they take seconds of the processor."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from farlink.channels.calls.study import study
from farlink.errors import JournalError
from farlink.operator.journal import flat
from farlink.operator.watch.source import Source

_MOST_TRANSITIONS = 100_000
_REPLICATES = 99
_KEPT_S = 60.0
_MOST_KEPT = 32


class Fits:
    """Fits of bundles, each kept for a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, float], tuple[float, dict[str, Any]]] = {}

    def of(self, source: Source, days: float) -> dict[str, Any]:
        """The statistics of the connections that began in the last days.

        Parameters
        ----------
        source
            The bundle.
        days
            How many.

        Raises
        ------
        JournalError
            If another fit is being made, or there is too little for one, or too much.
        """
        if not self._lock.acquire(blocking=False):
            raise JournalError("another fit is being made", "ask again in a few seconds")
        try:
            now = time.monotonic()
            at, found = self._kept.get((source.bundle.name, days), (float("-inf"), {}))
            if now - at < _KEPT_S:
                return found
            found = _fit(source, days)
            self._kept = dict(list(self._kept.items())[-_MOST_KEPT:])
            self._kept[source.bundle.name, days] = (now, found)
            return found
        finally:
            self._lock.release()


def _fit(source: Source, days: float) -> dict[str, Any]:
    history = source.journal.history(since_s=time.time() - 86_400 * days, most=_MOST_TRANSITIONS)
    if not history.transitions:
        raise JournalError(f"nothing has happened in {days:g} days", "ask for more days")
    with tempfile.TemporaryDirectory(prefix="farlink-fit-") as folder:
        log = Path(folder) / f"{source.bundle.name}.jsonl"
        flat.write_jsonl(history, log)
        return study([log], replicates=_REPLICATES).to_dict()
