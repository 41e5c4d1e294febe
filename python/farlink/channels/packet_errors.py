"""Which packets of one length the wrong bits of a trace damage, and the lists of them that ns-2 and ns-3 read.

Brodbekier, Mathias and Brandão work in two steps (section IV): a decoder's wrong bits are recorded first, then mapped to wrong
packets, and the simulator replays these.
"""

from __future__ import annotations

import numpy as np

from farlink.arguments import checked_arguments
from farlink.channels.trace import Trace
from farlink.errors import TraceError

# A byte for each packet: as many as memory takes without trouble.
_MOST_PACKETS = 10**9


@checked_arguments
def packet_errors(trace: Trace, packet_bytes: int, corrected_bits: int = 0) -> Trace:
    """The packets that wrong bits damage, where packets of one length follow each other without gaps.

    Parameters
    ----------
    trace
        A trace of kind ``"bit-errors"``.
    packet_bytes
        Length of a packet on the wire in bytes, headers included; at least 1. A packet that the trace does not cover to its
        end is left out.
    corrected_bits
        Wrong bits that a code around each packet corrects; 0 or more. A packet is lost if it has more.

    Returns
    -------
    Trace
        A trace of kind ``"packet-loss"``: 1 for each lost packet.

    Raises
    ------
    TraceError
        If it is another kind of trace or shorter than one packet, has more than 1e9 packets, or a number is out of range.

    Notes
    -----
    The channel ``bit-trace`` of a scenario counts the bits of packets and no idle time. So it damages the same packets if all
    have this length and no transport corrects bits.

    Examples
    --------
    >>> bits = Trace("bit-errors", {"position": [10, 12, 79, 170], "bits": 200})
    >>> packet_errors(bits, packet_bytes=5)["lost"].tolist()
    [1, 1, 0, 0, 1]
    >>> packet_errors(bits, packet_bytes=5, corrected_bits=1)["lost"].tolist()
    [1, 0, 0, 0, 0]
    """
    if trace.kind != "bit-errors":
        raise TraceError(f"a {trace.kind} trace has no wrong bits", "give a trace of kind bit-errors")
    if packet_bytes < 1:
        raise TraceError(f"packets of {packet_bytes} bytes", "a packet has at least 1 byte")
    if corrected_bits < 0:
        raise TraceError(f"{corrected_bits} corrected bits", "give 0 or more")
    bits, packet_bits = int(trace["bits"]), 8 * packet_bytes
    packets = bits // packet_bits
    if packets == 0:
        raise TraceError(f"{bits:,} bits are no packet of {packet_bytes} bytes", "give a longer trace, or shorter packets")
    if packets > _MOST_PACKETS:
        raise TraceError(f"{packets:,} packets are more than {_MOST_PACKETS:,}", "give a shorter trace, or longer packets")
    # Positions ascend, so the wrong bits of a packet lie together.
    damaged, wrong = np.unique(trace["position"] // np.uint64(packet_bits), return_counts=True)
    lost = np.zeros(packets, np.uint8)
    index = damaged[wrong > corrected_bits].astype(np.int64)
    lost[index[index < packets]] = 1
    after = f", {corrected_bits} wrong bits corrected in each" if corrected_bits else ""
    title = f"Packets of {packet_bytes} bytes{after}: {trace.title}"
    meta = {key: value for key, value in trace.meta.items() if key in ("source", "licence", "notes")}
    return Trace("packet-loss", {"lost": lost}, {**meta, "title": title})


def to_flags(trace: Trace) -> str:
    """One line for each packet: 1 if it is lost, else 0."""
    return "".join("1\n" if lost else "0\n" for lost in trace["lost"])


def to_ns2(trace: Trace) -> str:
    """Tcl that makes an error model of ns-2 which drops these packets, counted from 0 where the model is attached.

    Raises
    ------
    TraceError
        If no packet is lost: ns-2 takes no empty list.
    """
    lost = np.flatnonzero(trace["lost"])
    if not lost.size:
        raise TraceError("no packet is lost, and ns-2 takes no empty list", "use no error model, or a longer trace")
    return (
        f"# {trace.title}\n"
        f"# {trace['lost'].size} packets, {lost.size} lost. ns-2 drops none behind the last one of the list.\n"
        "set losses [new ErrorModel/List]\n"
        "$losses unit pkt\n"
        f"$losses droplist {{{' '.join(map(str, lost))}}}\n"
    )


def to_ns3(trace: Trace) -> str:
    """Numbers of the lost packets, one a line, counted from 0, for ``ReceiveListErrorModel::SetList`` of ns-3."""
    return "".join(f"{number}\n" for number in np.flatnonzero(trace["lost"]))
