"""A bundle as it is watched: what its operator says, asked for at most once a second, and its journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from farlink.errors import FarlinkError
from farlink.operator.config.bundle import Bundle
from farlink.operator.journal.rows import Connection, Transition
from farlink.operator.journal.view import View
from farlink.operator.live.control import UnreachableError, ask
from farlink.operator.watch.report import report_of

# Several who look at the same time, look at the same state.
_FRESH_S = 1.0
_ANSWER_S = 5.0
_HIDDEN = "***"
# Names and words of this program. Anywhere else there may be words of modems and networks, which echo what they are sent.
_OWN = (
    *("bundle", "line", "lines", "primary", "injected_lines", "role", "state", "reason", "ends", "alert", "severity"),
    *("port", "path", "back_end", "number", "route"),
)


class Source:
    """A bundle that is watched. Safe to use from several threads.

    Parameters
    ----------
    bundle
        The bundle.
    secrets
        Texts that no answer may have.
    """

    def __init__(self, bundle: Bundle, secrets: Iterable[str] = ()) -> None:
        self.bundle = bundle
        self.journal = View(bundle.journal)
        self._secrets = sorted(secrets, key=len, reverse=True)
        self._lock = threading.Lock()
        self._asked_at = float("-inf")
        self._answer: dict[str, Any] | UnreachableError = {}

    def status(self) -> dict[str, Any]:
        """State of the operator, at most a second old.

        Raises
        ------
        UnreachableError
            If no operator answers.
        """
        with self._lock:
            if time.monotonic() - self._asked_at >= _FRESH_S:
                try:
                    self._answer = self.ask({"do": "status"})
                except UnreachableError as error:
                    self._answer = error
                self._asked_at = time.monotonic()
            if isinstance(self._answer, UnreachableError):
                raise UnreachableError(self._answer.message, self._answer.remedy)
            return self._answer

    def lines(self) -> dict[str, dict[str, Any]]:
        """State of each line by the operator, at most a second old.

        Raises
        ------
        UnreachableError
            If no operator answers, or it says no such thing.
        """
        found = self.status().get("lines")
        if not isinstance(found, list) or not all(isinstance(one, dict) and isinstance(one.get("line"), str) for one in found):
            message = f"the operator of bundle {self.bundle.name} says of its lines what this farlink does not understand"
            raise UnreachableError(message, "use the farlink of the operator")
        return {one["line"]: one for one in found}

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the operator.

        Raises
        ------
        UnreachableError
            If no operator answers.
        OperatorError
            If it refuses.
        """
        answer = ask(self.bundle.journal, dict(request), bundle=self.bundle.name, within_s=_ANSWER_S)
        hidden: dict[str, Any] = self._without_secrets(answer)
        return hidden

    def changed(self) -> None:
        """Ask anew the next time: something was ordered."""
        with self._lock:
            self._asked_at = float("-inf")

    def report(self, number: int | None = None) -> dict[str, Any]:
        """The report of a connection, ready for JSON, as `report_of` makes it.

        Parameters
        ----------
        number
            Its number; None for the last one.

        Raises
        ------
        JournalError
            If there is no such connection, or no journal.
        """
        connection, transitions, left_out = self.journal.connection(number)
        # Events after the transitions that are taken are not known, nor how long the latest state has lasted.
        lasts_s = None if left_out else self.lasts_s(connection, transitions)
        return report_of(connection, transitions, bundle=self.bundle.name, lasts_s=lasts_s, left_out=left_out)

    def lasts_s(self, connection: Connection, transitions: Sequence[Transition]) -> float | None:
        """How long a connection has lasted since its last transition, in s; None unless the operator says that it lasts."""
        if connection.end_s is not None:
            return None
        try:
            is_it = self.status().get("connection") == connection.number
        except FarlinkError:
            return None
        since_s = transitions[-1].time_s if transitions else connection.start_s
        return max(0.0, time.time() - since_s) if is_it else None

    def _without_secrets(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._without_secrets(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self._without_secrets(one, key) for one in value]
        if isinstance(value, str) and key not in _OWN:
            for secret in self._secrets:
                value = value.replace(secret, _HIDDEN)
        return value
