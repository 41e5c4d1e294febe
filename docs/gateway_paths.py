"""Write `docs/validation/gateways.md`: unmodified programs through a pair of gateways over an emulated path: `make gateways`.

iperf3, curl and outages here; many clients and floods in `gateway_load.py`. An hour, as root. Measured cells are appended to
`out/gateway-paths.jsonl` with commit and date, and the same command goes on where it stopped; those during which the emulator
was late are measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import page
from gateway_load import LOADS, load_table, many_table
from gateway_pair import FORWARD, QUEUE_PACKETS, RATE_BPS, ROUND_TRIP_S, SERVED, SESSIONS, SOCKS, WEB, Pair, link
from measuring import commit, finish_or_quit, keep_line, kept_lines, quit_for

from farlink.namespaces import FAR

KEPT = page.ROOT / "out" / "gateway-paths.jsonl"
LOSSES = (0.0, 1e-3, 1e-2, 1e-1)
# Without a rate it is learnt.
WAYS: dict[str, float | None] = {"learnt": None, "set": RATE_BPS}
GATEWAYS, STREAMS = ("gateways, learnt", "gateways, set"), ("stream, learnt", "stream, set")
CONTROLS = ("cubic", "bbr")
PEERS = (*CONTROLS, "kcptun")
TRANSFER_S, FROM_S, DOWNLOAD_BYTES, DOWNLOAD_S, REQUESTS, REQUEST_BYTES = 30.0, 5.0, 12_000_000, 40.0, 10, 1000
# What the issue asks for.
SHARE, REQUEST_S, RESUMED_S = 0.9, ROUND_TRIP_S + 0.05, ROUND_TRIP_S + 0.2
OUTAGE_FROM_S, AFTER_OUTAGE_S = 30.0, 20.0
OUTAGES = {f"outage of {down_s:.0f} s, {way}": down_s for down_s in (30.0, 600.0) for way in ("learnt", "set")}
DOWN = 6002
# Measured runs by the name of their cell.
Found = Mapping[str, Mapping[int, Mapping[str, Any]]]
_TUN = ("--mode", "fast2", "--sndwnd", "256", "--nocomp", "--quiet")


@contextmanager
def opened(pair: Pair, way: str, port: int) -> Iterator[str]:
    """Have what carries TCP to a port of the far end; gives the address at which clients reach it."""
    kind, _, rate = way.partition(", ")
    if kind == "gateways":
        with pair.gateways(WAYS[rate]):
            yield f"127.0.0.1:{FORWARD}"
    elif kind == "kcptun":
        pair.start("tun-far", pair.far, "kcptun-server", "-t", f"127.0.0.1:{port}", "-l", ":29900", *_TUN, until="listening")
        near = ("kcptun-client", "-r", f"{FAR}:29900", "-l", f"127.0.0.1:{FORWARD}", *_TUN)
        pair.start("tun-near", pair.near, *near, until="listening")
        try:
            yield f"127.0.0.1:{FORWARD}"
        finally:
            pair.end("tun-far", "tun-near")
    else:
        yield f"{FAR}:{port}"


def uploaded(pair: Pair, way: str) -> dict[str, Any]:
    """What iperf3 sends from the near end: bit/s that arrive at its server, of the span."""
    with opened(pair, way, SERVED) as at:
        pair.start("iperf3", pair.far, "iperf3", "-s", "-1", "-J", "-p", str(SERVED))
        time.sleep(0.5)
        host, _, port = at.partition(":")
        control = ("-C", way) if way in CONTROLS else ()
        words = ("iperf3", "-c", host, "-p", port, "-t", f"{TRANSFER_S:g}", *control)
        done = pair.run(*words, within_s=TRANSFER_S + 90)
        carriers = [name for name in ("ship", "shore") if name in pair.running]
        cpu = sum(pair.cpu_s(name) for name in carriers)
        pair.running["iperf3"].wait(60)
        told = json.loads((pair.folder / "iperf3.out").read_text())
        pair.end("iperf3")
    spans = [one["sum"] for one in told["intervals"] if one["sum"]["start"] >= FROM_S - 0.5]
    bps = sum(one["bytes"] for one in spans) * 8 / (spans[-1]["end"] - spans[0]["start"])
    return {"upload_bps": bps, "upload_cpu_s": cpu, "iperf3_status": done.returncode}


def downloaded(pair: Pair, way: str) -> dict[str, Any]:
    """What curl gets from the far end: bit/s from its start to the last byte; a part of the file if that takes too long."""
    with opened(pair, way, WEB) as at:
        size, took = _curl(pair, way, at, DOWNLOAD_BYTES, DOWNLOAD_S)
    return {"download_bps": size * 8 / took, "download_bytes": size}


def requested(pair: Pair, way: str) -> dict[str, Any]:
    """How long small requests take, each a connection of its own; the first one is that of gateways a second old."""
    found = {}
    # A request of its usual 90 bytes, and one of 1 kB, are answered with 1 kB.
    for name, body in (("get", ()), ("post", ("--data-binary", "x" * REQUEST_BYTES))):
        with opened(pair, way, WEB) as at:
            time.sleep(1)
            took = [_curl(pair, way, at, REQUEST_BYTES, 30, *body)[1] for _ in range(1 + REQUESTS)]
        found |= {f"{name}_first_s": took[0], f"{name}_later_s": took[1:]}
    return found


def _curl(pair: Pair, way: str, at: str, count: int, within_s: float, *more: str) -> tuple[int, float]:
    proxy = ("--proxy", f"socks5h://127.0.0.1:{SOCKS}") if way in GATEWAYS else ()
    to = f"127.0.0.1:{WEB}" if way in GATEWAYS else at
    words = ("curl", "-s", "-o", "/dev/null", "-w", "%{size_download} %{time_total}", "--max-time", f"{within_s:g}")
    size, took = pair.run(*words, *proxy, *more, f"http://{to}/{count}", within_s=within_s + 10).stdout.split()
    return int(size), float(took)


def transfers(way: str, pair: Pair) -> dict[str, Any]:
    """All three over a way."""
    pair.role("web", pair.far, "web", f"0.0.0.0:{WEB}", *(("--control", way) if way in CONTROLS else ()))
    return requested(pair, way) | uploaded(pair, way) | downloaded(pair, way)


def stream(way: str, pair: Pair) -> dict[str, Any]:
    """The same amounts over a stream of `farlink.net` between programs at both ends."""
    rate_bps = WAYS[way.partition(", ")[2]]
    rate = ("--rate", str(rate_bps)) if rate_bps else ()
    at = f"{FAR}:{SESSIONS}"
    pair.role("server", pair.far, "stream-server", at, "--keys", "shore", "--every", "0.1", *rate)
    pair.role("client", pair.near, "stream-client", at, "--keys", "ship", "--seconds", str(TRANSFER_S), *rate)
    pair.done("client", TRANSFER_S + 60)
    came = [one for one in pair.said("server") if FROM_S <= one.get("since_s", 0) <= TRANSFER_S]
    upload_bps = (came[-1]["bytes"] - came[0]["bytes"]) * 8 / (came[-1]["since_s"] - came[0]["since_s"])
    pair.end("client", "server")
    pair.role("server", pair.far, "stream-server", at, "--keys", "shore", *rate)
    words = ("--keys", "ship", "--count", str(DOWNLOAD_BYTES), "--seconds", str(DOWNLOAD_S), *rate)
    pair.role("client", pair.near, "stream-client", at, *words)
    [got] = pair.done("client", DOWNLOAD_S + 60)
    return {"upload_bps": upload_bps, "download_bps": got["bytes"] * 8 / got["took_s"], "download_bytes": got["bytes"]}


def outage(name: str, pair: Pair) -> dict[str, Any]:
    """A transfer in each direction through gateways, over a path that drops all packets for a while in the middle."""
    rate_bps, down_s = WAYS[name.partition(", ")[2]], OUTAGES[name]
    back = f'[[forward]]\nlisten = "127.0.0.1:{DOWN}"\ndestination = "127.0.0.1:{SERVED + 1}"\n'
    with pair.gateways(rate_bps, more=back):
        pair.role("sink", pair.far, "server", f"127.0.0.1:{SERVED}", "--every", "0.5")
        pair.role("source", pair.far, "server", f"127.0.0.1:{SERVED + 1}", "--kind", "source")
        pair.role("up", pair.near, "clients", f"127.0.0.1:{FORWARD}", "--kind", "push", "--count", "1")
        pair.role("down", pair.near, "clients", f"127.0.0.1:{DOWN}", "--kind", "pull", "--count", "1")
        since_s = pair.began_unix_s()
        returned_s = since_s + OUTAGE_FROM_S + down_s
        time.sleep(max(0.0, returned_s + AFTER_OUTAGE_S - time.time()))
        sink, source, up, down = (pair.said(one)[-1] for one in ("sink", "source", "up", "down"))
    found: dict[str, Any] = {
        "open": [sink["open"], source["open"], up["open"] - up["failed"], down["open"] - down["failed"]],
        "down_s": down_s,
    }
    for way, one in (("up", sink), ("down", down)):
        ends = [end_s - returned_s for _, end_s in one["pauses"] if end_s > returned_s - 1]
        found[f"{way}_resumed_s"] = ends[0] if ends else None
        found[f"{way}_pauses"] = [(from_s - since_s, to_s - since_s) for from_s, to_s in one["pauses"]]
    return found


def cells() -> dict[str, tuple[Mapping[str, Any], Callable[[Pair], dict[str, Any]]]]:
    """Name -> path, and what to do on it; the most important first."""
    found: dict[str, tuple[Mapping[str, Any], Callable[[Pair], dict[str, Any]]]] = {}
    for ways, act in ((GATEWAYS, transfers), (STREAMS, stream), (PEERS, transfers)):
        for loss in LOSSES:
            for way in ways:
                found[f"{way}, loss {loss:g}"] = (link(loss), partial(act, way))
    for name, down_s in OUTAGES.items():
        found[name] = (link(outage={"offset_s": OUTAGE_FROM_S, "down_s": down_s}), partial(outage, name))
    return found | {name: (link(), act) for name, act in LOADS.items()}


def busy_s() -> float:
    """Time that the cores of the machine have worked."""
    user, nice, system, _, _, irq, soft, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def measure(path: Mapping[str, Any], act: Callable[[Pair], dict[str, Any]], run: int) -> dict[str, Any]:
    """One run of a cell, and how well the emulator kept its time meanwhile."""
    before, before_s, load = busy_s(), time.monotonic(), os.getloadavg()[0]
    with Pair(path, seed=run + 1) as pair:
        values = act(pair)
        played = pair.finish()
    return {
        "values": values,
        "valid": played.valid,
        "faults": played.faults,
        "late_p99_s": max(way.late_p99_s or 0.0 for way in (played.forward, played.back)),
        "real_time": played.is_real_time,
        "dropped": [played.forward.dropped, played.back.dropped],
        "load": [load, os.getloadavg()[0]],
        "busy": (busy_s() - before) / (time.monotonic() - before_s),
        "commit": commit(),
        "date": date.today().isoformat(),
    }


def kept() -> dict[str, dict[int, dict[str, Any]]]:
    """The last valid one of each cell and run; else the last one."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for one in kept_lines(KEPT):
        runs = found.setdefault(one["name"], {})
        if one["valid"] or not runs.get(one["run"], {"valid": False})["valid"]:
            runs[one["run"]] = one
    return found


def _mbps(found: Found, name: str, quantity: str) -> list[float]:
    return [one["values"][quantity] / 1e6 for one in found.get(name, {}).values()]


def _shown(values: list[float]) -> str:
    """The mean, and the range if there is more than one."""
    if not values:
        return ""
    several = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.2f}{several}"


def transfer_table(found: Found, quantity: str) -> str:
    """Goodput through gateways, over streams, and of others."""
    rows = []
    for loss in LOSSES:
        row = [f"{loss:g}"]
        for gateways, alone in zip(GATEWAYS, STREAMS, strict=True):
            pair = [_mbps(found, f"{way}, loss {loss:g}", quantity) for way in (gateways, alone)]
            row += [_shown(values) for values in pair]
            ratio = statistics.fmean(pair[0]) / statistics.fmean(pair[1]) if all(pair) else math.nan
            row.append(f"{ratio:.2f}" if ratio >= SHARE else f"**{ratio:.2f}**")
        rows.append([*row, *(_shown(_mbps(found, f"{way}, loss {loss:g}", quantity)) for way in PEERS)])
    columns = [word for kind in WAYS for word in (f"gateways, {kind}", "stream", "ratio")]
    return page.table(["loss", *columns, *PEERS], rows, "r")


def request_table(found: Found) -> str:
    """Times of small requests."""
    rows = []
    for loss in LOSSES:
        for way in (*GATEWAYS, *PEERS):
            runs = [one["values"] for one in found.get(f"{way}, loss {loss:g}", {}).values()]
            if not runs:
                continue
            row = [f"{loss:g}", way]
            for kind in ("get", "post"):
                first = max(one[f"{kind}_first_s"] for one in runs)
                later = [seconds for one in runs for seconds in one[f"{kind}_later_s"]]
                for seconds in (first, statistics.median(later), max(later)):
                    is_missed = way in GATEWAYS and seconds > REQUEST_S
                    row.append(f"**{seconds:.3f}**" if is_missed else f"{seconds:.3f}")
            rows.append(row)
    columns = [f"{kind}: {which}" for kind in ("90 bytes", "1 kB") for which in ("first", "median", "longest")]
    return page.table(["loss", "way", *columns], rows, "rlr")


def outage_table(found: Found) -> str:
    """When data came again."""
    rows = []
    for name in OUTAGES:
        for one in (run["values"] for run in found.get(name, {}).values()):
            times = [one[f"{way}_resumed_s"] for way in ("up", "down")]
            shown = ["none" if time_s is None else f"{time_s:.3f}" for time_s in times]
            is_met = all(time_s is not None and time_s <= RESUMED_S for time_s in times)
            rows.append([name, *shown, "yes" if is_met else "**no**", f"{sum(one['open'])} of 4"])
    return page.table(["path", "data to the far end after, s", "to the near end", "wanted", "TCP ends open"], rows, "lr")


def write_page() -> None:
    """Write what there is."""
    found = kept()
    ones = [one for runs in found.values() for one in runs.values()]
    first = {name: runs[0] for name, runs in found.items() if 0 in runs}
    loads = [load for one in ones for load in one["load"]]
    page.write(
        "gateways.md",
        {},
        uploads=transfer_table(found, "upload_bps"),
        downloads=transfer_table(found, "download_bps"),
        requests=request_table(found),
        outages=outage_table(found),
        many=many_table(first),
        loads=load_table(first),
        resumed_wanted=RESUMED_S,
        request_wanted=REQUEST_S,
        queue=QUEUE_PACKETS,
        cells=len(found),
        runs=len(ones),
        all_cells=len(cells()),
        valid=sum(one["valid"] for one in ones),
        late=max(one["late_p99_s"] for one in ones) * 1e3,
        load_least=min(loads),
        load_most=max(loads),
        busy_most=max(one["busy"] for one in ones),
        commits=", ".join(sorted({one["commit"] for one in ones})),
        dates=", ".join(sorted({one["date"] for one in ones})),
    )


def work(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not arguments.page:
        for program in ("ip", "iperf3", "curl", "kcptun-client"):
            if shutil.which(program) is None:
                quit_for(f"{program} is missing", "sudo apt-get install iproute2 iperf3 curl kcptun")
    there = kept()
    for run in range(0 if arguments.page else arguments.runs):
        for name, (path, act) in cells().items():
            if arguments.only in name and not there.get(name, {}).get(run, {"valid": False})["valid"]:
                measured = measure(path, act, run)
                keep_line(KEPT, {"name": name, "run": run, **measured})
                print(name, run, json.dumps(measured), file=sys.stderr, flush=True)
    write_page()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORDS", help="cells with these words in their names")
    parser.add_argument("--runs", type=int, default=1, help="of each cell (%(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: work(arguments))


if __name__ == "__main__":
    main()
