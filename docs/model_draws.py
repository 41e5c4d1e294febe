"""Random scenarios that the engine `model` accepts, of each family of closed forms; for `docs/model_engine.py` and a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from farlink.engines import prepare
from farlink.engines.model.forms import answers
from farlink.engines.model.point import points
from farlink.errors import ScenarioError

Data = dict[str, Any]

PAYLOAD_BYTES, HEADER_BYTES = 960, 40
PACKET_BITS = 8 * (PAYLOAD_BYTES + HEADER_BYTES)
# Packets that one run of the packet engine sends at most, about.
MOST_PACKETS = 1e5


def tcp_bulk(rng: np.random.Generator) -> Data:
    """Flows that lose segments and fill queues, from windows of some segments to full links."""
    rate, round_trip_s, loss = _log(rng, 100, 10000), _log(rng, 0.02, 1), _log(rng, 1e-5, 0.1)
    pipe = rate * round_trip_s
    queue = max(3, round(pipe * _log(rng, 0.1, 3)))
    flows = round(_log(rng, 1, 20))
    window = min((pipe + queue) / flows, 2 / math.sqrt(loss))
    is_delayed = bool(rng.integers(2))
    rounds = max(300.0, 6 * window * (2 if is_delayed else 1))
    trip_s = round_trip_s + queue / rate
    # Timeouts take a second or more, however short the round trip.
    duration_s = min(rounds * trip_s + 200, max(30 * trip_s, MOST_PACKETS / min(rate, flows * window / round_trip_s)))
    transport = {
        "variant": str(rng.choice(["reno", "newreno", "sack", "rack"])),
        "delayed_ack": is_delayed,
        "initial_ssthresh_segments": max(2, int(window / 2)),
    }
    return {
        "duration_s": duration_s,
        "measure": {"warmup_s": duration_s / 4},
        "link": _link(rate, round_trip_s, loss) | {"queue_packets": queue},
        **_tcp(transport, {"kind": "bulk"}, {"count": flows, "start_spread_s": 5 * round_trip_s}),
    }


def tcp_file(rng: np.random.Generator) -> Data:
    """A file that is alone, of 1 kB to 3 MB, with a window that the queue holds."""
    rate, round_trip_s = _log(rng, 50, 5000), _log(rng, 0.02, 1)
    loss = 0.0 if rng.uniform() < 0.3 else _log(rng, 1e-4, 0.05)
    transport = {
        "variant": str(rng.choice(["reno", "newreno", "sack", "rack"])),
        "delayed_ack": bool(rng.integers(2)),
        "initial_window_segments": int(rng.choice([1, 2, 4, 10])),
        "max_window_segments": int(_log(rng, 10, 1000)),
    }
    file = {"kind": "file", "bytes": round(_log(rng, 1e3, 3e6))}
    return {"link": _link(rate, round_trip_s, loss), **_tcp(transport, file)}


def arq_bulk(rng: np.random.Generator) -> Data:
    """Frames under the equations' own assumptions, by the kind of ARQ."""
    rate, round_trip_s, loss = _log(rng, 50, 5000), _log(rng, 0.02, 1), _log(rng, 1e-4, 0.3)
    mode = str(rng.choice(["stop-and-wait", "go-back-n", "selective-repeat"]))
    link = _link(rate, round_trip_s, loss) | {"return": {"rate_bps": 1e12}}
    window = 2 + math.ceil(2 * link["delay_s"] * rate)
    repeat_s = 2 * link["delay_s"] + 1 / rate
    transport: Data = {
        "kind": "arq",
        "mode": mode,
        "segment_bytes": PAYLOAD_BYTES,
        "header_bytes": HEADER_BYTES,
        "rate_bps": (1 - 1e-6) * rate * PACKET_BITS,
        "rto": {"algorithm": "fixed", "initial_s": 1.001 * repeat_s},
    }
    if mode != "stop-and-wait":
        transport["window_frames"] = window
    if mode == "selective-repeat":
        transport["buffer_frames"] = 10 * window
    duration_s = max(40 * repeat_s, min(2000 * repeat_s, MOST_PACKETS / rate))
    return {
        "duration_s": duration_s,
        "measure": {"warmup_s": duration_s / 10},
        "link": link,
        "transport": {"t": transport},
        "flow": {"f": {"transport": "t", "traffic": {"kind": "bulk"}}},
    }


def udp_cbr(rng: np.random.Generator) -> Data:
    """Datagrams over one to three hops that lose packets or bits."""
    hops = {}
    for number in range(int(rng.integers(1, 4))):
        channel = (
            {"kind": "ber", "ber": _log(rng, 1e-7, 1e-5)} if rng.integers(2) else {"kind": "loss", "loss": _log(rng, 1e-3, 0.3)}
        )
        hops[f"h{number}"] = {"rate_bps": _log(rng, 2e5, 5e6), "delay_s": _log(rng, 0.005, 0.5), "channel": channel}
    cbr: Data = {"kind": "cbr", "rate_bps": _log(rng, 1e4, 1.5e5), "payload_bytes": int(rng.integers(100, 3000))}
    return {
        "duration_s": 4e4 * 8 * cbr["payload_bytes"] / cbr["rate_bps"],
        "measure": {"warmup_s": 10},
        "path": list(hops),
        "hop": hops,
        "transport": {"t": {"kind": "udp"}},
        "flow": {"f": {"transport": "t", "traffic": cbr}},
    }


def aerotp_bulk(rng: np.random.Generator) -> Data:
    """A reliable flow alone on its path, with a set or a learnt rate."""
    rate, round_trip_s, loss = _log(rng, 50, 5000), _log(rng, 0.02, 2), _log(rng, 1e-4, 0.5)
    duration_s = max(200 * round_trip_s, min(3000 * round_trip_s, MOST_PACKETS / rate))
    return {
        "duration_s": duration_s,
        "measure": {"warmup_s": duration_s / 4},
        "link": _link(rate, round_trip_s, loss),
        **_aerotp(rng, rate, {"kind": "bulk"}),
    }


def aerotp_file(rng: np.random.Generator) -> Data:
    """A file over a reliable flow."""
    rate, round_trip_s, loss = _log(rng, 50, 5000), _log(rng, 0.02, 2), _log(rng, 1e-4, 0.5)
    file = {"kind": "file", "bytes": round(_log(rng, 1e4, 1e7))}
    return {"link": _link(rate, round_trip_s, loss), **_aerotp(rng, rate, file)}


# Name of a family -> what draws a scenario of it, and the quantity to compare.
FAMILIES: dict[str, tuple[Callable[[np.random.Generator], Data], str]] = {
    "TCP, bulk": (tcp_bulk, "goodput_bps"),
    "TCP, a file": (tcp_file, "transfer_time_mean_s"),
    "ARQ, bulk": (arq_bulk, "goodput_bps"),
    "UDP, constant rate": (udp_cbr, "goodput_bps"),
    "AeroTP, bulk": (aerotp_bulk, "goodput_bps"),
    "AeroTP, a file": (aerotp_file, "transfer_time_mean_s"),
}


def drawn(name: str, count: int, seed: int) -> Iterator[Data | ScenarioError]:
    """Scenarios of a family until so many are accepted, with the refusals of those that are not."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(name)])
    accepted = 0
    while accepted < count:
        data = {"engines": ["model"], **FAMILIES[name][0](rng)}
        refusal = refused(data)
        accepted += refusal is None
        yield data if refusal is None else refusal


def refused(data: Data) -> ScenarioError | None:
    """Why no closed form covers a scenario."""
    try:
        for point in points(prepare(data)):
            answers(point)
    except ScenarioError as error:
        return error
    return None


def _link(rate: float, round_trip_s: float, loss: float) -> Data:
    """A link with that rate in segments per second and, segments and acknowledgements included, that round trip."""
    own_s = (1 + HEADER_BYTES / (PAYLOAD_BYTES + HEADER_BYTES)) / rate
    channel = {"kind": "loss", "loss": loss} if loss else {"kind": "none"}
    return {"rate_bps": rate * PACKET_BITS, "delay_s": max(round_trip_s - own_s, 1e-3) / 2, "channel": channel}


def _tcp(transport: Data, traffic: Data, flow: Data | None = None) -> Data:
    keys = {"kind": "tcp", "segment_bytes": PAYLOAD_BYTES, "header_bytes": HEADER_BYTES, **transport}
    return {"transport": {"t": keys}, "flow": {"f": {"transport": "t", "traffic": traffic, **(flow or {})}}}


def _aerotp(rng: np.random.Generator, rate: float, traffic: Data) -> Data:
    is_set = bool(rng.integers(2))
    keys = {"kind": "aerotp", "packet_bytes": PACKET_BITS // 8} | ({"rate_bps": rate * PACKET_BITS} if is_set else {})
    return {"transport": {"t": keys}, "flow": {"f": {"transport": "t", "traffic": traffic}}}


def _log(rng: np.random.Generator, least: float, most: float) -> float:
    """Its logarithm is uniform; with seven digits, so that files of scenarios are short."""
    return float(f"{10 ** rng.uniform(math.log10(least), math.log10(most)):.7g}")
