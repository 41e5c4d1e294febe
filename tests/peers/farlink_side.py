"""farlink as the other side of a peer comparison: cells become scenarios, runs become goodput with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.peers.cells import GEO_DURATION_S, GEO_WARMUP_S, Cell, DeepCell, GeoCell, SharedCell
from tests.peers.estimate import Estimate, until_narrow

HEADER_BYTES = 40

# The timer both sides use over the GEO link: ns-2's first time-out and clock tick, the minimum of RFC 6298.
GEO_RTO = {"initial_s": 3.0, "minimum_s": 1.0, "maximum_s": 60.0, "granularity_s": 0.01}


def geo_transport(variant: str, window: int, *, delayed_ack: bool) -> dict[str, Any]:
    """TCP over the GEO link as both sides have it."""
    return {
        "kind": "tcp",
        "variant": variant,
        "segment_bytes": 1000 - HEADER_BYTES,
        "header_bytes": HEADER_BYTES,
        "initial_window_segments": 1,
        "initial_ssthresh_segments": window,
        "max_window_segments": window,
        "limited_transmit": True,
        "delayed_ack": delayed_ack,
        **({"delayed_ack_timeout_s": 0.1} if delayed_ack else {}),
        "rto": GEO_RTO,
    }


def geo_scenario(cell: GeoCell, transport: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Scenario of one cell; `transport` replaces single keys of its transport."""
    return {
        "title": f"peer comparison, {cell.name}",
        "duration_s": GEO_DURATION_S[cell.ber],
        "engines": ["packet"],
        "measure": {"warmup_s": GEO_WARMUP_S},
        "link": {"rate_bps": 1e6, "delay_s": 0.25, "channel": {"kind": "ber", "ber": cell.ber}},
        "transport": {"tcp": {**geo_transport(cell.variant, 70, delayed_ack=cell.delayed_ack), **(transport or {})}},
        "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
    }


def deep_scenario(cell: DeepCell, transport: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Scenario of one flow over the GEO link without errors, behind a deep queue."""
    return {
        "title": f"peer comparison, {cell.name}",
        "duration_s": cell.DURATION_S,
        "engines": ["packet"],
        "measure": {"warmup_s": cell.WARMUP_S},
        "link": {
            "rate_bps": 1e6,
            "delay_s": 0.25,
            "queue_packets": cell.QUEUE_PACKETS,
            "return": {"queue_packets": 1_000_000},
        },
        "transport": {"tcp": {**geo_transport(cell.variant, cell.WINDOW, delayed_ack=cell.delayed_ack), **(transport or {})}},
        "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
    }


def shared_scenario(cell: SharedCell, transport: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Scenario of five Reno flows on one link; ns-2 counts the packet in transmission in its queue limit."""
    return {
        "title": f"peer comparison, {cell.name}",
        "duration_s": cell.DURATION_S,
        "engines": ["packet"],
        "measure": {"warmup_s": cell.WARMUP_S},
        "link": {
            "rate_bps": cell.SEGMENTS_PER_S * cell.WIRE_BYTES * 8,
            "delay_s": 0.25,
            "queue_packets": cell.QUEUE_PACKETS,
            "channel": {"kind": "loss", "loss": cell.loss},
            "return": {"queue_packets": 1_000_000, "channel": {"kind": "none"}},
        },
        "transport": {
            "reno": {
                "kind": "tcp",
                "variant": "reno",
                "segment_bytes": cell.WIRE_BYTES - HEADER_BYTES,
                "header_bytes": HEADER_BYTES,
                "initial_window_segments": 1,
                "max_window_segments": 10_000,
                "limited_transmit": False,
                "delayed_ack": False,
                "rto": {"initial_s": 6.0, "minimum_s": 1.0, "maximum_s": 60.0, "granularity_s": 0.1},
                **(transport or {}),
            }
        },
        "flow": {"bulk": {"transport": "reno", "count": cell.FLOWS, "start_spread_s": 1, "traffic": {"kind": "bulk"}}},
    }


def scenario(cell: Cell, transport: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Scenario of a cell of any kind."""
    if isinstance(cell, GeoCell):
        return geo_scenario(cell, transport)
    return deep_scenario(cell, transport) if isinstance(cell, DeepCell) else shared_scenario(cell, transport)


def goodput(scenario: Mapping[str, Any], *, relative: float = 0.02, batch: int = 10, max_runs: int = 400) -> Estimate:
    """Goodput of all flows together, whole packets on the wire per link capacity, until the interval is narrow enough."""
    import farlink

    (transport,) = scenario["transport"].values()
    wire_per_payload = 1 + transport["header_bytes"] / transport["segment_bytes"]
    rate_bps = scenario["link"]["rate_bps"]

    def run_seeds(seeds: range) -> list[float]:
        # Run k of a scenario has the same random streams whatever the number of runs: run all, take the new ones.
        rows = farlink.run({**scenario, "runs": seeds[-1]}).rows
        totals = [
            payload_bps * wire_per_payload / rate_bps
            for flow, payload_bps in zip(rows["flow"], rows["goodput_bps"], strict=True)
            if flow == "all"
        ]
        return totals[seeds[0] - 1 :]

    return until_narrow(run_seeds, relative=relative, batch=batch, max_runs=max_runs)
