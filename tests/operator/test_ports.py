"""A program that has a bank in its own loop does things to modems while it runs."""

from __future__ import annotations

import asyncio
import os

import pytest

from farlink.errors import OperatorError
from farlink.operator.bank import Ports, of_options, serve


async def said(port: int, until: bytes) -> bytes:
    text = b""
    while until not in text:
        await asyncio.sleep(0.02)
        try:
            data = os.read(port, 1024)
        except BlockingIOError:
            continue
        except OSError:
            data = b""
        if not data:
            return text + b"hang-up"
        text += data
    return text


def test_a_call_is_counted_and_dropped_by_the_program_that_has_the_bank(tmp_path):
    async def act() -> None:
        held: list[Ports] = []
        ready = asyncio.Event()
        config = of_options(modems=2, profile="hayes", rate_bps=80000, delay_s=0.0)
        bank = asyncio.ensure_future(serve(config, folder=tmp_path / "ports", ready=lambda _: ready.set(), control=held.append))
        await ready.wait()
        [ports] = held
        near, far = (os.open(tmp_path / "ports" / f"modem-{at}", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK) for at in (1, 2))
        assert ports.carried_bytes("modem-1") is None
        await asyncio.sleep(0.2)  # until the bank has seen that they are open
        os.write(near, b"ATDT881600005002\r")
        await said(far, b"RING")
        os.write(far, b"ATA\r")
        await said(far, b"CONNECT 115200\r\n")
        await said(near, b"CONNECT 115200\r\n")
        os.write(near, b"x" * 100)
        assert (await said(far, b"x" * 100)).endswith(b"x" * 100)
        assert (ports.carried_bytes("modem-1"), ports.carried_bytes("modem-2")) == (100, 0)

        with pytest.raises(OperatorError, match="'modem-3'"):
            ports.do("modem-3", "drop")
        with pytest.raises(OperatorError, match="'explode'"):
            ports.do("modem-1", "explode")
        ports.do("modem-2", "drop")
        assert (await said(near, b"hang-up")).endswith(b"hang-up")
        assert ports.carried_bytes("modem-1") is None
        os.close(near)
        os.close(far)
        bank.cancel()

    asyncio.run(asyncio.wait_for(act(), 60))


def test_what_waits_for_a_full_call_is_gone_when_the_port_is_closed(tmp_path):
    """Or the modem would take it for commands when the port is opened again."""

    async def act() -> None:
        ready = asyncio.Event()
        config = of_options(modems=2, profile="hayes", rate_bps=2400, delay_s=0.0)
        bank = asyncio.ensure_future(serve(config, folder=tmp_path / "ports", ready=lambda _: ready.set()))
        await ready.wait()
        names = [tmp_path / "ports" / f"modem-{at}" for at in (1, 2)]
        near, far = (os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK) for name in names)
        await asyncio.sleep(0.2)
        os.write(near, b"ATDT881600005002\r")
        await said(far, b"RING")
        os.write(far, b"ATA\r")
        await said(near, b"CONNECT 115200\r\n")
        while os.write(near, b"x" * 1000) == 1000:
            await asyncio.sleep(0.02)
        os.close(near)
        await said(far, b"hang-up")
        near = os.open(names[0], os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        await asyncio.sleep(0.2)
        os.write(near, b"AT\r")
        answer = await said(near, b"OK")
        assert answer.split() == [b"AT", b"OK"], "its echo, and nothing of the call"
        os.close(near)
        os.close(far)
        bank.cancel()

    asyncio.run(asyncio.wait_for(act(), 30))
