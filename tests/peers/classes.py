"""Classes of service on an overloaded link, in ns-3 and in farlink: the share and the delay of each class.

Results of ns-3 are kept in `ns3_classes.json`. Nothing here is random.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.peers import ns3
from tests.peers.ns2 import Setting

SOURCE = ns3.SOURCE.with_name("classes.cc")
RECORD = Path(__file__).with_name("ns3_classes.json")

RATE_BPS = 1e6
DELAY_S = 0.05
QUEUE_PACKETS = 50
WARMUP_S = 20.0
DURATION_S = 220.0
# PPP 2, IPv4 20, UDP 8.
HEADER_BYTES = 30
# Interarrival times that have no simple ratio to a packet's time on the link: all phases occur alike.
VOICE = (172, 68_813.0)

# FqCoDel counts what IPv4 does, without the 2 bytes of PPP: 0.9 % of the shortest packet.
SHARE_TOLERANCE = 0.007
DELAY_TOLERANCE = 0.01


@dataclass(frozen=True)
class Class:
    """The load of one class: datagrams at a constant rate, and a weight where weights count."""

    weight: int
    payload_bytes: int
    rate_bps: float

    @property
    def wire_bytes(self) -> int:
        return self.payload_bytes + HEADER_BYTES

    @property
    def transmission_s(self) -> float:
        """Time of a packet on the link."""
        return self.wire_bytes * 8 / RATE_BPS

    @property
    def packets_per_s(self) -> float:
        """What is offered."""
        return self.rate_bps / (8 * self.payload_bytes)


@dataclass(frozen=True)
class Served:
    """Service of one class from warm-up to end."""

    packets: float
    delay_mean_s: float
    delay_p99_s: float


@dataclass(frozen=True)
class ClassCell:
    """Classes, the lowest first, on 1 Mb/s of 50 ms, strictly one after the other or by weight."""

    name: str
    discipline: str
    classes: tuple[Class, ...]

    def ns3(self) -> dict[str, Setting]:
        """Settings of `classes.cc`."""
        return {
            "discipline": self.discipline,
            "classes": ",".join(f"{one.weight}:{one.payload_bytes}:{one.rate_bps:.12g}" for one in self.classes),
            "rate_bps": RATE_BPS,
            "delay_s": DELAY_S,
            "queue_packets": QUEUE_PACKETS,
            "warmup_s": WARMUP_S,
            "duration_s": DURATION_S,
        }

    def scenario(self) -> dict[str, Any]:
        """farlink's scenario."""
        weights = {"weights": [one.weight for one in self.classes]}
        return {
            "title": f"peer comparison, {self.name}",
            "duration_s": DURATION_S,
            "engines": ["packet"],
            "measure": {"warmup_s": WARMUP_S},
            "link": {
                "rate_bps": RATE_BPS,
                "delay_s": DELAY_S,
                "queue_packets": QUEUE_PACKETS,
                "service": "strict" if self.discipline == "prio" else weights,
            },
            "transport": {"udp": {"kind": "udp", "header_bytes": HEADER_BYTES}},
            "flow": {
                f"class{at}": {
                    "transport": "udp",
                    "class": at,
                    "traffic": {"kind": "cbr", "rate_bps": one.rate_bps, "payload_bytes": one.payload_bytes},
                }
                for at, one in enumerate(self.classes)
            },
        }

    def shares(self, served: tuple[Served, ...]) -> list[float]:
        """Of the link, headers counted."""
        return [
            got.packets * one.wire_bytes * 8 / (RATE_BPS * (DURATION_S - WARMUP_S))
            for got, one in zip(served, self.classes, strict=True)
        ]

    def is_served(self, index: int, served: tuple[Served, ...]) -> bool:
        """Whether a class gets all that it offers; up to 1 % may be in flight at the end."""
        return served[index].packets > 0.99 * self.classes[index].packets_per_s * (DURATION_S - WARMUP_S)

    def in_device_s(self, index: int, served: tuple[Served, ...]) -> float:
        """Wait of a packet in ns-3 for the one that the device has already taken: a packet's mean time on the link.

        In farlink the link takes a packet when it can send it.
        """
        others = [
            (got.packets, one.transmission_s)
            for at, (got, one) in enumerate(zip(served, self.classes, strict=True))
            if at != index or not self.is_voice(index)
        ]
        return sum(packets * time_s for packets, time_s in others) / sum(packets for packets, _ in others)

    def is_voice(self, index: int) -> bool:
        """Whether packets of a class are so far apart that none meets another one."""
        return (self.classes[index].payload_bytes, self.classes[index].rate_bps) == VOICE


CELLS = (
    ClassCell("strict-voice", "prio", (Class(1, *VOICE), Class(1, 970, 1.3e6))),
    ClassCell("strict-three", "prio", (Class(1, *VOICE), Class(1, 470, 501_300.0), Class(1, 970, 1.3e6))),
    ClassCell("fair-sizes", "fair", (Class(1, 1370, 1.3e6), Class(1, 470, 1.2e6), Class(1, 170, 1.1e6))),
    ClassCell("fair-weights", "fair", (Class(5, 970, 1.3e6), Class(3, 970, 1.2e6), Class(1, 970, 1.1e6))),
    ClassCell("fair-weights-sizes", "fair", (Class(1, 1370, 1.3e6), Class(2, 470, 1.2e6), Class(3, 170, 1.1e6))),
    ClassCell("fair-one-modest", "fair", (Class(1, 470, 150_000.0), Class(1, 970, 1.2e6), Class(1, 970, 1.1e6))),
)


@dataclass(frozen=True)
class Recorded:
    """A result of ns-3, and its settings."""

    settings: Mapping[str, Setting]
    served: tuple[Served, ...]


def build(folder: Path) -> Path:
    """Compile `classes.cc`."""
    return ns3.build(folder, SOURCE)


def ns3_served(program: Path, cell: ClassCell) -> tuple[Served, ...]:
    """One run of ns-3."""
    command = [str(program), *(f"--{key}={value}" for key, value in cell.ns3().items())]
    words = [float(word) for word in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1:]]
    return tuple(Served(*words[at : at + 3]) for at in range(0, len(words), 3))


def farlink_served(cell: ClassCell) -> tuple[Served, ...]:
    """One run of farlink."""
    import farlink

    rows = farlink.run(cell.scenario()).rows
    at = {flow: index for index, flow in enumerate(rows["flow"])}
    return tuple(
        Served(
            *(float(rows[name][at[f"class{index}"]]) for name in ("delivered_packets", "arrival_delay_mean_s", "delay_p99_s")),
        )
        for index in range(len(cell.classes))
    )


def recorded() -> dict[str, Recorded]:
    """Results of ns-3 that are kept with the tests, by cell."""
    entries = json.loads(RECORD.read_text())["cells"] if RECORD.exists() else {}
    return {
        name: Recorded(entry["settings"], tuple(Served(**one) for one in entry["served"])) for name, entry in entries.items()
    }


def record(program: Path) -> None:
    """Measure every cell in ns-3, seconds each, and keep the results."""
    cells = {
        cell.name: {"settings": cell.ns3(), "served": [asdict(one) for one in ns3_served(program, cell)]} for cell in CELLS
    }
    RECORD.write_text(json.dumps({"ns-3": "3.37", "cells": cells}, indent=1) + "\n")
