"""Costs of calls on the disk, so that neither a killed operator nor a power cut forgets much of them.

The journal has it durably, once a minute and at each drop. A sign of life beside the journal has it every second: after a kill
a second of airtime is missing at most, after a power cut a minute.
"""

from __future__ import annotations

import time
from pathlib import Path

from farlink.operator.journal.sign_of_life import Life, SignOfLife, life_of
from farlink.operator.live.recorder import Recorder, boot_id

_FACT = "history"


class KeptCosts:
    """Costs and history of calls, from one start of the operator to the next.

    Parameters
    ----------
    recorder
        Keeps what is durable. Connections that a killed operator has left open end now.
    journal
        Path of the journal.
    """

    def __init__(self, recorder: Recorder, journal: Path) -> None:
        self._recorder, self._boot = recorder, boot_id()
        self._sign = SignOfLife(journal)
        kept = recorder.kept(_FACT)
        life = self._sign.read()
        # An earlier version kept the history alone.
        durable = None if kept is None else life_of(kept) or Life(0, 0.0, 0.0, "", kept)
        self._lives = sorted((one for one in (life, durable) if one is not None), key=lambda one: one.number, reverse=True)
        self._number = self._lives[0].number if self._lives else 0
        recorder.end_left_open(life)

    def histories(self) -> list[str]:
        """The kept costs, the newest first: if one is refused, the next is worth a try."""
        return [one.history for one in self._lives]

    def sign(self, history: str) -> None:
        """Give a sign of life."""
        self._sign.write(self._life(history))

    def keep(self, history: str) -> None:
        """Keep it durably."""
        self._recorder.keep(_FACT, self._life(history).text())

    def close(self) -> None:
        """Give no more signs."""
        self._sign.close()

    def _life(self, history: str) -> Life:
        self._number += 1
        return Life(self._number, time.time(), time.monotonic(), self._boot, history)
