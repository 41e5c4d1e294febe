"""What happens to a bundle of real pppds, in a guest: each function makes one thing happen and returns what was seen.

`python -m tests.qemu.ppp_rows FOLDER NAME ...` plays them one after the other and writes `FOLDER/found.json`.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.qemu.places import until
from tests.qemu.ppp_load import load
from tests.qemu.ppp_world import World, play
from tests.qemu.traffic import Stream, Transfer

Found = dict[str, Any]


async def _up(world: World) -> list[float]:
    """Bring all lines up, one after the other: how long pppd took for each."""
    took = [await world.bring_up(at) for at in range(world.lines)]
    await world.addressed()
    return took


def _interfaces(world: World) -> Found:
    return {name: sorted(end.interfaces()) for name, end in world.ends.items()}


async def smoke(world: World) -> Found:
    """Two links up, packets over both, one dropped by the bank, packets over the other, dialled again, packets over both."""
    took = await _up(world)
    found: Found = {"attached_s": took, "both": await world.used()}
    stream = Stream(world.ends)
    stream.start(24)
    await asyncio.sleep(1.0)
    world.drop(1)
    statuses = [await phone.ended() for phone in world.pair(1)]
    found["dropped"] = {"statuses": statuses, "interfaces": _interfaces(world)}
    found["one"] = await world.used(4)
    again = await world.bring_up(1)
    found["again"] = {"attached_s": again, **await world.used()}
    await stream.wait()
    await asyncio.sleep(1.0)
    found["stream"] = {"sent": len(stream.sent), "arrived": len(stream.arrived), "longest_gap_s": stream.longest_gap_s()}
    stream.close()
    found["addresses"] = {name: end.interfaces()["ppp0"]["address"] for name, end in world.ends.items()}
    return found


async def both_at_once(world: World) -> Found:
    """All lines are dialled at the same time, as an operator does it."""
    took = await asyncio.gather(*(world.bring_up(at) for at in range(world.lines)))
    await world.addressed()
    return {"attached_s": took, "both": await world.used(), "interfaces": _interfaces(world)}


async def later_link_dropped(world: World) -> Found:
    """Carrier loss of a later link."""
    await _up(world)
    world.drop(2)
    statuses = [await phone.ended() for phone in world.pair(2)]
    after = await world.used()
    return {"statuses": statuses, "after": after, "again_s": await world.bring_up(2), "again": await world.used()}


async def first_link_dropped(world: World) -> Found:
    """Carrier loss of the first link: its pppd owns the bundle."""
    await _up(world)
    owners = world.pair(0)
    world.drop(0)
    await asyncio.sleep(4.0)
    found: Found = {"owners_live": [phone.lives for phone in owners], "after": await world.used()}
    for phone in owners:
        phone.close()
    found["again_s"] = await world.bring_up(0)
    found["again"] = await world.used()
    return found


async def hung_up(world: World) -> Found:
    """SIGHUP to the first pppd of the near end."""
    await _up(world)
    world.near[0].signal(signal.SIGHUP)
    await asyncio.sleep(6.0)
    return {
        "lives": world.near[0].lives,
        "others": [phone.lives for phone in world.near[1:]],
        "after": await world.used(),
        "log": world.ends["near"].log(0)[-600:],
    }


async def owner_terminated(world: World) -> Found:
    """SIGTERM to the first pppd of the near end."""
    await _up(world)
    world.near[0].signal(signal.SIGTERM)
    await until(lambda: not any(phone.lives for phone in world.near), "end of the near pppds", 20)
    far = [phone.lives for phone in world.far]
    began = time.monotonic()
    for phone in world.near:
        phone.close()
    await until(lambda: not any(phone.lives for phone in world.far), "end of the far pppds", 20)
    return {
        "far_when_near_ended": far,
        "far_ended_s": time.monotonic() - began,
        "statuses": [phone.pppd.returncode for phone in (*world.near, *world.far) if phone.pppd],
        "interfaces": _interfaces(world),
    }


async def owner_killed(world: World) -> Found:
    """SIGKILL to the first pppd of the near end, then its line is dialled again."""
    await _up(world)
    world.near[0].signal(signal.SIGKILL)
    await asyncio.sleep(4.0)
    found: Found = {
        "near": [phone.lives for phone in world.near],
        "interfaces": _interfaces(world),
        "after": await world.used(4, within_s=3),
    }
    world.near[0].close()
    await asyncio.sleep(3.0)
    found["far"] = [phone.lives for phone in world.far]
    await world.call(0)
    await world.start(0)
    await asyncio.sleep(12.0)
    found["redialled"] = {
        "near": {name: one["address"] for name, one in world.ends["near"].interfaces().items()},
        "log": world.ends["near"].log(0)[-500:],
        "used": await world.used(4, within_s=3),
    }
    # The rule: end all pppds of both ends, and dial all again.
    await world.close()
    found["interfaces_ended"] = _interfaces(world)
    await _up(world)
    found["all_again"] = await world.used()
    return found


async def last_link_lost(world: World) -> Found:
    """All links are lost; then a line that was not the first comes up."""
    await _up(world)
    for at in range(world.lines):
        world.drop(at)
    statuses = [await phone.ended() for phone in (*world.near, *world.far)]
    found: Found = {"statuses": statuses, "interfaces": _interfaces(world)}
    found["next_s"] = await world.bring_up(1)
    await world.addressed()
    found["next"] = await world.used()
    await world.bring_up(0)
    found["both"] = await world.used()
    return found


async def persisting(world: World) -> Found:
    """`persist`: the first link is lost, then a later one, and each is dialled again before pppd opens its port again."""
    for at in range(world.lines):
        await world.call(at)
        await world.attach(at, more=("persist", "holdoff", "8", "maxfail", "0"))
    await world.addressed()
    found: Found = {}
    for at in (0, 1):
        logs = [len(phone.end.log(at)) for phone in world.pair(at)]
        world.drop(at)
        await world.call(at)
        await asyncio.sleep(20.0)
        said = [phone.end.log(at)[length:] for phone, length in zip(world.pair(at), logs, strict=True)]
        found[f"line_{at + 1}"] = {
            "lives": [phone.lives for phone in world.pair(at)],
            "negotiations": [log.count("Starting negotiation") for log in said],
            "joined": [len(re.findall("New bundle|Link attached", log)) for log in said],
            "logs": said,
        }
    found["after"] = await world.used()
    return found


async def black_hole(world: World) -> Found:
    """One line of three stays up and carries nothing, until echoes tell."""
    await _up(world)
    stream = Stream(world.ends, every_s=0.25)
    stream.start(160)
    await asyncio.sleep(3.0)
    began = time.monotonic()
    world.deafen(1)
    phones = world.pair(1)
    await until(lambda: not any(phone.lives for phone in phones), "end of the deaf link", 60)
    noticed_s = time.monotonic() - began
    await asyncio.sleep(6.0)
    stream.close()
    lost = [number for number, at in stream.sent.items() if 0.5 < at - began < noticed_s - 1 and number not in stream.arrived]
    during = [number for number, at in stream.sent.items() if 0.5 < at - began < noticed_s - 1]
    after = [at for number, at in stream.arrived.items() if stream.sent[number] > began + noticed_s + 0.5]
    return {
        "noticed_s": noticed_s,
        "sent_during": len(during),
        "lost_during": len(lost),
        "gap_s": stream.longest_gap_s(),
        "arrived_after": len(after),
        "statuses": [phone.pppd.returncode for phone in phones if phone.pppd],
    }


async def black_hole_both_ways(world: World, for_s: float = 150.0) -> Found:
    """One line of three carries nothing, while packets come and go: whether echoes tell, if they wait for a pause."""
    await _up(world)
    directions = {"near": "far", "far": "near"}
    streams = [
        Stream(world.ends, every_s=0.1, length=100, sender=sender, receiver=receiver) for sender, receiver in directions.items()
    ]
    for stream in streams:
        stream.start(int(10 * for_s))
    await asyncio.sleep(3.0)
    began = time.monotonic()
    world.deafen(1)
    phones = world.pair(1)
    while any(phone.lives for phone in phones) and time.monotonic() < began + for_s - 5:
        await asyncio.sleep(0.2)
    found: Found = {"lives": [phone.lives for phone in phones], "after_s": time.monotonic() - began}
    sent = [[number for number, at in stream.sent.items() if at > began + 0.5] for stream in streams]
    found["sent"] = [len(numbers) for numbers in sent]
    found["arrived"] = [
        sum(number in stream.arrived for number in numbers) for stream, numbers in zip(streams, sent, strict=True)
    ]
    for stream in streams:
        stream.close()
    return found


async def loaded(world: World, for_s: float = 90.0) -> Found:
    """Echoes while TCP fills the lines of a slow bundle: its first ten segments alone take them 25 s."""
    await _up(world)
    transfer = Transfer(world.ends)
    began = time.monotonic()
    phones = [*world.near, *world.far]
    while time.monotonic() < began + for_s and all(phone.lives for phone in phones):
        await asyncio.sleep(0.2)
    took = time.monotonic() - began
    await asyncio.sleep(2.0)
    await transfer.close()
    killed = [f"{phone.end.name} {phone.at + 1}" for phone in phones if not phone.lives]
    logs = "".join(world.ends[name].log(at) for name in world.ends for at in range(world.lines))
    arrived = transfer.arrived[-1][1] if transfer.arrived else 0
    return {"killed": killed, "after_s": took, "no_response": logs.count("No response to"), "arrived_bytes": arrived}


async def given_up(world: World) -> Found:
    """TCP fills the lines, pppd gives healthy links up, and their calls stay as they are: each line has to be dialled again."""
    for at in range(world.lines):
        # The near end's lines are the full ones.
        path = world.ends["far"].options(at)
        path.write_text(re.sub(r"lcp-echo-interval \d+", "lcp-echo-interval 0", path.read_text()))
    cell = {"duration_s": 100.0, "mean_up_s": 0.0, "dropped_s": 2.0, "failed_s": 5.0, "attach_limit_s": 40.0}
    return await load(cell, world)


async def request_repeated(world: World) -> Found:
    """LCP requests are repeated sooner than the round trip: some arrive when the link is open."""
    for at in range(world.lines):
        await world.call(at)
        await world.start(at, ("debug",))
        await asyncio.sleep(30.0)
    logs = {f"{name} {at + 1}": world.ends[name].log(at) for name in world.ends for at in range(world.lines)}
    return {
        "requests": {name: len(re.findall(r"sent \[LCP ConfReq", log)) for name, log in logs.items()},
        "joined": {name: len(re.findall(r"New bundle|Link attached", log)) for name, log in logs.items()},
        "used": await world.used(),
        "interfaces": _interfaces(world),
        "logs": {name: log[-1500:] for name, log in logs.items()},
    }


async def other_discriminator(world: World) -> Found:
    """A line whose far end says another endpoint discriminator, with the same user name."""
    await world.bring_up(0)
    await world.addressed()
    path = world.ends["far"].options(1)
    path.write_text(re.sub(r"endpoint local:\S+", "endpoint local:0a.0b", path.read_text()))
    await world.call(1)
    await world.start(1)
    await asyncio.sleep(12.0)
    return {"log": world.ends["near"].log(1)[-900:], "interfaces": _interfaces(world), "used": await world.used(4)}


async def no_multilink(world: World) -> Found:
    """A peer that refuses MRRU: each call is a PPP link of its own."""
    for at in range(world.lines):
        await world.call(at)
        await world.start(at, far_only=("nomp",))
        await asyncio.sleep(10.0)
    near = world.ends["near"]
    return {
        "interfaces": {name: end.interfaces() for name, end in world.ends.items()},
        "lives": [phone.lives for phone in (*world.near, *world.far)],
        "logs": [near.log(at)[-900:] for at in range(world.lines)],
    }


def _set_mrru(world: World, at: int, mrru_bytes: int) -> None:
    """What the far end of a line takes at most, as one packet of the bundle."""
    path = world.ends["far"].options(at)
    path.write_text(re.sub(r"mrru \d+", f"mrru {mrru_bytes}", path.read_text()))


async def _of_mrru(world: World) -> Found:
    """The bundle's MTU at both ends, and whether packets above the smaller MRRU arrive."""
    mtus = {
        name: {interface: one["mtu_bytes"] for interface, one in end.interfaces().items()} for name, end in world.ends.items()
    }
    return {"mtu_bytes": mtus, "used": await world.used(length=1200)}


async def unequal_mrru(world: World) -> Found:
    """The far end takes packets of 700 bytes at most, the near one of 1500."""
    for at in range(world.lines):
        _set_mrru(world, at, 700)
    await _up(world)
    return await _of_mrru(world)


async def other_mrru_later(world: World) -> Found:
    """The second line of the far end says another MRRU than the first."""
    _set_mrru(world, 1, 700)
    await _up(world)
    return await _of_mrru(world)


Row = tuple[Callable[[World], Awaitable[Found]], dict[str, Any]]
# One packet waits in a line of 19200 bit/s for 0.6 s; the check supposes 2400.
_QUICK_ECHO = "echo_interval_s = 2\necho_failures = 3\nline_packets = 1\n"
_ECHO = "echo_interval_s = 15\necho_failures = 4\n"
ROWS: dict[str, Row] = {
    "smoke": (smoke, {}),
    "both at once, zaghloul-2005": (both_at_once, {"top": 'preset = "zaghloul-2005"'}),
    "later link dropped": (later_link_dropped, {"lines": 3}),
    "first link dropped": (first_link_dropped, {"lines": 3}),
    "SIGHUP to the owner": (hung_up, {"lines": 3}),
    "SIGTERM to the owner": (owner_terminated, {"lines": 3}),
    "SIGKILL to the owner": (owner_killed, {"lines": 3}),
    "last link lost": (last_link_lost, {"lines": 2}),
    "persist": (persisting, {"lines": 3}),
    "black hole": (black_hole, {"lines": 3, "ppp": _QUICK_ECHO}),
    "black hole, packets both ways, adaptive": (black_hole_both_ways, {"lines": 3, "ppp": _ECHO + "echo_adaptive = true\n"}),
    "black hole, packets both ways": (black_hole_both_ways, {"lines": 3, "ppp": _ECHO + "echo_adaptive = false\n"}),
    "load, 5 s x 3": (
        loaded,
        {
            "rate_bps": 2400,
            "delay_s": 0.5,
            "ppp": "echo_interval_s = 5\necho_failures = 3\necho_adaptive = false\nline_packets = 1",
        },
    ),
    "load, farlink": (loaded, {"rate_bps": 2400, "delay_s": 0.5}),
    "load, zaghloul-2005": (
        partial(loaded, for_s=180.0),
        {"rate_bps": 2400, "delay_s": 0.5, "top": 'preset = "zaghloul-2005"'},
    ),
    "given up under load": (
        given_up,
        {
            "rate_bps": 2400,
            "delay_s": 0.5,
            "ppp": "echo_interval_s = 5\necho_failures = 3\necho_adaptive = false\nline_packets = 1",
        },
    ),
    "requests repeated": (request_repeated, {"rate_bps": 2400, "delay_s": 1.0, "ppp": "lcp_restart_s = 1\n"}),
    "other discriminator": (other_discriminator, {}),
    "peer without multilink": (no_multilink, {}),
    "unequal MRRU": (unequal_mrru, {}),
    "other MRRU later": (other_mrru_later, {}),
}


def main() -> None:
    """Play rows."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    found: dict[str, Found] = {}
    for name in names:
        act, how = ROWS[name]
        found[name] = asyncio.run(play(act, folder / name.replace(" ", "-"), **how))
        found[name]["uptime_s"] = float(Path("/proc/uptime").read_text().split()[0])
        (folder / "found.json").write_text(json.dumps(found, indent=1))
        print(name, json.dumps(found[name])[:2000], flush=True)


if __name__ == "__main__":
    main()
