"""One call by a modem outside the bundle: it is dialled, PPP begins, something is done meanwhile, and it is hung up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from farlink.operator.at import Profile
from farlink.operator.backend.link import BackEnd
from farlink.operator.config.bundle import Line
from farlink.operator.lines.at_line import AtLine
from farlink.operator.lines.line import Pins, Report

_HANG_UP_S = 15.0
_CALL = 1


async def call(
    config: Line,
    profile: Profile,
    back_end: BackEnd,
    *,
    pins: Pins,
    pin: str | None,
    meanwhile: Callable[[], Awaitable[None]],
    set_up_limit_s: float,
) -> str:
    """Make a call.

    Parameters
    ----------
    config, profile
        Of the line.
    back_end
        Carries PPP.
    pins, pin
        Whether a PIN may be tried, and that of the SIM.
    meanwhile
        Runs while the link is up; then the call is hung up.
    set_up_limit_s
        From the dial until the link is up.

    Returns
    -------
    str
        Empty if the link came up and stayed so, else why not.
    """
    link_is_up, failure = asyncio.Event(), asyncio.get_running_loop().create_future()

    def reported(report: Report) -> None:
        match report.event:
            case "carrier":
                line.start_link(_CALL)
            case "link-up":
                link_is_up.set()
            case "dial-failed" | "dropped" | "modem-failed" | "port-gone" if not failure.done():
                failure.set_result(report.cause or report.event)

    line = AtLine(config, profile, back_end, reported, pins=pins, pin=pin)
    moving = asyncio.create_task(line.run())
    working: asyncio.Task[None] | None = None
    try:
        line.dial(_CALL)
        up = asyncio.create_task(link_is_up.wait())
        try:
            await asyncio.wait({up, failure, moving}, timeout=set_up_limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up.cancel()
        if moving.done():
            moving.result()  # a fault of this program
        if not link_is_up.is_set():
            return str(failure.result()) if failure.done() else f"no link within {set_up_limit_s:g} s"
        working = asyncio.create_task(_awaited(meanwhile))
        await asyncio.wait({working, failure, moving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (working, moving):
            if task.done():
                task.result()
        return str(failure.result()) if failure.done() and not working.done() else ""
    finally:
        if working is not None:
            working.cancel()
        line.hang_up(ends_bundle=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_HANG_UP_S):
                while not line.is_idle and not moving.done():
                    await asyncio.sleep(0.05)
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)
        await back_end.tear_down()


async def _awaited(what: Callable[[], Awaitable[None]]) -> None:
    await what()
