"""Many clients, and clients that mean no good, at a pair of gateways; cells of `gateway_paths.py`.

Ten connections send over the same path meanwhile. All programs share the cores with the generators of load, whose rate and
processor time are part of the results.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import page
from gateway_pair import FORWARD, HTTP, RATE_BPS, SERVED, SOCKS, UDP, WEB, Pair
from wire import CLI

GATEWAYS = ("ship", "shore")
# A second forward, for the load; its destination.
LOADED, LOADED_SERVED = 6002, 5202
NEIGHBOURS, SETTLE_S, ALONE_S, LOAD_S = 10, 10.0, 10.0, 15.0
IDLE, IDLE_PER_S, ACTIVE = 10_000, 500, 1000
# Connections to a sink that does not read, and how long their windows and buffers take to fill.
MUTE, FILL_S = 2, 70.0
# Of their rate neighbours are to keep.
SHARE = 0.8
MIB = 1 << 20
_FORWARD = f'[[forward]]\nlisten = "127.0.0.1:{LOADED}"\ndestination = "127.0.0.1:{LOADED_SERVED}"\n'


def peak_bytes(pair: Pair, name: str) -> int:
    """Most resident memory that a running program has had."""
    status = Path(f"/proc/{pair.running[name].pid}/status").read_text(encoding="ascii")
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(peak) * 1024


def peaks(pair: Pair, names: Sequence[str] = GATEWAYS) -> dict[str, Any]:
    """Most memory of gateways, and what `farlink gateway check` calls their bound."""
    check = [*CLI, "gateway", "check", "ship.toml"]
    said = subprocess.run(check, cwd=pair.folder, capture_output=True, text=True, check=True).stdout
    [bound] = re.findall(r"take (\d+) MiB at most", said)
    return {"peak_bytes": [peak_bytes(pair, name) for name in names], "bound_bytes": int(bound) * MIB}


def idle(sessions: int, pair: Pair) -> dict[str, Any]:
    """Connections that say nothing, opened slowly over one or two sessions; at the end each brings a byte there and back."""
    ports = {"ship": FORWARD} | ({"boat": LOADED} if sessions == 2 else {})
    names = (*ports, "shore")
    with pair.gateways(RATE_BPS, f"connections = {IDLE + 1000}", boat_port=ports.get("boat")):
        pair.role("echo", pair.far, "server", f"127.0.0.1:{SERVED}", "--kind", "echo")
        before = [pair.memory_bytes(name) for name in names]
        seconds = IDLE / IDLE_PER_S + 15
        words = ("--kind", "idle", "--count", str(IDLE // sessions), "--per-s", str(IDLE_PER_S / sessions))
        for name, port in ports.items():
            pair.role(f"clients-{name}", pair.near, "clients", f"127.0.0.1:{port}", *words, "--seconds", str(seconds))
        time.sleep(seconds - 2)
        told = pair.said("echo")[-1]
        while_idle = [pair.memory_bytes(name) for name in names]
        cpu = [pair.cpu_s(name) for name in names]
        ends = [pair.done(f"clients-{name}", 120)[-1] for name in ports]
        return {
            "wanted": IDLE,
            "accepted": told["accepted"],
            "open": told["open"],
            "alive": sum(end["alive"] for end in ends),
            "before_bytes": before,
            "idle_bytes": while_idle,
            "cpu_s": cpu,
            **peaks(pair, names),
        }


def active(pair: Pair) -> dict[str, Any]:
    """Connections that all get as much as they can."""
    with pair.gateways(RATE_BPS, f"connections = {ACTIVE + 24}"):
        pair.role("source", pair.far, "server", f"127.0.0.1:{SERVED}", "--kind", "source")
        words = ("--kind", "pull", "--count", str(ACTIVE), "--per-s", "200", "--seconds", "60")
        pair.role("clients", pair.near, "clients", f"127.0.0.1:{FORWARD}", *words)
        lines = pair.done("clients", 120)
        settled = [one for one in lines if one["unix_s"] > lines[-1]["unix_s"] - 40 and not one.get("end")]
        span_s = settled[-1]["unix_s"] - settled[0]["unix_s"]
        last = lines[-1]
        return {
            "wanted": ACTIVE,
            "alive": last["alive"],
            "goodput_bps": (settled[-1]["bytes"] - settled[0]["bytes"]) * 8 / span_s,
            "least_bytes": last["least"],
            "most_bytes": last["most"],
            **peaks(pair),
        }


def beside(pair: Pair, start: Callable[[Pair], None], begun_s: float = 0.0) -> dict[str, Any]:
    """What a load does to memory, and to ten connections that send as much as they can; it begins so long before it counts."""
    with pair.gateways(RATE_BPS, more=_FORWARD):
        pair.role("sink", pair.far, "server", f"127.0.0.1:{SERVED}", "--every", "0.5")
        pair.role("web", pair.far, "web", f"127.0.0.1:{WEB}")
        words = ("--kind", "push", "--count", str(NEIGHBOURS))
        pair.role("neighbours", pair.near, "clients", f"127.0.0.1:{FORWARD}", *words)
        time.sleep(SETTLE_S + ALONE_S)
        before, from_s = [pair.memory_bytes(name) for name in GATEWAYS], time.time()
        cpu = [pair.cpu_s(name) for name in GATEWAYS]
        start(pair)
        time.sleep(begun_s)
        began_s = time.time()
        found = {"requests": {name: _asked(pair, name) for name in ("socks", "http")}}
        time.sleep(max(0.0, began_s + LOAD_S - time.time()))
        to_s = time.time()
        used = [(pair.cpu_s(name) - old) / (to_s - from_s) for name, old in zip(GATEWAYS, cpu, strict=True)]
        time.sleep(2)
        sink = pair.said("sink")
        alone, loaded = _bps(sink, from_s - ALONE_S, from_s), _bps(sink, began_s + 1, to_s)
        loads = [pair.done(name, 60)[-1] for name in pair.running if name.startswith("load")]
        found |= {"alone_bps": alone, "loaded_bps": loaded, "cpu": used, "before_bytes": before, "loads": loads}
        return found | peaks(pair) | {"after": _asked(pair, "socks"), "open": sink[-1]["open"]}


def _bps(lines: list[dict[str, Any]], from_s: float, to_s: float) -> float:
    within = [one for one in lines if from_s <= one["unix_s"] <= to_s and "bytes" in one]
    return (within[-1]["bytes"] - within[0]["bytes"]) * 8 / (within[-1]["unix_s"] - within[0]["unix_s"])


def _asked(pair: Pair, way: str) -> list[int]:
    """Status of three small requests, as curl gives them; 0 is answered."""
    proxy = f"socks5h://127.0.0.1:{SOCKS}" if way == "socks" else f"http://127.0.0.1:{HTTP}"
    words = ("curl", "-s", "-o", "/dev/null", "--max-time", "3", "--proxytunnel", "--proxy", proxy)
    return [pair.run(*words, f"http://127.0.0.1:{WEB}/1000", within_s=20).returncode for _ in range(3)]


def mute(pair: Pair) -> None:
    """A destination that never reads, and clients that send to it as much as they can."""
    pair.role("mute", pair.far, "server", f"127.0.0.1:{LOADED_SERVED}", "--kind", "mute")
    words = ("--kind", "push", "--count", str(MUTE), "--seconds", str(FILL_S + LOAD_S + 5))
    pair.role("load", pair.near, "clients", f"127.0.0.1:{LOADED}", *words)


def slow(kind: str, port: int, pair: Pair) -> None:
    """1,000 clients whose request comes a byte a second."""
    words = ("--kind", kind, "--count", "1000", "--seconds", str(LOAD_S))
    pair.role("load", pair.near, "loris", f"127.0.0.1:{port}", *words)


def storm(pair: Pair) -> None:
    """10,000 connections a second, by two generators; each says a byte and is reset."""
    pair.role("served", pair.far, "server", f"127.0.0.1:{LOADED_SERVED}")
    for number in (1, 2):
        words = ("--per-s", "5000", "--seconds", str(LOAD_S))
        pair.role(f"load{number}", pair.near, "storm", f"127.0.0.1:{LOADED}", *words)


def flood(pair: Pair) -> None:
    """Datagrams of 1,200 bytes, as many as one core sends."""
    pair.role("load", pair.near, "flood", f"127.0.0.1:{UDP}", "--seconds", str(LOAD_S))


LOADS: dict[str, Callable[[Pair], dict[str, Any]]] = {
    "10,000 idle, one session": partial(idle, 1),
    "10,000 idle, two sessions": partial(idle, 2),
    "1,000 active": active,
    "a sink that does not read": lambda pair: beside(pair, mute, FILL_S),
    "slow requests, SOCKS5": lambda pair: beside(pair, lambda to: slow("socks", SOCKS, to)),
    "slow requests, HTTP": lambda pair: beside(pair, lambda to: slow("http", HTTP, to)),
    "10,000 connections a second": lambda pair: beside(pair, storm),
    "flood of datagrams": lambda pair: beside(pair, flood),
}


def _mib(values: list[int]) -> str:
    return " / ".join(f"{value / MIB:.0f}" for value in values)


def many_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Memory of both gateways with many connections."""
    rows = []
    for name in LOADS:
        one = found.get(name, {}).get("values", {})
        if "wanted" not in one:
            continue
        is_idle = "idle_bytes" in one
        did = f"{one['alive']:,} answered" if is_idle else f"{one['goodput_bps'] / 1e6:.2f} Mb/s together"
        settled = _mib(one["idle_bytes"]) if is_idle else ""
        row = [name, f"{one.get('open', one['alive']):,}", did, settled, _mib(one["peak_bytes"])]
        rows.append([*row, f"{one['bound_bytes'] / MIB:,.0f}"])
    head = ["connections", "open", "", "MiB of near / far gateways", "at most", "bound of `farlink gateway check`, MiB"]
    return page.table(head, rows, "lr")


def load_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each load beside ten connections."""
    rows = []
    for name in LOADS:
        if name not in found or "loads" not in found[name]["values"]:
            continue
        one = found[name]["values"]
        kept = one["loaded_bps"] / one["alone_bps"]
        loads = one["loads"]
        per_s = sum(load.get("per_s", 0.0) for load in loads)
        rows.append(
            [
                name,
                f"{per_s:,.0f}" if per_s else "-",
                " + ".join(f"{load['cpu']:.2f}" for load in loads if "cpu" in load) or "-",
                " / ".join(f"{cpu:.2f}" for cpu in one["cpu"]),
                _mib(one["before_bytes"]),
                _mib(one["peak_bytes"]),
                f"{one['alone_bps'] / 1e6:.2f}",
                f"{one['loaded_bps'] / 1e6:.2f}",
                f"{kept:.2f}",
                "yes" if kept >= SHARE else "**no**",
                " / ".join(f"{sum(status == 0 for status in one['requests'][way])} of 3" for way in ("socks", "http")),
            ]
        )
    head = [
        *("load", "per s", "its CPU", "CPU of both", "MiB before", "MiB at most", "ten alone, Mb/s", "beside it, Mb/s"),
        *("kept", "0.8", "requests answered, SOCKS5 / HTTP"),
    ]
    return page.table(head, rows, "lr")
