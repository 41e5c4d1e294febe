"""Write `docs/validation/bundle-twin.md`: bundles of IP paths in the simulator beside those that were measured.

Finished cells are kept in `out/bundle-twin.jsonl`, and the same command goes on where it stopped; `--again` begins anew. A few
minutes. The measured numbers are those of `docs/validation/bundle-paths.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import page
from bundle_paths import BULK_CELLS, BULK_S, FROM_S, PLUGGED_S, UNPLUGGED_S, UNPLUGS, links
from measuring import finish_or_quit, keep_line, kept_lines

import farlink

KEPT = page.ROOT / "out" / "bundle-twin.jsonl"
FOLDER = page.ROOT / "out" / "bundle-paths"
MEASURED = page.VALIDATION / "bundle-paths.md"
WAYS = ("starlink", "lte", "bundle")
SEEDS = 3
STEADY, FOUR = "50 and 10 Mb/s, steady", "50 and 10 Mb/s, steady: bundle, four connections"
# The kernel's: MTU of the TUN device and of Ethernet, less headers of IP and TCP with timestamps; 6 MB of buffers.
TUN_SEGMENT, SEGMENT = 1400 - 52, 1500 - 52
KERNEL = {
    "kind": "tcp",
    "variant": "rack",
    "congestion_control": "cubic",
    "timestamps": True,
    "hystart": True,
    "receive_window_segments": 4000,
}
VOICE = {"kind": "cbr", "rate_bps": 64e3, "payload_bytes": 160}


def member(name: str, link: Mapping[str, Any]) -> dict[str, Any]:
    """A path of a bundle, from the link that was played."""
    return {"name": name, **link} | ({"standby": True} if name == "iridium" else {})


def scenario(link: Mapping[str, Any], segment: int, duration_s: float, warmup_s: float) -> dict[str, Any]:
    """One TCP connection over a link or a bundle."""
    return {
        "duration_s": duration_s,
        "runs": SEEDS,
        "seed": 1,
        "measure": {"warmup_s": warmup_s},
        "link": dict(link),
        "transport": {"tcp": KERNEL | {"segment_bytes": segment}},
        "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
    }


def over(paths: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The link that is a bundle of these paths; rate and delay are given by each."""
    return {"rate_bps": 1e6, "delay_s": 0.01, "paths": {"members": [member(name, link) for name, link in paths.items()]}}


def unplugging() -> tuple[dict[str, Any], float]:
    """Starlink and LTE, unplugged in turn as in the measurement; the ship notices. And how long it takes."""
    paths = links(("steady", "lte"), FOLDER)
    every_s = UNPLUGGED_S + PLUGGED_S + 1
    members = [member(name, link) for name, link in paths.items()]
    for at in range(UNPLUGS):
        span = {"from_s": 5 + at * every_s, "to_s": 5 + at * every_s + UNPLUGGED_S}
        members[at % 2].setdefault("unplugged", []).append(span)
    return {"rate_bps": 1e6, "delay_s": 0.01, "paths": {"members": members}}, 5 + UNPLUGS * every_s


def cells() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is simulated, by name."""
    for name, kinds in BULK_CELLS.items():
        paths = links(kinds, FOLDER)
        for way in WAYS[:2]:
            yield f"{name}: {way}", scenario(paths[way], SEGMENT, BULK_S, FROM_S)
        yield f"{name}: bundle", scenario(over(paths), TUN_SEGMENT, BULK_S, FROM_S)
    link, lasts_s = unplugging()
    four = scenario(over(links(BULK_CELLS[STEADY], FOLDER)), TUN_SEGMENT, BULK_S, FROM_S)
    four["flow"]["bulk"]["count"] = 4
    yield FOUR, four
    yield "unplugged: bulk", scenario(link, TUN_SEGMENT, lasts_s, 2.0)
    stream = scenario(link, TUN_SEGMENT, lasts_s, 2.0)
    stream["link"] = json.loads(json.dumps(link))
    stream["link"]["paths"]["classes"] = [{"number": 0, "policy": "redundant"}]
    stream["transport"] = {"udp": {"kind": "udp"}}
    stream["flow"] = {"call": {"transport": "udp", "class": 0, "traffic": VOICE}}
    yield "unplugged: stream", stream


def play(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a cell gives: goodput of each run; of unpluggings the longest gap, and what was lost."""
    rows = farlink.run(given).rows
    flow = next(iter(given["flow"]))
    counted = "all" if given["flow"][flow].get("count", 1) > 1 else flow
    of_flow = [at for at, one in enumerate(rows["flow"]) if one == counted]
    found: dict[str, Any] = {"bps": [rows["goodput_bps"][at] for at in of_flow]}
    if name == "unplugged: bulk":
        gaps = []
        for run in range(SEEDS):
            series = farlink.trace_run(given, run=run, quantities=["acknowledged"])
            times = [time for time in series.time_s if time >= 2.0]
            gaps.append(max(late - early for early, late in pairwise(times)))
        found["gap_s"] = float(max(gaps))
    if name == "unplugged: stream":
        sent = [rows["sent_bytes"][at] / (160 + 28) for at in of_flow]
        found |= {"sent": round(sum(sent)), "loss": max(rows["loss_fraction"][at] for at in of_flow)}
        found["p99_s"] = max(rows["delay_p99_s"][at] for at in of_flow)
    paths = [at for at, one in enumerate(rows["transport"]) if one == "path"]
    found["paths"] = {
        rows["flow"][at].rpartition(".")[2]: {"bps": rows["goodput_bps"][at], "down": rows["call_drops"][at]} for at in paths
    }
    return found


def measured() -> dict[str, list[str]]:
    """The rows of the tables of what was measured, by their first cell."""
    rows = re.findall(r"^\| (.+) \|$", MEASURED.read_text(encoding="utf-8"), flags=re.MULTILINE)
    split = [[cell.strip() for cell in row.split(" | ")] for row in rows]
    return {cells[0]: cells[1:] for cells in split}


def identity(given: Mapping[str, Any]) -> str:
    """Changes with the scenario and with the code."""
    return hashlib.sha256(json.dumps([given, farlink.build_name()], sort_keys=True).encode()).hexdigest()[:16]


def main() -> None:
    """Simulate what is missing, and write the page."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--again", action="store_true", help="simulate all cells once more")
    given = asked.parse_args()
    finish_or_quit(lambda: _work(again=given.again))


def _work(*, again: bool) -> None:
    done = {} if again else {(one["cell"], one["of"]): one for one in kept_lines(KEPT)}
    found: dict[str, dict[str, Any]] = {}
    for name, given in cells():
        of = identity(given)
        if (name, of) not in done:
            done[name, of] = {"cell": name, "of": of, **play(name, given)}
            keep_line(KEPT, done[name, of])
            print(name, done[name, of], flush=True)
        found[name] = done[name, of]
    _write(found)


def _write(found: Mapping[str, Mapping[str, Any]]) -> None:
    known = measured()
    rows, ratios = [], []
    for name in BULK_CELLS:
        row = [name]
        for way in WAYS:
            real = float(known[name][WAYS.index(way)])
            values = [bps / 1e6 for bps in found[f"{name}: {way}"]["bps"]]
            mean = sum(values) / len(values)
            row += [f"{real:.2f}", f"{mean:.2f}", f"{mean / real:.2f}"]
            if way == "bundle":
                ratios.append(mean / real)
        rows.append(row)
    head = ["paths", *(word for way in ("Starlink", "LTE", "bundle") for word in (f"{way}, measured", "simulated", "ratio"))]
    bulk, stream = found["unplugged: bulk"], found["unplugged: stream"]
    unplugged = [
        ["bulk: longest gap, ms", known["bulk"][2], f"{1e3 * bulk['gap_s']:.0f}"],
        ["stream: lost", known["stream"][1], f"{round(stream['loss'] * stream['sent'] / SEEDS)} of {stream['sent'] // SEEDS}"],
    ]
    page.write(
        "bundle-twin.md",
        {},
        bulk=page.table(head, rows, "lr"),
        unplugged=page.table(["", "measured", "simulated"], unplugged, "lr"),
        least=min(ratios),
        most=max(ratios),
        seeds=SEEDS,
        p99=1e3 * stream["p99_s"],
        four=sum(found[FOUR]["bps"]) / SEEDS / 1e6,
    )


if __name__ == "__main__":
    main()
