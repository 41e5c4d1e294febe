"""ns-3's TCP and UDP on the same path, measured once and kept, beside AeroTP and farlink's TCP."""

from __future__ import annotations

from farlink.models import arq
from farlink.papers.check import Check, claim
from farlink.papers.estimate import Estimate, ratio
from farlink.papers.item import Drawing, Workbench
from farlink.papers.pathapati.path import FILE_BYTES, PACKET_BYTES, WORST_BER, reliable, tcp
from farlink.papers.pathapati.peers import Measured, ns3, ns3_stock, ns3_version
from farlink.papers.pathapati.round_trips import transfers

ITEM = "ns-3"
NAMES = {"newreno": "NewReno", "cubic": "CUBIC", "bbr": "BBR"}
# "Significantly better", and "the same" for two simulators' TCP.
_MUCH = 10.0
_SAME = 0.1
# Up to where TCP delivers all, by the text.
_TCP_COMPLETE = 3.5e-5


def beside_ns3(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """1 MB and 10 MB at a bit error rate of 1e-4."""
    engine = f"ns-3 {ns3_version()}"
    checks = []
    for file_bytes in (FILE_BYTES, 10 * FILE_BYTES):
        ours = transfers(bench, {"reliable": reliable()}, file_bytes=file_bytes, name="ns-3-aerotp")["reliable"].time_s
        size = f"{file_bytes / 1e6:g} MB"
        for transport, name in NAMES.items():
            peer = ns3(transport, WORST_BER, file_bytes)
            taken = _estimate(peer.figures["completion_s"])
            share = ratio(taken, ours)
            note = f"agrees from a factor of {_MUCH:g} up; AeroTP takes {ours.mean:.0f} s with single copies, ns-3's {name} "
            note += f"{taken.mean:,.0f} s (mean of {peer.runs} runs; SYN timeout 45 s, initial RTT 20 s, minimum RTO 30 s)"
            printed = "AeroTP reliable-mode is able to achieve significantly better performance than TCP"
            cell = f"{size} at BER 1e-4: time of ns-3's {name} over that of AeroTP's reliable mode"
            checks.append(Check(ITEM, cell, printed, engine, share, claim(share, at_least=_MUCH), note))
    return [*checks, *_udp(engine), *_tcp(bench, engine), *_stock(engine)], []


def _udp(engine: str) -> list[Check]:
    survives = 1 - float(arq.packet_loss(WORST_BER, packet_bytes=PACKET_BYTES))
    found = []
    for file_bytes in (FILE_BYTES, 10 * FILE_BYTES):
        delivered = _estimate(ns3("udp", WORST_BER, file_bytes).figures["delivered_bytes"])
        share = Estimate(delivered.mean / file_bytes, delivered.half_width / file_bytes)
        note = f"agrees within two points of (1 - BER)^12000 = {survives:.1%}; ns-3's packets have two bytes of PPP more"
        verdict = claim(share, at_least=survives - 0.02, at_most=survives + 0.02)
        cell = f"{file_bytes / 1e6:g} MB at BER 1e-4: share of the data that ns-3's UDP delivers"
        found.append(Check(ITEM, cell, "UDP looses a percentage of the data due to corruption", engine, share, verdict, note))
    return found


def _tcp(bench: Workbench, engine: str) -> list[Check]:
    """Farlink's NewReno beside ns-3's."""
    ours = transfers(bench, {"tcp-newreno": tcp("newreno")}, name="ns-3-tcp")["tcp-newreno"].time_s
    theirs = _estimate(ns3("newreno", WORST_BER).figures["completion_s"])
    share = ratio(ours, theirs)
    note = f"agrees within {_SAME:.0%}; {theirs.mean:,.0f} s there"
    verdict = claim(share, at_least=1 - _SAME, at_most=1 + _SAME)
    cell = f"1 MB at BER 1e-4: time of farlink's NewReno over that of {engine}"
    return [Check(ITEM, cell, "beyond the paper: the same", "packet", share, verdict, note)]


def _stock(engine: str) -> list[Check]:
    """ns-3's own timers and retries."""
    found = []
    for stock in ns3_stock():
        share = Estimate(stock.given_up / stock.runs)
        is_frequent = stock.ber > _TCP_COMPLETE
        verdict = claim(share, at_least=0.5) if is_frequent else claim(share, at_most=0.0)
        note = "agrees if none is given up up to 3.5e-5, and half of them above; timers, retries and buffers as ns-3 has them"
        cell = f"1 MB at BER {stock.ber:g}, segments of {stock.segment_bytes} bytes, stock timers: connections given up, share"
        printed = "TCP performance drops rapidly" if is_frequent else "deliver the full 1 MB of data … for low error rates"
        found.append(Check(ITEM, cell, printed, engine, share, verdict, note))
    return found


def _estimate(figure: Measured) -> Estimate:
    return Estimate(figure.mean, figure.half_width)
