"""The simulated protocols of section 4 as scenarios: TCP of RFC 793 without congestion control, and with selective repeat.

"TCP" is go-back-N with cumulative acknowledgements, one for each arriving packet, kept or not. "Selective repeat" adds blocks
in the acknowledgements: at most four, and what the receiver could not report, it drops. Both send without a pause: the window
holds more than the longest timeout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from farlink.papers.epple.setting import HEADER_BYTES, REPORT_BYTES, Setting
from farlink.papers.epple.timers import Timer

TRANSPORT = "flow.bulk.transport"
FOUR_BLOCKS = 4
BLOCK_OPTION_BYTES = 2 + 8 * FOUR_BLOCKS
_MODES = {"tcp": "go-back-n", "sr": "selective-repeat"}
# Times are whole picoseconds: at the same rate, rounding would let a queue grow that timers feel.
_SLOWER = 1e-6
WINDOW_ROUND_TRIPS = 10.0
"""A window for any timeout of so many round trips."""


def transport(
    setting: Setting,
    place: str,
    payload_bytes: int,
    protocol: str,
    timer: Timer,
    *,
    blocks: int | None = FOUR_BLOCKS,
    timestamps: bool = False,
    window_round_trips: float = WINDOW_ROUND_TRIPS,
) -> dict[str, Any]:
    """A protocol with a packet length.

    Parameters
    ----------
    setting
        The link.
    place
        How far away.
    payload_bytes
        User data in a packet.
    protocol
        ``"tcp"`` or ``"sr"``.
    timer
        When it repeats.
    blocks
        Blocks in an acknowledgement of ``"sr"``; as many as there are if None.
    timestamps
        Whether every packet has timestamps, 10 bytes.
    window_round_trips
        Window in round trips. In go-back-N, what is sent between one round trip and the timeout is in vain: with a shorter
        window the goodput is the same and there is less to simulate, but the back channel is loaded less.

    Returns
    -------
    dict
        Table of the transport.
    """
    round_trip_s = setting.round_trip_s(place, payload_bytes, protocol)
    packets = window_round_trips * round_trip_s / setting.packet_s(payload_bytes, protocol)
    table: dict[str, Any] = {
        "kind": "arq",
        "mode": _MODES[protocol],
        "segment_bytes": payload_bytes,
        "header_bytes": HEADER_BYTES[protocol],
        "ack_bytes": REPORT_BYTES[protocol],
        "ack": "cumulative",
        "rate_bps": setting.rate_bps * (1 - _SLOWER),
        "window_frames": math.ceil(packets) + 1,
        "rto": timer.rto(round_trip_s),
    }
    if protocol == "sr":
        if blocks is None:
            # "Unlimited blocks and not increasing headers": acknowledgements of single packets say the same.
            table["ack"] = "per-packet"
        else:
            # The header of 60 bytes has room for four.
            table |= {"sack_blocks": blocks, "ack_bytes": REPORT_BYTES["sr"] - BLOCK_OPTION_BYTES}
    return table | ({"timestamps": True} if timestamps else {})


def scenario(
    title: str,
    setting: Setting,
    place: str,
    transports: Mapping[str, Mapping[str, Any]],
    *,
    duration_s: float,
    runs: int,
    channel: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Transports, one after the other, over a link of the paper with the same errors in both directions.

    Parameters
    ----------
    title
        What it is.
    setting
        The link.
    place
        How far away.
    transports
        By name; the grid runs over them.
    duration_s
        Of each run.
    runs
        Independent runs.
    channel
        Of both directions; independent bit errors unless given.

    Returns
    -------
    dict
        The scenario.
    """
    errors = dict(channel or {"kind": "ber", "ber": setting.ber})
    return {
        "title": f"Epple, {title}",
        "duration_s": duration_s,
        "runs": runs,
        "link": {
            "rate_bps": setting.rate_bps,
            "delay_s": setting.delay_s(place),
            "channel": errors,
            "return": {"channel": errors},
        },
        "transport": {name: dict(table) for name, table in transports.items()},
        "flow": {"bulk": {"transport": next(iter(transports)), "traffic": {"kind": "bulk"}}},
        "grid": {TRANSPORT: list(transports)},
    }
