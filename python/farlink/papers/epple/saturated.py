"""Equations (8) to (10) beside the packet engine, on a saturated channel with independent bit errors.

`equation` and `scenario` describe the same link; in the scenario every assumption of the equations is a key:

=============================================  ==================================================================
the equations                                  the scenario
=============================================  ==================================================================
a packet is lost if any of its bits is wrong   channel ``ber``: headers are bits like all others
repetition after a round trip and one packet   ``rto``: fixed, longer by a nanosecond, that the acknowledgement wins
a window that just holds a round trip          ``window_frames`` = 1 + C_RTT, rounded up
a receiver that keeps everything               ``buffer_frames``: eight windows (selective repeat)
acknowledgements take no time                  a way back of 10 Tbit/s
acknowledgements are never lost                a way back without errors
the channel is saturated                       bulk traffic, paced a millionth below the link's rate; no start-up
=============================================  ==================================================================
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farlink.models import arq

RATE_BPS = 622e6
BER = 1e-6
SPEED_OF_LIGHT_MPS = 3e8
"""The paper's table is computed with this."""
DISTANCES_M = {"Testbed": 400.0, "ATENAA": 1500.0, "FASOLT": 61e3, "KIODO": 2500e3}
PAYLOADS_BYTES = (500, 1000, 1500)
HEADER_BYTES = {"stop-and-wait": 20, "go-back-n": 20, "selective-repeat": 60}
ACK_BYTES = 28
_MARGIN_S = 1e-9
_WARMUP_ROUND_TRIPS = 20
# Times are whole picoseconds: at the same rate, rounding would let a queue grow until timers expire a nanosecond too early.
_SLOWER = 1e-6


@dataclass(frozen=True)
class Cell:
    """A protocol, a packet size and a distance.

    Attributes
    ----------
    protocol
        ``"stop-and-wait"``, ``"go-back-n"`` or ``"selective-repeat"``.
    payload_bytes
        User data of a packet.
    place
        A key of `DISTANCES_M`.
    """

    protocol: str
    payload_bytes: int
    place: str

    @property
    def header_bytes(self) -> int:
        """Header of a packet."""
        return HEADER_BYTES[self.protocol]

    @property
    def rtt_s(self) -> float:
        """Round-trip time."""
        return float(arq.round_trip_s(DISTANCES_M[self.place], speed_mps=SPEED_OF_LIGHT_MPS))

    @property
    def packet_s(self) -> float:
        """How long a packet is on the transmitter."""
        return 8 * (self.payload_bytes + self.header_bytes) / RATE_BPS

    @property
    def capacity(self) -> float:
        """Packets that a round trip holds, by equation (7)."""
        return float(
            arq.round_trip_capacity(
                self.rtt_s, rate_bps=RATE_BPS, payload_bytes=self.payload_bytes, header_bytes=self.header_bytes
            )
        )

    @property
    def window(self) -> int:
        """1 + C_RTT, rounded up: with less, the channel would not be saturated."""
        return math.ceil(1 + self.capacity)


CELLS = tuple(
    Cell(protocol, payload, place) for protocol in HEADER_BYTES for payload in PAYLOADS_BYTES for place in DISTANCES_M
)


def equation(cell: Cell, *, with_header_bits: bool = True, return_ber: float = 0.0, whole_packets: bool = False) -> float:
    """Goodput by equation (8), (9) or (10), as a fraction of the link rate.

    Parameters
    ----------
    cell
        Which.
    with_header_bits
        Whether the bits of the header count in the loss probability. The paper's table is computed without.
    return_ber
        Bit error probability of the way back, for equation (6).
    whole_packets
        Whether a loss in go-back-N costs whole packets: C_RTT rounded up, since a packet is not broken off.

    Returns
    -------
    float
        Fraction of the link rate.
    """
    lengths = {"payload_bytes": cell.payload_bytes, "header_bytes": cell.header_bytes}
    counted = cell.payload_bytes + (cell.header_bytes if with_header_bits else 0)
    loss = arq.packet_or_ack_loss(BER, packet_bytes=counted, return_ber=return_ber, ack_bytes=ACK_BYTES)
    if cell.protocol == "selective-repeat":
        return float(arq.goodput_selective_repeat(loss, **lengths))
    if cell.protocol == "stop-and-wait":
        return float(arq.goodput_stop_and_wait(loss, capacity=cell.capacity, **lengths))
    capacity = cell.window - 1 if whole_packets else cell.capacity
    return float(arq.goodput_go_back_n(loss, capacity=capacity, **lengths))


def timeout_s(cell: Cell, more_bytes: int = 0) -> float:
    """A round trip and one packet time, and a nanosecond, that the acknowledgement comes first.

    Parameters
    ----------
    cell
        Which.
    more_bytes
        Bytes beside the packet that are on the transmitters in that time.

    Returns
    -------
    float
        Time in s.
    """
    return cell.rtt_s + cell.packet_s + 8 * more_bytes / RATE_BPS + _MARGIN_S


def packets_for(cell: Cell, half_width: float) -> int:
    """Packets to send for a 95 % interval of this relative half-width, by the theory of renewals.

    Parameters
    ----------
    cell
        Which.
    half_width
        Half-width over the mean.

    Returns
    -------
    int
        Packets.
    """
    loss = float(arq.packet_loss(BER, packet_bytes=cell.payload_bytes + cell.header_bytes))
    if cell.protocol == "go-back-n":
        good, wasted = 1 / loss, cell.window
        losses = (1.96 * wasted / (good + wasted) / half_width) ** 2
        return math.ceil(losses * (good + wasted))
    return math.ceil((1.96 / half_width) ** 2 * loss / (1 - loss))


def scenario(
    cell: Cell, *, packets: int, runs: int = 1, changes: Mapping[str, Any] | None = None, fast_return: bool = True
) -> dict[str, Any]:
    """The cell as a scenario.

    Parameters
    ----------
    cell
        Which.
    packets
        About how many packets to send in all runs together; each run sends at least ten thousand, and a hundred windows.
    runs
        Independent runs.
    changes
        Keys of the transport that differ from the equations' assumptions; a value of None takes a key out. ``"return"`` is
        the channel of the way back.
    fast_return
        Whether acknowledgements take no time; otherwise the way back has the rate of the link.

    Returns
    -------
    dict
        The scenario.
    """
    transport: dict[str, Any] = {
        "kind": "arq",
        "mode": cell.protocol,
        "segment_bytes": cell.payload_bytes,
        "header_bytes": cell.header_bytes,
        "ack_bytes": ACK_BYTES,
        "ack": "per-packet",
        "rate_bps": RATE_BPS * (1 - _SLOWER),
        "rto": {"algorithm": "fixed", "initial_s": timeout_s(cell)},
    }
    if cell.protocol != "stop-and-wait":
        transport["window_frames"] = cell.window
    if cell.protocol == "selective-repeat":
        transport["buffer_frames"] = 8 * cell.window
    changes = dict(changes or {})
    back = {"rate_bps": 1e13 if fast_return else RATE_BPS, "channel": changes.pop("return", {"kind": "none"})}
    transport |= copy.deepcopy(changes)
    cycle_s = cell.packet_s + (cell.rtt_s if cell.protocol == "stop-and-wait" else 0.0)
    warmup_s = _WARMUP_ROUND_TRIPS * (cell.rtt_s + cell.packet_s)
    return {
        "title": f"{cell.protocol}, {cell.payload_bytes} bytes, {cell.place}",
        "duration_s": warmup_s + cycle_s * max(packets / runs, 10_000, 100 * cell.window),
        "runs": runs,
        "measure": {"warmup_s": warmup_s},
        "link": {
            "rate_bps": RATE_BPS,
            "delay_s": cell.rtt_s / 2,
            "channel": {"kind": "ber", "ber": BER},
            "return": back,
        },
        "transport": {"arq": {key: value for key, value in transport.items() if value is not None}},
        "flow": {"bulk": {"transport": "arq", "traffic": {"kind": "bulk"}}},
    }
