"""Beyond the paper: round trips for a file at the highest bit error rate, by copies, beside the bounds of any scheme."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farlink.models import arq
from farlink.models.aerotp import rounds_of_the_worst, selective_repeat_completion_s
from farlink.models.bounds import completion_bound_s, least_bytes
from farlink.papers.check import Check, claimed
from farlink.papers.curves import estimate
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.pathapati.path import (
    DELAY_S,
    FILE_BYTES,
    PACKET_BYTES,
    RATE_BPS,
    RTT_S,
    TRANSPORT,
    WORST_BER,
    reliable,
    three_hops,
    trailer,
)
from farlink.plot.bars import Bar, bars

ITEM = "round-trips"
# As the worst packet decides, a mean of 20 runs is known within 7 %.
_RUNS = 100
# The aim for 1 MB.
_SINGLE, _SINGLE_WITHIN = 20.0, 2.0
FEW = 8.0
COPIES = (1, 2, 3, 4)


@dataclass(frozen=True)
class Transfer:
    """A file's transfers, mean of the runs.

    Attributes
    ----------
    time_s
        From the start to the last byte.
    sent_bytes
        With headers and control packets.
    """

    time_s: Estimate
    sent_bytes: Estimate

    @property
    def rounds(self) -> Estimate:
        """Transmissions of what came last: a one-way delay, and a round trip for each one more."""
        return Estimate((self.time_s.mean - DELAY_S) / RTT_S + 1, self.time_s.half_width / RTT_S)

    def relative_bytes(self, file_bytes: float, loss: float) -> Estimate:
        """Bytes sent over the least that any scheme sends of data."""
        least = float(least_bytes(file_bytes, loss_rate=loss))
        return Estimate(self.sent_bytes.mean / least, self.sent_bytes.half_width / least)


def transfers(
    bench: Workbench, transports: Mapping[str, Mapping[str, Any]], *, file_bytes: int = FILE_BYTES, name: str = ITEM
) -> dict[str, Transfer]:
    """Send a file with each transport at a bit error rate of 1e-4, both ways; its scenario has that name."""
    result = bench.run(
        f"{name}-{file_bytes // 1_000_000}-MB",
        {
            "title": f"Pathapati, a file of {file_bytes / 1e6:g} MB at a bit error rate of 1e-4",
            "runs": _RUNS,
            **three_hops(WORST_BER),
            "transport": {name: dict(table) for name, table in transports.items()},
            "flow": {"data": {"transport": next(iter(transports)), "traffic": {"kind": "file", "bytes": file_bytes}}},
            "grid": {TRANSPORT: list(transports)},
        },
    )
    entries = {entry[TRANSPORT]: entry for entry in result.summary() if entry["flow"] == "all"}
    return {
        key: Transfer(estimate(entries[key]["transfer_time_mean_s"]), estimate(entries[key]["sent_bytes"]))
        for key in transports
    }


def by_copies(bench: Workbench, file_bytes: int) -> dict[str, Transfer]:
    """A file with each number of copies."""
    return transfers(bench, {f"copies-{copies}": reliable(copies=copies) for copies in COPIES}, file_bytes=file_bytes)


def round_trips(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """1 MB and 10 MB, by copies."""
    found = by_copies(bench, FILE_BYTES)
    checks = _aims(found)
    checks += [_ideal(FILE_BYTES, copies, found[f"copies-{copies}"]) for copies in COPIES]
    longer = by_copies(bench, 10 * FILE_BYTES)
    checks += [_ideal(10 * FILE_BYTES, copies, longer[f"copies-{copies}"]) for copies in COPIES]
    for file_bytes, transfers_of in ((FILE_BYTES, found), (10 * FILE_BYTES, longer)):
        checks += [beside_any_scheme(ITEM, file_bytes, name, transfers_of[name]) for name in ("copies-1", "copies-4")]
    return checks, [drawing(ITEM, "1 MB at a bit error rate of 1e-4: rounds by copies", found)]


def beside_any_scheme(item: str, file_bytes: int, name: str, transfer: Transfer) -> Check:
    """A transfer's time beside what rate and delay allow any scheme."""
    bound_s = _any_scheme_s(file_bytes)
    return claimed(
        item,
        f"{_size(file_bytes)}, {name.replace('-', ' ')}: time, s",
        f"beyond the paper: any scheme {bound_s:.1f} s",
        transfer.time_s,
        at_least=bound_s,
        rule="no scheme is faster than delay + file / (rate x (1 - p) x payload share): agrees from there up; "
        f"p = {LOSS:.4f} of packets of 1500 bytes",
    )


def _ideal(file_bytes: int, copies: int, transfer: Transfer) -> Check:
    """A transfer beside ideal selective repeat, as if rounds overlapped without end and as if not at all."""
    mean_rounds = float(rounds_of_the_worst(LOSS, packets=packets_of(file_bytes), copies=copies))
    least_s = max(DELAY_S + RTT_S * (mean_rounds - 1), _any_scheme_s(file_bytes))
    most_s = float(
        selective_repeat_completion_s(
            file_bytes,
            ber=WORST_BER,
            rate_bps=RATE_BPS,
            delay_s=DELAY_S,
            payload_bytes=_CUT.payload_bytes,
            header_bytes=PACKET_BYTES - _CUT.payload_bytes,
            copies=copies,
        )
    )
    words = "single copies" if copies == 1 else f"{copies} copies"
    return claimed(
        ITEM,
        f"{_size(file_bytes)}, {words}: time, s",
        f"beyond the paper: ideal selective repeat {least_s:.0f} to {most_s:.0f} s ({mean_rounds:.1f} rounds)",
        transfer.time_s,
        at_least=0.9 * least_s,
        at_most=1.1 * most_s,
        rule="agrees from a tenth below what rounds alone take to a tenth above what they take with all transmissions on top",
    )


def _aims(found: Mapping[str, Transfer]) -> list[Check]:
    """The aim for 1 MB."""
    packets = packets_of(FILE_BYTES)
    single, four = (float(rounds_of_the_worst(LOSS, packets=packets, copies=copies)) for copies in (1, max(COPIES)))
    size = _size(FILE_BYTES)
    return [
        claimed(
            ITEM,
            f"{size}, single copies: transmissions of what came last",
            f"beyond the paper: {_SINGLE:g} within {_SINGLE_WITHIN:g}; bound {single:.1f}",
            found["copies-1"].rounds,
            at_least=_SINGLE - _SINGLE_WITHIN,
            at_most=_SINGLE + _SINGLE_WITHIN,
            rule=f"agrees from {_SINGLE - _SINGLE_WITHIN:g} to {_SINGLE + _SINGLE_WITHIN:g}; the bound is the mean for the "
            f"worst of {packets} packets; in round trips from start to end, half of one less",
        ),
        claimed(
            ITEM,
            f"{size}, {max(COPIES)} copies: transmissions of what came last",
            f"beyond the paper: at most {FEW:g}; bound {four:.1f}",
            found[f"copies-{max(COPIES)}"].rounds,
            at_most=FEW,
            rule=f"agrees up to {FEW:g}; the bound is that of the worst packet, sent in {max(COPIES)} copies each time",
        ),
    ]


_CUT = trailer()
LOSS = float(arq.packet_loss(WORST_BER, packet_bytes=PACKET_BYTES))
"""Packet loss of full packets."""


def _any_scheme_s(file_bytes: int) -> float:
    return float(
        completion_bound_s(
            file_bytes,
            loss_rate=LOSS,
            rate_bps=RATE_BPS,
            delay_s=DELAY_S,
            payload_bytes=_CUT.payload_bytes,
            header_bytes=PACKET_BYTES - _CUT.payload_bytes,
        )
    )


def packets_of(file_bytes: int) -> int:
    """Full packets of a file."""
    return math.ceil(file_bytes / _CUT.payload_bytes)


def _size(file_bytes: int) -> str:
    return f"{file_bytes / 1e6:g} MB"


def drawing(item: str, heading: str, found: Mapping[str, Transfer]) -> Drawing:
    """Rounds of each transfer, with the bound of its copies."""
    drawn = [
        Bar(name.replace("-", " "), transfer.rounds.mean, transfer.rounds.half_width, _bound(name))
        for name, transfer in found.items()
    ]
    x_label = "transmissions of what came last (a round trip between two)"

    caption = "Mean of the runs with 95 % intervals; marks: the mean number of rounds for the worst packet."
    return Drawing(
        item,
        heading,
        caption,
        lambda: bars(drawn, x_label=x_label, bound_words="worst packet of ideal selective repeat with so many copies"),
    )


def _bound(name: str) -> float:
    if not name.startswith("copies-"):
        return math.nan
    copies = int(name.removeprefix("copies-"))
    return float(rounds_of_the_worst(LOSS, packets=packets_of(FILE_BYTES), copies=copies))
