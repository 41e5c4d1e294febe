"""The PIN of a SIM, which is tried once: three wrong ones lock it."""

from __future__ import annotations

from farlink.operator.lines.line import Pins
from farlink.operator.lines.modem_manager.bus import BusError
from farlink.operator.lines.modem_manager.modem import SIM, Modem
from farlink.operator.lines.modem_manager.watch import Gone, Watch
from farlink.operator.lines.modem_manager.words import SIM_PIN

PIN_S = 30.0
"""How long a SIM may take."""


class Unlock:
    """The step that is allowed with a locked SIM.

    Parameters
    ----------
    line
        Its line.
    pins, pin
        Which PINs may be tried, and that of this line; None if there is none.
    """

    def __init__(self, line: str, pins: Pins, pin: str | None) -> None:
        self._line, self._pins, self._pin = line, pins, pin

    async def unlock(self, watch: Watch, modem: Modem) -> str:
        """Give the SIM its PIN: why it is locked all the same; empty if it has accepted it.

        Raises
        ------
        Gone
            If the modem goes meanwhile: the PIN counts as tried then.
        """
        if why := self._obstacle(modem):
            return why
        # Before it is sent: a power cut between the two must not lead to a second wrong one.
        if not self._pins.note_tried(self._line):
            return "that the PIN is tried cannot be noted in the journal, so it is not tried"
        try:
            await watch.answer(watch.bus.call(modem.sim, f"{SIM}.SendPin", "s", [self._pin], limit_s=PIN_S))
        except BusError as error:
            return self._refused(error)
        except Gone:
            self._pins.note_outcome(self._line, "unanswered")
            raise
        self._pins.note_outcome(self._line, "accepted")
        return ""

    def _obstacle(self, modem: Modem) -> str:
        """Why no PIN is sent; empty if one is."""
        if modem.lock != SIM_PIN:
            asks = f"the modem asks for its {modem.lock_words}"
            return asks if modem.lock > 1 else "the modem is locked and does not say how"
        if self._pin is None:
            return "the SIM asks for a PIN, and there is none in the secrets file"
        if not self._pins.may_try(self._line):
            said = "the SIM has refused its PIN before, and it is not tried again"
            return f"{said} without `farlink bundle redial FILE LINE --try-pin`"
        if modem.tries is not None and modem.tries <= 1:
            is_left = "one try of the PIN is left, which is not spent" if modem.tries else "no try of the PIN is left"
            return f"{is_left}; unlock the SIM with mmcli"
        return "" if modem.sim else "the SIM asks for a PIN, and ModemManager does not name it"

    def _refused(self, error: BusError) -> str:
        if error.is_undelivered:
            self._pins.note_outcome(self._line, "allowed")
            return f"the PIN cannot be given to the SIM: {error}"
        self._pins.note_outcome(self._line, "unanswered" if error.is_unanswered else "refused")
        said = "has not answered to its PIN" if error.is_unanswered else "has refused its PIN"
        return f"the SIM {said}, which is not tried again: {error}"
