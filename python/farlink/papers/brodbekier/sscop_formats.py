"""Figure 5 with SSCOP's packet formats in place of STP's."""

from __future__ import annotations

from typing import Any

from farlink.papers.brodbekier.link import BER, PACKET_BYTES, TRANSPORT, base, power, stp, throughput
from farlink.papers.check import Check, claimed
from farlink.papers.curves import at
from farlink.papers.estimate import ratio, scaled
from farlink.papers.item import Workbench

BERS = (1e-6, 1e-5, 1e-4)

_IP_BYTES = 20
# ITU-T Q.2110: numbers of 24 bits, each in 4 bytes. Data has a trailer of one number, a POLL two, a STAT three and one for each
# end of a range, a USTAT three and a fourth.
_DATA_BYTES, _POLL_BYTES, _STAT_BYTES = 4, 8, 12

_ALIKE = 0.02


def sscop() -> dict[str, Any]:
    """STP of figure 5 with the lengths of SSCOP's packets, directly over IP; data packets have 1000 bytes as before."""
    header_bytes = _IP_BYTES + _DATA_BYTES
    return stp() | {
        "segment_bytes": PACKET_BYTES - header_bytes,
        "header_bytes": header_bytes,
        "poll_bytes": _IP_BYTES + _POLL_BYTES,
        "stat_bytes": _IP_BYTES + _STAT_BYTES,
    }


def sscop_formats(bench: Workbench) -> list[Check]:
    """Throughput with SSCOP's lengths of packets over that with farlink's, headers counted."""
    scenario = base("figure 5: STP with SSCOP's formats")
    scenario["link"]["channel"] = {"kind": "ber", "ber": BERS[0]}
    scenario["transport"] = {"stp": stp(), "sscop": sscop()}
    scenario["flow"]["bulk"]["transport"] = "stp"
    scenario["grid"] = {BER: list(BERS), TRANSPORT: ["stp", "sscop"]}
    result = bench.run("figure-5-sscop", scenario)
    ours = throughput(result, BER, {TRANSPORT: "stp"})
    data_share = stp()["segment_bytes"] / sscop()["segment_bytes"]
    theirs = scaled(throughput(result, BER, {TRANSPORT: "sscop"}), data_share)
    return [
        claimed(
            "figure-5",
            f"STP with the lengths of SSCOP's packets over farlink's, independent errors: throughput at BER {power(ber)}",
            "Satellite Transport Protocol (STP): An SSCOP-based Transport Protocol for Datagram Satellite Networks",
            ratio(at(theirs, ber), at(ours, ber)),
            at_least=1 - _ALIKE,
            at_most=1 + _ALIKE,
            rule=f"farlink's packets have a layout of their own: agrees if that changes the throughput by {_ALIKE:.0%} at most",
            cause="POLLs and STATs have other lengths",
        )
        for ber in BERS
    ]
