"""Measure `farlink emulate` between network namespaces, as root, and write docs/validation/emulator.md.

Each kind of channel beside the packet engine, how late packets leave, the bound of the speed, and the kernel's tbf: 20 minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import page
from measuring import commit, finish_or_quit, keep_line, kept_lines

import farlink
from farlink.channels import trace_file
from farlink.namespaces import DEVICE, FAR, Namespaces, inside
from farlink.net.emulated import Emulated
from farlink.net.emulation import Emulation
from farlink.scenario import Scenario

KEPT = page.ROOT / "out" / "emulator.jsonl"
TRACES = page.ROOT / "out" / "emulator-traces"
PROBE = page.ROOT / "docs" / "emulator_probe.py"
PORT = "7000"
PAYLOAD_BYTES = 972
PACKET_BYTES = PAYLOAD_BYTES + 28
PACKETS = 12_000
SEED = 11
ENGINE_RUNS = 200

_CALLS = {
    "up": {"distribution": "exponential", "mean_s": 10},
    "redial": {"distribution": "exponential", "mean_s": 1},
}
PLAIN = {"rate_bps": 10e6, "delay_s": 0.05}
# Name -> link, and the rate at which packets come.
CHANNELS: dict[str, tuple[dict[str, Any], float]] = {
    "none": (PLAIN, 5e6),
    "loss": ({**PLAIN, "channel": {"kind": "loss", "loss": 0.02}}, 5e6),
    "ber": ({**PLAIN, "channel": {"kind": "ber", "ber": 5e-6}}, 5e6),
    "gilbert-elliott": (
        {**PLAIN, "channel": {"kind": "gilbert-elliott", "p_good_to_bad": 0.01, "p_bad_to_good": 0.2, "loss_bad": 0.6}},
        5e6,
    ),
    "round-loss": ({**PLAIN, "channel": {"kind": "round-loss", "loss": 0.001, "round_s": 0.1}}, 5e6),
    "outage": ({**PLAIN, "channel": {"kind": "outage", "rate_per_s": 0.3, "down_s": 0.3}}, 5e6),
    "coded": (
        {
            **PLAIN,
            "coding": {
                "modulation": "bpsk",
                "decision": "soft",
                "ebn0_db": 4,
                "code": {"kind": "convolutional", "generators": "171,133"},
                "effort": {"events": 500},
            },
        },
        5e6,
    ),
    "fading": ({**PLAIN, "channel": {"kind": "fading", "file": "synthetic:kiodo?duration_s=60", "ber": 1e-5}}, 5e6),
    "call-drops": ({**PLAIN, "channel": {"kind": "call-drops", **_CALLS}}, 5e6),
    "packet-trace": ({**PLAIN, "channel": {"kind": "packet-trace", "file": "lost.npz"}}, 5e6),
    "bit-trace": ({**PLAIN, "channel": {"kind": "bit-trace", "file": "bits.npz"}}, 5e6),
    "ber-trace": ({**PLAIN, "channel": {"kind": "ber-trace", "file": "ber.npz"}}, 5e6),
    "rate-trace": ({**PLAIN, "rate_bps": {"kind": "rate-trace", "file": "rate.npz"}}, 5e6),
    "delay-trace": ({**PLAIN, "delay_s": {"kind": "delay-trace", "file": "delay.npz"}}, 5e6),
    "chain": (
        {
            **PLAIN,
            "channel": {"kind": "chain", "stages": [{"kind": "loss", "loss": 0.01}, {"kind": "ber", "ber": 1e-6}]},
        },
        5e6,
    ),
    "queue": ({**PLAIN, "queue_packets": 50}, 12e6),
    "bundle": ({"rate_bps": 100e3, "delay_s": 0.05, "bundle": {"lines": 8, "calls": _CALLS, "on_drop": "lose"}}, 4e5),
}


@dataclass
class Cell:
    """What was measured of one link."""

    sent: int
    arrived: int
    loss: float
    """Share of the sent packets that did not arrive."""
    rate_bps: float
    """Between the first arrival and the last, bytes of IP."""
    mean_delay_s: float
    """By the clocks of both ends."""
    p50_delay_s: float
    p99_delay_s: float
    decided_s: float
    """The mean delay that the hops decided."""
    late_p50_s: float
    late_p99_s: float
    late_max_s: float
    valid: bool
    real_time: bool
    engine: list[float]
    """Loss in runs of the engine, run 0 first."""
    date: str
    commit: str
    load: float


def scenario(link: Mapping[str, Any], rate_bps: float, packets: int) -> dict[str, Any]:
    """The link, and the flow of the source for the engine."""
    traffic = {"kind": "cbr", "rate_bps": rate_bps * PAYLOAD_BYTES / PACKET_BYTES, "payload_bytes": PAYLOAD_BYTES}
    return {
        "duration_s": packets * PACKET_BYTES * 8 / rate_bps + 30,
        "seed": SEED,
        "link": dict(link),
        "transport": {"udp": {"kind": "udp"}},
        "flow": {"one": {"transport": "udp", "traffic": {**traffic, "bytes": packets * PAYLOAD_BYTES}}},
    }


def make_traces() -> None:
    """Write the recordings that the links replay into the folder for results."""
    random = np.random.default_rng(1)

    def write(name: str, kind: str, duration_s: float | None = None, **arrays: Any) -> None:
        meta = {} if duration_s is None else {"duration_s": duration_s}
        TRACES.mkdir(parents=True, exist_ok=True)
        trace_file.write(trace_file.Trace(kind, arrays, meta), TRACES / name)

    write("lost.npz", "packet-loss", lost=random.random(3000) < 0.03)
    position = np.sort(random.choice(50_000_000, 300, replace=False)).astype(np.uint64)
    write("bits.npz", "bit-errors", position=position, bits=np.uint64(50_000_000))
    write("ber.npz", "ber", 10.0, ber=10 ** random.uniform(-8, -5, 1000))
    steps = np.arange(0, 10, 0.1)
    write("rate.npz", "rate", 10.0, time_s=steps, rate_bps=random.uniform(8e6, 12e6, len(steps)))
    write("delay.npz", "delay", 10.0, time_s=steps, delay_s=random.uniform(0.04, 0.06, len(steps)))


def pairs(path: Path) -> dict[int, int]:
    """Number -> instant in ns."""
    content = path.read_bytes()
    numbers = memoryview(content).cast("q").tolist()
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def probe(name: str, *words: str) -> list[str]:
    """The command that runs the probe in a namespace."""
    return inside(name, [sys.executable, str(PROBE), *words])


def timed(near: str, far: str, rate_bps: float, packets: int) -> tuple[dict[int, int], dict[int, int]]:
    """Send packets from one namespace to the other; the instants of sending and of arrival."""
    with tempfile.TemporaryDirectory() as folder:
        sent, came = Path(folder, "sent"), Path(folder, "came")
        sink = subprocess.Popen(probe(far, "sink", FAR, PORT, "4", str(came)), stdout=subprocess.PIPE, text=True)
        assert sink.stdout is not None
        sink.stdout.readline()
        interval_s = PACKET_BYTES * 8 / rate_bps
        words = ("source", FAR, PORT, str(PAYLOAD_BYTES), repr(interval_s), str(packets), str(sent))
        subprocess.run(probe(near, *words), check=True)
        sink.wait()
        return pairs(sent), pairs(came)


def played(link: Mapping[str, Any], rate_bps: float, packets: int) -> tuple[dict[int, int], dict[int, int], Emulated]:
    """Send packets over an emulated link."""
    emulation = Emulation(Scenario(scenario(link, rate_bps, packets), TRACES))
    with Namespaces() as namespaces:
        namespaces.move(emulation.tunnel())
        emulation.start()
        sent, came = timed(namespaces.near, namespaces.far, rate_bps, packets)
        return sent, came, emulation.finish(namespaces.unread())


def quantile(values: list[float], q: float) -> float:
    """A value that a share of the others is below."""
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


def measured(name: str) -> Cell:
    """Measure one channel."""
    link, rate_bps = CHANNELS[name]
    packets = PACKETS if rate_bps > 1e6 else PACKETS // 10
    sent, came, result = played(link, rate_bps, packets)
    described = scenario(link, rate_bps, packets)
    # Where losses depend on time, that of the engine's flow is to be the same.
    described["flow"]["one"]["start_s"] = sent[0] / 1e9 - result.started_unix_s
    runs = farlink.run(Scenario(described, TRACES), runs=ENGINE_RUNS).rows
    of_flow = [loss for flow, loss in zip(runs["flow"], runs["loss_fraction"], strict=True) if flow == "one"]
    return cell_of(sent, came, result, [float(loss) for loss in of_flow])


def cell_of(sent: dict[int, int], came: dict[int, int], result: Emulated | None, engine: list[float]) -> Cell:
    """The figures of what was sent and what came."""
    delays = [(came[number] - sent[number]) / 1e9 for number in came]
    # The kernel's buffers and the first wake-ups are not the link's.
    instants = sorted(came.values())[len(came) // 10 :]
    way = result.forward if result else None
    return Cell(
        sent=len(sent),
        arrived=len(came),
        loss=1 - len(came) / len(sent),
        rate_bps=(len(instants) - 1) * PACKET_BYTES * 8e9 / (instants[-1] - instants[0]),
        mean_delay_s=statistics.fmean(delays),
        p50_delay_s=quantile(delays, 0.5),
        p99_delay_s=quantile(delays, 0.99),
        decided_s=(way.delay_mean_s or 0.0) if way else 0.0,
        late_p50_s=(way.late_p50_s or 0.0) if way else 0.0,
        late_p99_s=(way.late_p99_s or 0.0) if way else 0.0,
        late_max_s=(way.late_max_s or 0.0) if way else 0.0,
        valid=result is None or result.valid,
        real_time=result is not None and result.is_real_time,
        engine=engine,
        date=datetime.now(UTC).date().isoformat(),
        commit=commit(),
        load=os.getloadavg()[0],
    )


def through_tbf() -> Cell:
    """The rate of `queue` by the kernel's tbf between two namespaces."""
    link, rate_bps = CHANNELS["queue"]
    names = [f"farlink-tbf-{end}" for end in ("near", "far")]
    run = lambda *words: subprocess.run(words, check=True)  # noqa: E731
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "farl0", "netns", names[0], "type", "veth", "peer", "name", DEVICE, "netns", names[1])
        for name, device, own in ((names[0], "farl0", "198.18.0.1"), (names[1], DEVICE, FAR)):
            run("ip", "-n", name, "addr", "add", f"{own}/30", "dev", device)
            run("ip", "-n", name, "link", "set", "dev", device, "up")
        # tbf counts the 14 bytes of Ethernet.
        rate = f"{link['rate_bps'] * (PACKET_BYTES + 14) / PACKET_BYTES:.0f}bit"
        limit = str(50 * (PACKET_BYTES + 14))
        run("tc", "-n", names[0], "qdisc", "add", "dev", "farl0", "root", "tbf", "rate", rate, "burst", "2000", "limit", limit)
        return cell_of(*timed(*names, rate_bps, PACKETS), None, [])
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def flooded(offered_bps: float) -> dict[str, Any]:
    """Packets of 1500 bytes over a link of 100 Gb/s, at this rate if the source manages it."""
    seconds = 10.0
    emulation = Emulation(scenario({"rate_bps": 1e11, "delay_s": 0.001, "queue_packets": 2000}, 1e9, 10))
    with Namespaces() as namespaces:
        namespaces.move(emulation.tunnel())
        emulation.start()
        before = os.times()
        sink = subprocess.Popen(inside(namespaces.far, [sys.executable, "-c", _DRAIN]), stdout=subprocess.PIPE, text=True)
        assert sink.stdout is not None
        sink.stdout.readline()
        subprocess.run(probe(namespaces.near, "flood", FAR, PORT, "1472", str(seconds), repr(offered_bps)), check=True)
        after = os.times()
        sink.kill()
        result = emulation.finish(namespaces.unread())
    way = result.forward
    # This process only waits beside the emulator.
    took = after.user - before.user + after.system - before.system
    return {
        "rate_bps": way.out_bytes * 8 / seconds,
        "cpu_s_per_packet": took / max(way.out_packets, 1),
        "busy": took / seconds,
        "unread": way.unread,
        "late_p99_s": way.late_p99_s,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "load": os.getloadavg()[0],
    }


# Reads nothing: what arrives is dropped behind the emulator, which costs the two cores the least.
_DRAIN = f"""
import socket, time
line = socket.socket(type=socket.SOCK_DGRAM)
line.bind(({FAR!r}, {PORT}))
print("ready", flush=True)
time.sleep(60)
"""


def far_late() -> Cell:
    """The link of the issue: 10 Mb/s, 250 ms, packets of 1000 bytes at half its rate."""
    return cell_of(*played({"rate_bps": 10e6, "delay_s": 0.25}, 5e6, PACKETS), [])


def measure(arguments: argparse.Namespace) -> None:
    """Measure what is missing, and write the page."""
    found = {line["name"]: line["value"] for line in kept_lines(KEPT)}
    make_traces()
    todo: dict[str, Any] = {name: (lambda name=name: asdict(measured(name))) for name in CHANNELS}
    todo |= {"250 ms": lambda: asdict(far_late()), "tbf": lambda: asdict(through_tbf())}
    todo |= {"flood": lambda: flooded(1e11), "1 Gb/s": lambda: flooded(1e9)}
    for name, act in todo.items():
        if name not in found and not arguments.page:
            found[name] = act()
            keep_line(KEPT, {"name": name, "value": found[name]})
            print(name, json.dumps({key: value for key, value in found[name].items() if key != "engine"}), flush=True)
            time.sleep(1)
    write_page(found)


def write_page(found: dict[str, Any]) -> None:
    """Write what was measured."""
    rows = []
    for name in CHANNELS:
        cell = found[name]
        link, _ = CHANNELS[name]
        least, most = quantile(cell["engine"], 0.025), quantile(cell["engine"], 0.975)
        is_full = name == "queue"
        # A link that is not full delivers what its channel leaves: in the engine, that of the run with the same random numbers.
        off_rate = cell["rate_bps"] / link["rate_bps"] - 1 if is_full else (1 - cell["loss"]) / (1 - cell["engine"][0]) - 1
        off_s = cell["mean_delay_s"] - cell["decided_s"]
        # Two of 200 runs beyond each end, and what a packet more or less changes.
        edge = 1.5 / cell["sent"]
        is_within = least - edge <= cell["loss"] <= most + edge
        rows.append(
            [
                name,
                f"{off_rate:+.3%}",
                "yes" if abs(off_rate) <= 1e-3 else "**no**",
                f"{cell['decided_s'] * 1e3:.3f}",
                f"{off_s * 1e3:+.3f}",
                "yes" if abs(off_s) <= 2e-4 else "**no**",
                f"{cell['loss']:.4f}",
                f"{cell['engine'][0]:.4f}",
                f"{least:.4f} to {most:.4f}",
                "yes" if is_within else "**no**",
                f"{cell['late_p99_s'] * 1e6:.0f}",
            ]
        )
    head = [
        *("link", "delivered, off by", "within 0.1 %", "decided, ms", "measured - decided, ms", "within 0.2 ms"),
        *("loss", "engine, same run", "95 % of 200 runs", "within", "p99 late, us"),
    ]
    far, tbf, flood, paced, queue = (found[name] for name in ("250 ms", "tbf", "flood", "1 Gb/s", "queue"))
    cells = [found[name] for name in (*CHANNELS, "250 ms", "tbf")]
    page.write(
        "emulator.md",
        {},
        channels=page.table(head, rows, "lr"),
        packets=PACKETS,
        p50=far["late_p50_s"] * 1e6,
        p99=far["late_p99_s"] * 1e6,
        worst=far["late_max_s"] * 1e6,
        far_met="met" if far["late_p99_s"] <= 2e-4 else "**not met**",
        gbps=flood["rate_bps"] / 1e9,
        flood_met="met" if flood["rate_bps"] >= 1e9 else "**not met**",
        us_per_packet=flood["cpu_s_per_packet"] * 1e6,
        busy=flood["busy"],
        unread=flood["unread"],
        paced_gbps=paced["rate_bps"] / 1e9,
        paced_unread=paced["unread"] / max(paced["unread"] + paced["rate_bps"] * 10 / 12_000, 1),
        paced_late=paced["late_p99_s"] * 1e6,
        paced_busy=paced["busy"],
        tbf_rate=tbf["rate_bps"] / 1e7 - 1,
        tbf_p50=tbf["p50_delay_s"] * 1e3,
        tbf_p99=tbf["p99_delay_s"] * 1e3,
        own_rate=queue["rate_bps"] / 1e7 - 1,
        own_p50=(queue["p50_delay_s"] - 0.05) * 1e3,
        own_p99=(queue["p99_delay_s"] - 0.05) * 1e3,
        commits=", ".join(sorted({cell["commit"] for cell in [*cells, flood, paced]})),
        dates=", ".join(sorted({cell["date"] for cell in [*cells, flood, paced]})),
        load_least=min(cell["load"] for cell in [*cells, flood, paced]),
        load_most=max(cell["load"] for cell in [*cells, flood, paced]),
        real_time="with" if all(cell["real_time"] for cell in cells[:-1]) else "partly without",
        valid=f"{sum(cell['valid'] for cell in cells)} of {len(cells)}",
    )


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


if __name__ == "__main__":
    main()
