"""Beyond the paper: round trips and bytes for a file at the highest bit error rate, beside the bounds of any scheme."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from farlink.models import arq
from farlink.models.aerotp import rounds_of_the_worst, selective_repeat_completion_s
from farlink.models.bounds import completion_bound_s, least_bytes, least_rounds
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITEM = "round-trips"
# As the worst packet decides, a mean of 20 runs is known within 7 %.
_RUNS = 100
# What is aimed at for 1 MB.
_SINGLE, _SINGLE_WITHIN = 20.0, 2.0
_FEW = 8.0
_CODED = 4.0
_CODED_BYTES = 1.25
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


def schemes() -> dict[str, dict[str, Any]]:
    """Ways of AeroTP to get a file across, by name."""
    copied = {f"copies-{copies}": reliable(copies=copies) for copies in COPIES}
    return {**copied, "adaptive-length": reliable(adaptive_length={}), "coded": reliable(coded={})}


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


def round_trips(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """1 MB and 10 MB, every scheme."""
    checks = []
    found = {}
    for file_bytes in (FILE_BYTES, 10 * FILE_BYTES):
        found[file_bytes] = transfers(bench, schemes(), file_bytes=file_bytes)
        checks += _checks(file_bytes, found[file_bytes])
    return checks, [_drawing(found[FILE_BYTES])]


def _checks(file_bytes: int, found: Mapping[str, Transfer]) -> list[Check]:
    checks = [_ideal(file_bytes, copies, found[f"copies-{copies}"]) for copies in COPIES]
    if file_bytes == FILE_BYTES:
        checks += _aims(found)
    bound_s = _any_scheme_s(file_bytes)
    return checks + [
        claimed(
            ITEM,
            f"{_size(file_bytes)}, {name.replace('-', ' ')}: time, s",
            f"beyond the paper: any scheme {bound_s:.1f} s",
            found[name].time_s,
            at_least=bound_s,
            rule="no scheme is faster than delay + file / (rate x (1 - p) x payload share): agrees from there up; "
            f"p = {LOSS:.4f} of packets of 1500 bytes",
        )
        for name in ("copies-1", "copies-4", "coded")
    ]


def _ideal(file_bytes: int, copies: int, transfer: Transfer) -> Check:
    """A transfer beside ideal selective repeat, as if rounds overlapped without end and as if not at all."""
    mean_rounds = float(rounds_of_the_worst(LOSS, packets=_packets(file_bytes), copies=copies))
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
    """What is aimed at for 1 MB."""
    packets = _packets(FILE_BYTES)
    single, four = (float(rounds_of_the_worst(LOSS, packets=packets, copies=copies)) for copies in (1, max(COPIES)))
    known = least_rounds(_CODED_BYTES, packets=packets, loss_rate=LOSS)
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
            f"beyond the paper: at most {_FEW:g}; bound {four:.1f}",
            found[f"copies-{max(COPIES)}"].rounds,
            at_most=_FEW,
            rule=f"agrees up to {_FEW:g}; the bound is that of the worst packet, sent in {max(COPIES)} copies each time",
        ),
        claimed(
            ITEM,
            f"{size}, length of packets by the bit error rate: transmissions of what came last",
            f"beyond the paper: at most {_FEW:g}; bound with the best length of all {_best_rounds():.1f}",
            found["adaptive-length"].rounds,
            at_most=_FEW,
            rule=f"agrees up to {_FEW:g}; shorter packets are lost less often, and the length is learnt",
        ),
        claimed(
            ITEM,
            f"{size}, coded: transmissions of what came last",
            f"beyond the paper: at most {_CODED:g}; any scheme that knows the loss {known}",
            found["coded"].rounds,
            at_most=_CODED,
            rule=f"agrees up to {_CODED:g}; the loss is learnt, not known",
        ),
        claimed(
            ITEM,
            f"{size}, coded: bytes sent over file / (1 - p)",
            f"beyond the paper: at most {_CODED_BYTES:g}; any scheme 1, without headers",
            found["coded"].relative_bytes(FILE_BYTES, LOSS),
            at_most=_CODED_BYTES,
            rule=f"agrees up to {_CODED_BYTES:g}; p = {LOSS:.4f} of packets of 1500 bytes; headers, control packets count",
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


def _best_rounds() -> float:
    """Fewest rounds of ideal selective repeat with single copies, over all lengths of packets."""
    lengths = np.arange(1, _CUT.payload_bytes + 1)
    header = PACKET_BYTES - _CUT.payload_bytes
    loss = arq.packet_loss(WORST_BER, packet_bytes=lengths + header)
    return float(np.min(rounds_of_the_worst(loss, packets=np.ceil(FILE_BYTES / lengths))))


def _packets(file_bytes: int) -> int:
    return math.ceil(file_bytes / _CUT.payload_bytes)


def _size(file_bytes: int) -> str:
    return f"{file_bytes / 1e6:g} MB"


def _drawing(found: Mapping[str, Transfer]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.bars import Bar, bars

        drawn = [
            Bar(name.replace("-", " "), transfer.rounds.mean, transfer.rounds.half_width, _bound(name))
            for name, transfer in found.items()
        ]
        return bars(
            drawn, x_label="transmissions of what came last (a round trip between two)", bound_words="bound with so many copies"
        )

    return Drawing(
        ITEM,
        "1 MB at a bit error rate of 1e-4: rounds",
        "Mean of the runs with 95 % intervals; marks: the mean number for the worst packet of ideal selective repeat with as "
        "many copies.",
        draw,
    )


def _bound(name: str) -> float:
    if not name.startswith("copies-"):
        return math.nan
    copies = int(name.removeprefix("copies-"))
    return float(rounds_of_the_worst(LOSS, packets=_packets(FILE_BYTES), copies=copies))
