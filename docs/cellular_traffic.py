"""Traffic of the FjordLink modems, and the cost of handovers for their test streams: for `docs/cellular_bundle.py`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from cellular import MODEMS, Dish, Series

CELL, RECEIVED, SENT = "lte.lCurrentCellid", "lte.lrxbitspersecond", "lte.ltxbitspersecond"
# Test streams of half a minute arrive at 51 Mb/s.
STREAM_BPS = (45e6, 57e6)
# Missing traffic is counted from 3 s before a reading to 2 s after it, against four readings before and four after that.
AROUND = slice(-3, 3)
BESIDE = (slice(-7, -3), slice(3, 7))
ALONE_S = 8


@dataclass(frozen=True)
class Traffic:
    """Traffic of modems.

    Attributes
    ----------
    sent_bps, most_bps
        By modem: mean rate sent, and rate received in its best second, in bit/s.
    missing_s, missing_otherwise_s
        Missing part of a test stream around each handover, and around readings without one, in s of that stream.
    """

    sent_bps: dict[str, float]
    most_bps: dict[str, float]
    missing_s: Series
    missing_otherwise_s: Series


def read_traffic() -> Traffic:
    """Traffic from the columns of the log."""
    columns = ["identity", CELL, RECEIVED, SENT]
    names, cells, received, sent = [], [], [], []
    for path in sorted(MODEMS.glob("*.gzip")):
        table = pq.read_table(io.BytesIO(path.read_bytes()), columns=columns).to_pydict()
        names += table["identity"]
        cells += [cell or "" for cell in table[CELL]]
        received += [float(value or 0) for value in table[RECEIVED]]
        sent += [float(value or 0) for value in table[SENT]]
    name, cell = np.array(names), np.array(cells)
    rx_bps, tx_bps = np.array(received), np.array(sent)
    modems = sorted(set(names))
    missing = [_missing(cell[name == modem], rx_bps[name == modem]) for modem in modems]
    return Traffic(
        {modem: float(tx_bps[name == modem].mean()) for modem in modems},
        {modem: float(rx_bps[name == modem].max()) for modem in modems},
        np.concatenate([around for around, _ in missing]),
        np.concatenate([otherwise for _, otherwise in missing]),
    )


def _missing(cell: np.ndarray, rx_bps: Series) -> tuple[Series, Series]:
    """Missing traffic around single handovers, and around readings at least 10 s from any."""
    is_known = (cell[1:] != "") & (cell[:-1] != "")
    handovers = np.flatnonzero((cell[1:] != cell[:-1]) & is_known) + 1
    alone = [at for at in handovers if np.count_nonzero(np.abs(handovers - at) < ALONE_S) == 1]
    quiet = [at for at in range(ALONE_S, cell.size - ALONE_S, 15) if np.abs(handovers - at).min() >= 10]
    return _around(rx_bps, alone), _around(rx_bps, quiet)


def _around(rx_bps: Series, places: list[int]) -> Series:
    """Missing traffic around each reading with a test stream on both sides, in s."""
    low_bps, high_bps = STREAM_BPS
    found = []
    for at in places:
        if not ALONE_S <= at <= rx_bps.size - ALONE_S:
            continue
        beside = np.concatenate([rx_bps[at + part.start : at + part.stop] for part in BESIDE])
        if beside.min() > low_bps and beside.max() < high_bps:
            found.append(float((1 - rx_bps[at + AROUND.start : at + AROUND.stop] / np.median(beside)).sum()))
    return np.array(found)


def mean_rate_bps(path: Path) -> float:
    """Mean rate of a Mahimahi trace, in bit/s: 1500 bytes at each millisecond that it names."""
    times_ms = np.loadtxt(path)
    return float(8 * 1500 * times_ms.size / (times_ms[-1] / 1000))


def median_delay_s(dish: Dish) -> float:
    """Half the median latency of a dish's pings, in s."""
    return float(np.median(np.concatenate([latency_ms for _, _, latency_ms in dish.files]))) / 2000
