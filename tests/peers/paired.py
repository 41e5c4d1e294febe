"""The same packets are lost in farlink and in ns-2, so that differences come from TCP alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers import ns2
from tests.peers.ns2 import Setting

RATE_BPS, DELAY_S, WIRE_BYTES, HEADER_BYTES = 1e6, 0.25, 1000, 40
DURATION_S, WINDOW = 2000.0, 70
# Timers of both sides, as over the GEO link.
NS2_TCP: dict[str, Setting] = {"minrto_": 1, "tcpTick_": 0.01, "rtxcur_init_": 3, "windowInit_": 1}
RTO = {"initial_s": 3.0, "minimum_s": 1.0, "maximum_s": 60.0, "granularity_s": 0.01}


@dataclass(frozen=True)
class PairedCell:
    """One flow over losses in bursts: how likely a burst begins and ends with a packet, and the loss within."""

    variant: str
    begins: float = 0.002
    ends: float = 0.3
    loss: float = 0.7

    def losses(self, seed: int) -> list[int]:
        """Numbers of the packets that are lost (Gilbert and Elliott), for as many as the link could carry, and more."""
        rng = random.Random(seed)
        is_bad, lost = False, []
        for number in range(round(1.2 * RATE_BPS * DURATION_S / 8 / WIRE_BYTES)):
            is_bad ^= rng.random() < (self.ends if is_bad else self.begins)
            if is_bad and rng.random() < self.loss:
                lost.append(number)
        return lost


def theirs(cell: PairedCell, losses: Sequence[int], folder: Path) -> float:
    """Goodput in ns-2, as a share of the link."""
    file = folder / "losses.txt"
    file.write_text(" ".join(map(str, losses)), encoding="utf-8")
    settings: dict[str, Setting] = {
        "variant": {"newreno": "Newreno", "reno": "Reno", "sack": "Sack1", "tahoe": "Tahoe"}[cell.variant],
        "rate_bps": RATE_BPS,
        "delay_s": DELAY_S,
        "wire_bytes": WIRE_BYTES,
        "window": WINDOW,
        "ssthresh": WINDOW,
        "delayed_ack": 0,
        "duration_s": DURATION_S,
        "losses_file": str(file),
        "tcp": NS2_TCP,
    }
    return ns2.goodput_fraction(settings, ns2.run_once(settings, 1))


def scenario(cell: PairedCell, losses: Sequence[int], folder: Path) -> dict[str, Any]:
    """The same for farlink."""
    file = folder / "losses.csv"
    marks = set(losses)
    count = round(1.2 * RATE_BPS * DURATION_S / 8 / WIRE_BYTES)
    file.write_text("lost\n" + "\n".join(str(int(number in marks)) for number in range(count)) + "\n", encoding="utf-8")
    return {
        "title": f"paired with ns-2, {cell.variant}",
        "duration_s": DURATION_S,
        "link": {
            "rate_bps": RATE_BPS,
            "delay_s": DELAY_S,
            "channel": {"kind": "packet-trace", "file": str(file), "offset": 0},
            "return": {"channel": {"kind": "none"}},
        },
        "transport": {
            "tcp": {
                "kind": "tcp",
                "variant": cell.variant,
                "segment_bytes": WIRE_BYTES - HEADER_BYTES,
                "initial_window_segments": 1,
                "initial_ssthresh_segments": WINDOW,
                "max_window_segments": WINDOW,
                "delayed_ack": False,
                # ns-2 has neither SYN nor FIN: numbers of packets would be off by one.
                "handshake": False,
                "rto": RTO,
            }
        },
        "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
    }


def ours(cell: PairedCell, losses: Sequence[int], folder: Path) -> float:
    """Goodput in farlink, as a share of the link, headers counted as in ns-2."""
    import farlink

    (entry,) = [entry for entry in farlink.run(scenario(cell, losses, folder)).summary() if entry["flow"] == "all"]
    return float(entry["goodput_bps"]["mean"]) * WIRE_BYTES / (WIRE_BYTES - HEADER_BYTES) / RATE_BPS
