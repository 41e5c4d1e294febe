"""Report of an emulated path: what it did to real packets, and whether it kept its time."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from farlink.output import whole_file
from farlink.scenario import Scenario


@dataclass(frozen=True)
class Way:
    """The packets of one way. Each that came in is dropped, lost, ruined, refused, out, or was under way at the end."""

    in_packets: int = 0
    in_bytes: int = 0
    """Bytes on the wire, headers included."""
    out_packets: int = 0
    out_bytes: int = 0
    dropped: int = 0
    """By a full queue or a policer."""
    lost: int = 0
    """By a channel or a bundle."""
    ruined: int = 0
    """Damaged so that nobody would pass them on."""
    damaged: int = 0
    """Out, with wrong bits."""
    marked: int = 0
    """Out, with a mark of congestion of this path."""
    refused: int = 0
    """Without room in the memory that the emulator may use."""
    untaken: int = 0
    """Out, but refused by the system."""
    unread: int = 0
    """Dropped by the system before the emulator could read them."""
    held_bytes: int = 0
    """Under way at the end."""
    is_up: bool = True
    """Whether each hop was up at the end."""
    delay_mean_s: float | None = None
    """Of the packets that left, as the path decided it."""
    delay_p50_s: float | None = None
    delay_p99_s: float | None = None
    late_p50_s: float | None = None
    """How long after they were due packets left."""
    late_p99_s: float | None = None
    late_max_s: float | None = None
    late_allowed_s: float = 1e-3
    """What `late_p99_s` may be: 1 ms, or 5 % of a packet's time on the slowest hop."""


@dataclass(frozen=True)
class Emulated:
    """The result of an emulated path."""

    scenario: Scenario
    version: str
    seed: int
    run: int
    """The run of the packet engine that has the same random numbers."""
    forward: Way
    back: Way
    started_unix_s: float
    """When it began, by the wall clock."""
    elapsed_s: float
    is_real_time: bool
    """Whether the emulator had a real-time priority."""
    clients: int = 0
    """Clients of a relay."""
    faults: list[str] = field(default_factory=list)
    """Why the run did not do what the scenario says."""
    notes: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether the run did what the scenario says."""
        return not self.faults

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON, written to a file if one is given."""
        data = {
            "farlink": self.version,
            "scenario": self.scenario.data,
            "engine": "emulator",
            "seed": self.seed,
            "run": self.run,
            "valid": self.valid,
            "faults": self.faults,
            "notes": self.notes,
            "real_time": self.is_real_time,
            "started_unix_s": self.started_unix_s,
            "elapsed_s": self.elapsed_s,
            "clients": self.clients,
            "forward": asdict(self.forward),
            "return": asdict(self.back),
        }
        text = json.dumps(data, indent=2, allow_nan=False) + "\n"
        if path is not None:
            with whole_file(path) as temporary:
                temporary.write_text(text)
        return text


def way_of(values: dict[str, Any], unread: int = 0) -> Way:
    """One way of a report of the core."""
    return Way(**values, unread=unread)
