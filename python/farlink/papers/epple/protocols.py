"""The protocols that the paper's abstract names, as transports for its four channels.

Each has the header that the paper gives it, or its own without IP: the simulated protocol "resides on the data link layer".
All have the timers of table 1 and know no minimum of a second, which over 400 m would be a million round trips.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from farlink.papers.epple.scenarios import transport
from farlink.papers.epple.setting import HEADER_BYTES, REPORT_BYTES, Setting
from farlink.papers.epple.timers import SR_TIMER, TCP_TIMER, by_name

PAYLOAD_BYTES = 1000
CORRECTED_BYTES = 8
"""Wrong bytes that the code around a packet corrects in each codeword of 255 bytes; twice as many are parity."""
UDP_HEADER_BYTES = 8
COPY_SPACING_S = 0.01
"""Between the copies of a datagram: longer than most fades."""
SOURCE_PACKETS, REPAIR_PACKETS = 200, 20
_CODEWORD_BYTES = 255
_NUMBER_BYTES = 4
_BLOCKS_HELD = 3
_LEAST_QUEUE = 100
_WINDOW_ROUND_TRIPS = 10
# Just below the rate of the link, as the other senders.
_SHARE_OF_RATE = 1 - 1e-6

SETTING = (
    f"In protocols, headers are without IP: {UDP_HEADER_BYTES} bytes of UDP, 60 with four blocks, else 20. Copies of UDP "
    f"are {1e3 * COPY_SPACING_S:g} ms apart. The code in a packet corrects {CORRECTED_BYTES} bytes of each "
    f"{_CODEWORD_BYTES}; across packets, {REPAIR_PACKETS} repair packets follow {SOURCE_PACKETS}; AeroTP, which carries "
    "them, is told when its link is blocked and waits: that data is late, not lost. ARQ, and SCPS-TP without congestion "
    "control (also with every packet twice), send at the rate of the link with ten round trips of window and more; before "
    "the others is a queue that holds a round trip, at least 100 packets, and marks from the middle on. Timers: go-back-N "
    f"{TCP_TIMER.words}, the rest of ARQ {SR_TIMER.words}, TCP and SCPS-TP RFC 6298 without its minimum of 1 s."
)
"""Settings that the paper does not give."""


@dataclass(frozen=True)
class Protocol:
    """A row of the table.

    Attributes
    ----------
    words
        Its name.
    table
        Its transport.
    is_reliable
        Whether all data arrives.
    traffic
        What it carries.
    """

    words: str
    table: dict[str, Any]
    is_reliable: bool
    traffic: dict[str, Any]


def protocols(setting: Setting, place: str) -> dict[str, Protocol]:
    """The protocols at a place, by key.

    Parameters
    ----------
    setting
        The link.
    place
        How far away.
    """
    payload = setting.payloads_bytes[PAYLOAD_BYTES]
    correction = {"symbols": CORRECTED_BYTES}
    # Only what carries four blocks needs their header of 60 bytes.
    repeat = {
        **transport(setting, place, payload, "sr", SR_TIMER, blocks=None),
        "header_bytes": HEADER_BYTES["tcp"],
        "ack_bytes": REPORT_BYTES["tcp"],
    }
    nak = {**repeat, "ack": "cumulative", "nak": True}
    tcp = _tcp(setting, place, payload)
    scps = {key: value for key, value in tcp.items() if key not in ("kind", "variant", "delayed_ack")}
    scps |= {"kind": "scps-tp", "ack_every_segments": 1}
    uncontrolled = {
        "congestion_control": "none",
        "rate_bps": setting.rate_bps * _SHARE_OF_RATE,
        "max_window_segments": _WINDOW_ROUND_TRIPS * round_trip_packets(setting, place),
    }
    reliable = {
        "stop-and-wait": ("stop-and-wait", _stop_and_wait(setting, place, payload)),
        "go-back-n": ("TCP of RFC 793 (go-back-N)", transport(setting, place, payload, "tcp", TCP_TIMER)),
        "four-blocks": ("TCP with selective repeat, four blocks", transport(setting, place, payload, "sr", SR_TIMER)),
        "selective-repeat": ("selective repeat", repeat),
        "nak": ("selective repeat, NAK", nak),
        "nak-receiver": ("selective repeat, NAK, timer at the receiver", {**nak, "timer": "receiver"}),
        "hybrid-1": ("hybrid ARQ, type I", {**repeat, "correction": correction}),
        "hybrid-2": ("hybrid ARQ, type II", {**nak, "incremental": {}}),
        "tcp": ("TCP SACK, congestion control", tcp),
        "tcp-ecn": ("TCP SACK, congestion control, ECN", {**tcp, "ecn": True}),
        "scps": ("SCPS-TP, congestion control", scps),
        "scps-ecn": ("SCPS-TP, ECN, corruption signalled", {**scps, "ecn": True, "loss_means": "signalled"}),
        "scps-none": ("SCPS-TP, no congestion control", {**scps, **uncontrolled}),
        "scps-copies": ("SCPS-TP, every packet twice", {**scps, **uncontrolled, "copies": 2}),
    }
    bulk = {"kind": "bulk"}
    across, stream = _across(setting, payload)
    udp = {"kind": "udp", "segment_bytes": payload, "header_bytes": UDP_HEADER_BYTES}
    return {
        "udp": Protocol("UDP", udp, False, _stream(setting, payload, UDP_HEADER_BYTES)),
        "udp-code": Protocol(
            "UDP, a code in every packet",
            {**udp, "correction": correction},
            False,
            _stream(setting, payload, UDP_HEADER_BYTES + parity_bytes(payload + UDP_HEADER_BYTES)),
        ),
        "udp-copies": Protocol(
            "UDP, every packet twice",
            {**udp, "copies": 2, "copy_spacing_s": COPY_SPACING_S},
            False,
            _stream(setting, payload, payload + 2 * (UDP_HEADER_BYTES + _NUMBER_BYTES)),
        ),
        "erasure": Protocol("codes across packets (AeroTP)", across, False, stream),
        **{key: Protocol(words, table, True, bulk) for key, (words, table) in reliable.items()},
    }


def parity_bytes(packet_bytes: int) -> int:
    """Parity that the code adds to a packet: its codewords are as even as they can be."""
    data_bytes = _CODEWORD_BYTES - 2 * CORRECTED_BYTES
    return 2 * CORRECTED_BYTES * math.ceil(packet_bytes / data_bytes)


def round_trip_packets(setting: Setting, place: str) -> int:
    """Packets that fill a round trip."""
    payload = setting.payloads_bytes[PAYLOAD_BYTES]
    return math.ceil(setting.round_trip_s(place, payload, "tcp") / setting.packet_s(payload, "tcp")) + 1


def queue_packets(setting: Setting, place: str) -> int:
    """A queue that holds a round trip, and a hundred packets."""
    return max(round_trip_packets(setting, place), _LEAST_QUEUE)


def _tcp(setting: Setting, place: str, payload: int) -> dict[str, Any]:
    return {
        "kind": "tcp",
        "variant": "sack",
        "segment_bytes": payload,
        "header_bytes": HEADER_BYTES["tcp"],
        "delayed_ack": False,
        "rto": by_name("rfc6298", "RFC 6298", None).rto(setting.round_trip_s(place, payload, "tcp")),
    }


def _stop_and_wait(setting: Setting, place: str, payload: int) -> dict[str, Any]:
    table = transport(setting, place, payload, "tcp", SR_TIMER)
    return {key: value for key, value in table.items() if key != "window_frames"} | {"mode": "stop-and-wait"}


def _across(setting: Setting, payload: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Repair packets after a block of packets, and a stream that fills the link with them."""
    header, checksum = HEADER_BYTES["tcp"], 4
    packet_bytes = payload + header + checksum
    block_s = 8 * packet_bytes * (SOURCE_PACKETS + REPAIR_PACKETS) / setting.rate_bps
    table = {
        "kind": "aerotp",
        "mode": "quasi-reliable",
        "header_bytes": header,
        "packet_bytes": packet_bytes,
        "rate_bps": setting.rate_bps * _SHARE_OF_RATE,
        "fec_words": 0,
        # A gap that cannot be mended is skipped after the time of a few blocks.
        "erasure": {"source": SOURCE_PACKETS, "repair": REPAIR_PACKETS, "timeout_s": _BLOCKS_HELD * block_s},
    }
    stream = _stream(setting, payload, packet_bytes * (1 + REPAIR_PACKETS / SOURCE_PACKETS) - payload)
    # A millionth slower again, so that the sender keeps up.
    return table, stream | {"rate_bps": stream["rate_bps"] * _SHARE_OF_RATE}


def _stream(setting: Setting, payload: int, more_bytes: float) -> dict[str, Any]:
    rate_bps = setting.rate_bps * _SHARE_OF_RATE * payload / (payload + more_bytes)
    return {"kind": "cbr", "rate_bps": rate_bps, "payload_bytes": payload}
