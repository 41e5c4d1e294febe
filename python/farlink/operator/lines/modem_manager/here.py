"""The modems that ModemManager has now, for who only looks."""

from __future__ import annotations

import asyncio

from farlink.operator.lines.modem_manager.bus import BusError
from farlink.operator.lines.modem_manager.modem import Modem
from farlink.operator.lines.modem_manager.watch import Watch


async def modems_here() -> tuple[list[Modem], str]:
    """All modems, and why they cannot be listed; the second is empty if they can.

    Raises
    ------
    MissingExtraError
        If dbus-fast is not installed.
    """
    watch = Watch(asyncio.Event())
    try:
        await watch.open()
    except BusError as error:
        return [], str(error)
    try:
        return await watch.modems(is_new=True), ""
    except BusError as error:
        return [], f"ModemManager does not answer: {error}"
    finally:
        await watch.close()
