"""The paper's path, its traffic and its transports as scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from farlink.models.packet_fec import Trailer

LAN = {"rate_bps": 10e9, "delay_s": 0.0}
RATE_BPS = 5e6
DELAY_S = 10.0
RTT_S = 2 * DELAY_S

FILE_BYTES = 1_000_000
CBR_BPS = 4.416e6
PACKET_BYTES = 1500
UDP_HEADER_BYTES = 28
MESSAGE_BYTES = PACKET_BYTES - UDP_HEADER_BYTES
HEADER_BYTES = 40
TCP_HEADER_BYTES = 40

# From 0 to 0.0001; the text names 0.000035.
BERS = (0.0, 5e-6, 1e-5, 2e-5, 3.5e-5, 5e-5, 7e-5, 1e-4)
WORST_BER = max(BERS)
RUNS = 20
# Not printed. TCP has delivered all at 3.5e-5 by then, and not above, as the text says.
TIME_LIMIT_S = 22_000.0
# Before the round trip is known; ns-3's TCP is given the same.
_INITIAL_RTO_S = 45.0

BER = "hop.radio.channel.ber"
_RETURN_BER = "hop.radio.return.channel.ber"
TRANSPORT = "flow.data.transport"
_MESSAGE = "flow.data.traffic.payload_bytes"


def scenario(
    title: str,
    transports: Mapping[str, Mapping[str, Any]],
    *,
    bers: Iterable[float] = BERS,
    duration_s: float | None = TIME_LIMIT_S,
) -> dict[str, Any]:
    """1 MB at a constant bit rate over the three hops, against bit error rate and transport.

    Parameters
    ----------
    title
        What it is.
    transports
        By name; the grid runs over them.
    bers
        Bit error rates of the radio, the same both ways.
    duration_s
        Time limit; until all is delivered if None.
    """
    names, rates = list(transports), list(bers)
    data: dict[str, Any] = {
        "title": f"Pathapati, {title}",
        "runs": RUNS,
        **three_hops(rates[0]),
        "transport": {name: dict(table) for name, table in transports.items()},
        "flow": {
            "data": {
                "transport": names[0],
                "traffic": {"kind": "cbr", "rate_bps": CBR_BPS, "payload_bytes": MESSAGE_BYTES, "bytes": FILE_BYTES},
            }
        },
        "grid_zip": [
            {BER: rates, _RETURN_BER: rates},
            {TRANSPORT: names, _MESSAGE: [message_bytes(transports[name]) for name in names]},
        ],
    }
    return data if duration_s is None else {**data, "duration_s": duration_s}


def three_hops(ber: float) -> dict[str, Any]:
    """The path: a network in the aircraft, the radio, a network on the ground."""
    errors = {"kind": "ber", "ber": ber}
    radio = {"rate_bps": RATE_BPS, "delay_s": DELAY_S, "channel": errors, "return": {"channel": errors}}
    return {"path": ["aircraft", "radio", "ground"], "hop": {"aircraft": LAN, "radio": radio, "ground": LAN}}


def message_bytes(transport: Mapping[str, Any]) -> int:
    """User data of a full packet, which is how long the application's messages are."""
    if "segment_bytes" in transport:
        return int(transport["segment_bytes"])
    return trailer(int(transport.get("fec_words", 0)), erasure="erasure" in transport).payload_bytes


# Optional fields beside the header of 40 bytes: until an answer comes, which is after all of the data, every packet opens the
# connection; how strong the parity is; of a repair packet, what it is of, for which packets of data leave room.
_OPENING_BYTES = 4
_FEC_OPTION_BYTES = 4
_ERASURE_OPTION_BYTES = 16


def trailer(words: int = 0, *, erasure: bool = False) -> Trailer:
    """How a full packet of AeroTP is cut into header, payload, its checksum and parity."""
    options = _OPENING_BYTES + _FEC_OPTION_BYTES * (words > 0) + _ERASURE_OPTION_BYTES * erasure
    return Trailer.of(words, packet_bytes=PACKET_BYTES, header_bytes=HEADER_BYTES + options)


def reliable(**keys: Any) -> dict[str, Any]:
    """AeroTP's reliable mode: selective repeat, paced at the radio's rate; single copies unless `keys` say otherwise."""
    return {
        "kind": "aerotp",
        "mode": "reliable",
        "packet_bytes": PACKET_BYTES,
        "header_bytes": HEADER_BYTES,
        "rate_bps": RATE_BPS,
        "initial_rto_s": _INITIAL_RTO_S,
        **keys,
    }


def quasi_reliable(words: int, *, repair: int = 0) -> dict[str, Any]:
    """AeroTP's quasi-reliable mode with so many words of parity; sent as it comes, so that the radio's queue shows."""
    table = {
        "kind": "aerotp",
        "mode": "quasi-reliable",
        "packet_bytes": PACKET_BYTES,
        "header_bytes": HEADER_BYTES,
        "rate_bps": LAN["rate_bps"],
        "fec_words": words,
    }
    return table | ({"erasure": {"source": 32, "repair": repair}} if repair else {})


def udp() -> dict[str, Any]:
    """UDP."""
    return {"kind": "udp", "header_bytes": UDP_HEADER_BYTES, "segment_bytes": MESSAGE_BYTES}


def tcp(variant: str = "reno", **keys: Any) -> dict[str, Any]:
    """TCP with timers that outlast the round trip: stock ones end the connection before the first answer."""
    return {
        "kind": "tcp",
        "variant": variant,
        "segment_bytes": PACKET_BYTES - TCP_HEADER_BYTES,
        "header_bytes": TCP_HEADER_BYTES,
        "rto": {"initial_s": _INITIAL_RTO_S, "minimum_s": 30, "maximum_s": 60},
        **keys,
    }
