"""Section II.B: erasure codes across packets, which mend what the code within them cannot."""

from __future__ import annotations

from farlink.models import packet_fec
from farlink.papers.check import Check, claimed
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.pathapati.measures import DELAY, DELIVERED, OVERHEAD, Curves, against_ber, measured, value
from farlink.papers.pathapati.path import WORST_BER, quasi_reliable, scenario, trailer

ITEM = "erasure-codes"
WORDS = 96
SOURCE = 32
REPAIRS = (0, 2, 4, 8)
_PRINTED = "open-loop error recovery mechanisms such as FEC and erasure coding to achieve statistical reliability"


def name_of(repair: int) -> str:
    """Name of a transport."""
    return f"repair-{repair}"


def erasure_curves(bench: Workbench, bers: tuple[float, ...] = (0.0, 2e-5, 5e-5, WORST_BER)) -> Curves:
    """Delivery with 96 words in each packet and repair packets for every 32."""
    transports = {name_of(repair): quasi_reliable(WORDS, repair=repair) for repair in REPAIRS}
    result = bench.run(ITEM, scenario("erasure codes across packets", transports, bers=bers))
    return measured(result, transports, DELIVERED, DELAY, OVERHEAD)


def expected(repair: int, ber: float = WORST_BER) -> float:
    """Share of the data that the closed form lets through."""
    # Repair packets have a longer header, which hardly counts; those of data do not.
    loss = packet_fec.residual_loss(ber, trailer(WORDS))
    return 1 - float(packet_fec.erasure_loss(loss, source=SOURCE, repair=repair))


def erasure_codes(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """None, 2, 4 and 8 repair packets for every 32."""
    curves = erasure_curves(bench)
    most = max(REPAIRS)
    checks = [
        claimed(
            ITEM,
            f"{WORDS} words and {most} repair packets for every {SOURCE}: delivered at BER 1e-4, of 1 MB",
            _PRINTED,
            value(curves, name_of(most), DELIVERED, WORST_BER),
            at_least=0.99,
            rule="statistical reliability: agrees from 99 % of the data up, which mends lost headers too",
        )
    ]
    for repair in REPAIRS:
        delivered = value(curves, name_of(repair), DELIVERED, WORST_BER)
        share = expected(repair)
        checks.append(
            claimed(
                ITEM,
                f"{WORDS} words and {repair} repair packets for every {SOURCE}: delivered, over the closed form",
                f"beyond the paper: {share:.4f} of 1 MB",
                Estimate(delivered.mean / share, delivered.half_width / share),
                at_least=0.995,
                at_most=1.005,
                rule="agrees within half a percent of 1 - p P(Y >= r), Y of k + r - 1 packets; p from headers and payloads",
            )
        )
    names = {name_of(repair): f"{repair} repair packets for 32" for repair in REPAIRS}
    caption = f"{WORDS} words of parity in each packet, 1 MB at 4.416 Mb/s; means of the runs with 95 % intervals."
    heading = "Quasi-reliable mode with erasure codes: delivered of 1 MB"
    return checks, [against_ber(ITEM, heading, caption, curves, names, DELIVERED, is_ordered=True)]
