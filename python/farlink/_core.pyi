"""The Rust extension: simulator, scenario types and their schema."""

from collections.abc import Callable
from typing import Any, TypedDict

from numpy import float64
from numpy.typing import NDArray

__version__: str

class ScenarioError(ValueError):
    message: str
    remedy: str
    path: str

class RunOutput(TypedDict):
    interrupted: bool
    rows: dict[str, Any]
    summary: dict[str, Any]

class SeriesOutput(TypedDict):
    flow: list[str]
    quantity: list[str]
    time_s: NDArray[float64]
    value: NDArray[float64]

class TraceOutput(TypedDict):
    pcapng: bytes | None
    series: SeriesOutput

def schema() -> str: ...
def expand(scenario_json: str) -> str: ...
def run(scenario_json: str, threads: int | None, progress: Callable[[int, int], None] | None) -> RunOutput: ...
def trace_run(scenario_json: str, point: int, run: int, series: bool, pcap: bool) -> TraceOutput: ...
def quantities() -> list[tuple[str, str, str]]: ...
