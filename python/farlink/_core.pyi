"""The Rust extension: scenario types, their schema, and the packet engine."""

from collections.abc import Callable
from typing import TypedDict

from numpy import float64, uint64
from numpy.typing import NDArray

__version__: str

class ScenarioError(ValueError):
    """A scenario is refused."""

    path: str
    """The key, as a dotted path; empty for the scenario as a whole."""
    message: str
    """What is wrong; begins with the path."""
    remedy: str
    """How to mend it."""

class RunOutput(TypedDict):
    interrupted: bool
    rows: dict[str, list[str] | NDArray[uint64] | NDArray[float64]]
    summary: dict[str, list[str] | NDArray[uint64] | NDArray[float64]]

class SeriesOutput(TypedDict):
    flow: list[str]
    quantity: list[str]
    time_s: NDArray[float64]
    value: NDArray[float64]

class TraceOutput(TypedDict):
    pcapng: bytes | None
    series: SeriesOutput

def schema() -> str:
    """JSON Schema of scenarios."""

def expand(scenario_json: str) -> str:
    """Check a scenario; JSON with ``points``, ``scenario`` (every default written out) and ``approximations``."""

def run(
    scenario_json: str, threads: int | None = None, progress: Callable[[int, int], object] | None = None
) -> RunOutput:
    """Run a scenario; ``progress(done, total)`` is called about ten times a second. Ctrl-C gives what is finished."""

def trace_run(scenario_json: str, point: int, run: int, series: bool = True, pcap: bool = False) -> TraceOutput:
    """Run one run again and observe it. Ctrl-C stops it and raises `KeyboardInterrupt`."""

def quantities() -> list[tuple[str, str, str, str]]:
    """Name, unit and description of every measured quantity, and when it is unknown (empty: never)."""
