"""TCP or datagrams through a bundle of real pppds whose calls are dropped by chance, in a guest.

`python -m tests.qemu.ppp_load FOLDER CELL.json` plays one cell and writes `FOLDER/found.json`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from farlink.operator.bank import pace
from tests.qemu.places import MissedError
from tests.qemu.ppp_world import World, play, why_left
from tests.qemu.traffic import Datagrams, Transfer, lateness

_LOOK_S = 0.1
_STATE_EVERY = 20
# The guest is emulated: it cannot wake for each 3 bytes of sixteen modems.
_PIECE_S = 0.05
_NO_CARRIER = "no carrier"
# In the guest's memory: the logs there are read ten times a second.
_HERE = Path("/tmp/load")


class Lines:
    """Dials all lines again and again, and notes when each is part of the bundle at both ends."""

    def __init__(self, world: World, cell: dict[str, Any]) -> None:
        self._world, self._cell = world, cell
        self.is_up = [False] * world.lines
        self._noticed = [asyncio.Event() for _ in range(world.lines)]
        self.events: list[tuple[float, int, str]] = []

    def note(self, at: int, what: str) -> None:
        """Keep an event."""
        self.events.append((time.monotonic(), at, what))

    async def keep(self, at: int) -> None:
        """Dial, wait for the end of the call, pause, dial again."""
        while True:
            try:
                await self._world.bring_up(at, within_s=self._cell["attach_limit_s"])
            except MissedError as error:
                self.note(at, f"failed: {error}")
                for phone in self._world.pair(at):
                    phone.close()
                await asyncio.sleep(self._cell["failed_s"])
                continue
            self.is_up[at] = True
            self._noticed[at].set()
            self.note(at, "up")
            while (why := self._why_down(at)) is None:
                await asyncio.sleep(_LOOK_S)
            self.is_up[at] = False
            self.note(at, "down")
            if why != _NO_CARRIER:
                self.note(at, f"left the bundle: {why}")
            await self._noticed[at].wait()
            for phone in self._world.pair(at):
                phone.close()
            await asyncio.sleep(self._cell["dropped_s"])

    def _why_down(self, at: int) -> str | None:
        phones = self._world.pair(at)
        if not all(phone.has_carrier for phone in phones):
            return _NO_CARRIER
        return next((f"{phone.end.name}: {why}" for phone in phones if (why := why_left(phone)) is not None), None)

    async def drop(self, at: int, times_s: list[float], begin: float) -> None:
        """Have the bank lose the call of a line at these times, as far as it is up then; `late` is an end that notices late."""
        for due_s in times_s:
            await asyncio.sleep(max(0.0, begin + due_s - time.monotonic()))
            if not self.is_up[at]:
                continue
            self.note(at, "dropped")
            if (late := self._cell.get("late")) is None:
                self._world.drop(at)
            else:
                self._noticed[at].clear()
                await self._world.drop_late(at, late["end"], late["s"])
                self._noticed[at].set()


async def load(cell: dict[str, Any], world: World) -> dict[str, Any]:
    """Bring all lines up, then transfer for the cell's time while calls are lost."""
    lines = Lines(world, cell)
    tasks = [asyncio.ensure_future(lines.keep(at)) for at in range(world.lines)]
    late: list[float] = []
    try:
        while not all(lines.is_up):
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(_LOOK_S)
        await world.addressed()
        begin = time.monotonic()
        tasks.append(asyncio.ensure_future(lateness(late)))
        for at in range(world.lines):
            tasks.append(asyncio.ensure_future(lines.drop(at, drop_times_s(cell, at), begin)))
        transfer: Transfer | Datagrams
        if "datagrams" in cell:
            transfer = Datagrams(world.ends, for_s=cell["duration_s"], **cell["datagrams"])
        else:
            transfer = Transfer(world.ends, cell.get("window_bytes"), is_clamped=cell.get("is_clamped", False))
        shares = {"all": 0, "any": 0, "looks": 0}
        states: list[dict[str, float]] = []
        while (now := time.monotonic()) < begin + cell["duration_s"]:
            shares["looks"] += 1
            shares["all"] += all(lines.is_up)
            shares["any"] += any(lines.is_up)
            if isinstance(transfer, Transfer) and shares["looks"] % _STATE_EVERY == 0:
                states.append({"at_s": round(now - begin, 2), **transfer.state()})
            await asyncio.sleep(max(0.0, now + _LOOK_S - time.monotonic()))
        arrived = transfer.arrived
        wrong = await transfer.close()
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
    late.sort()
    return {
        "all_up": shares["all"] / shares["looks"],
        "any_up": shares["any"] / shares["looks"],
        "bytes": arrived[-1][1] if arrived else 0,
        "arrived": [(round(at - begin, 2), total) for at, total in arrived],
        "events": [(round(at - begin, 2), line, what) for at, line, what in lines.events],
        "wrong": wrong,
        "tcp": states,
        "late_p99_s": late[int(0.99 * len(late))],
        "late_most_s": late[-1],
    }


def drop_times_s(cell: dict[str, Any], at: int) -> list[float]:
    """When calls of a line are lost, by a Poisson process of its own."""
    if not cell["mean_up_s"]:
        return []
    draw = random.Random(f"{cell['seed']} {at}")
    times, now = [], 0.0
    while (now := now + draw.expovariate(1 / cell["mean_up_s"])) < cell["duration_s"]:
        times.append(now)
    return times


def main() -> None:
    """Play one cell."""
    folder, cell = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    pace._PIECE_S = _PIECE_S

    async def act(world: World) -> dict[str, Any]:
        return await load(cell, world)

    bank = {"rate_bps": cell["rate_bps"], "delay_s": cell["delay_s"]}
    how = {"lines": cell["lines"], "set_up_s": cell["set_up_s"], "ppp": cell["ppp"], **bank}
    try:
        found = asyncio.run(play(act, _HERE, **how))
        (folder / "found.json").write_text(json.dumps(found))
    finally:
        shutil.copytree(_HERE, folder / "run")


if __name__ == "__main__":
    main()
