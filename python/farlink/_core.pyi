"""The Rust extension: scenario types, their schema, and the packet engine."""

from array import array
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from numpy import bool_, float64, uint8, uint64
from numpy.typing import NDArray

__version__: str
__build__: str
"""SHA-256 over the Rust sources and Cargo.lock: equal ones give equal results."""
LARGEST_TRACE: int
"""Most bytes that the arrays of a trace may have in memory."""

class ScenarioError(ValueError):
    """A scenario is refused."""

    path: str
    """The key, as a dotted path; empty for the scenario as a whole."""
    message: str
    """What is wrong; begins with the path."""
    remedy: str
    """How to mend it."""

class EngineError(RuntimeError):
    """An engine could not run for a reason that no scenario mends."""

class NetError(RuntimeError):
    """Nothing can be transferred."""

    message: str
    """What is wrong."""
    remedy: str
    """What to do."""
    exit_code: int
    """1 if the network failed, 2 if someone has to change something first."""

class BundleDialler:
    """Decides when each line of a bundle is dialled: events in, actions out; it has no clock and does nothing itself.

    Times are readings of a clock that is never set, in s, as of ``time.monotonic()``. One that goes back counts as the latest one.

    Parameters
    ----------
    config_json
        The lines, ``use``, ``primary``, ``limits`` and ``budget``, that of all lines together, as JSON.
    history_json
        What `history` of an earlier one has given.
    seed
        Of the random part of pauses.

    Raises
    ------
    ScenarioError
        If a value is refused.

    Examples
    --------
    >>> dialler = BundleDialler('{"lines": [{"name": "kansas"}]}')
    >>> [action["action"] for action in dialler.handle(0.0, "start")]
    ['state', 'dial']
    >>> dialler.handle(20.0, "carrier", "kansas", call=1)[-1]
    {'action': 'start-link', 'line': 'kansas', 'call': 1}
    >>> [action["action"] for action in dialler.handle(25.0, "link-up", "kansas", call=1)]
    ['state', 'primary', 'alert']
    >>> dialler.primary(), dialler.next_wakeup()
    ('kansas', None)
    """

    def __init__(self, config_json: str, history_json: str | None = None, seed: int = 0) -> None: ...
    def handle(
        self,
        now_s: float,
        event: str,
        line: str | None = None,
        *,
        call: int | None = None,
        cause: str = "",
        level: float | None = None,
        number: str = "",
        injected: bool = False,
        unix_s: float | None = None,
        zone_s: float = 0.0,
    ) -> list[dict[str, Any]]:
        """Handle an event, and what is due: what is to be done, in order."""

    def advance(self, now_s: float) -> list[dict[str, Any]]:
        """Do what is due; early or repeated calls do nothing."""

    def next_wakeup(self) -> float | None:
        """When something is due next; None if nothing is before the next event."""

    def status(self, now_s: float) -> list[dict[str, Any]]:
        """What is known of each line: state, since when, why, what ends it and when."""

    def costs(self, now_s: float) -> dict[str, float]:
        """What calls of all lines have cost today, and this month: airtime and money."""

    def primary(self) -> str | None:
        """The primary line; None if no line is up."""

    def history(self) -> str:
        """What is to be kept for the next start, as JSON."""

    clock_steps_back: int
    """How often the clock went back."""
    ignored: int
    """How many events were ignored, since they were not possible or about a call that is over."""

def generate_key(keys: str | None = None) -> str: ...
def public_key(keys: str | None = None) -> str: ...
def trusted_hosts(keys: str | None = None) -> list[tuple[str, str]]: ...
def trust_host(public_key: str, name: str, keys: str | None = None) -> None: ...
def distrust_host(name: str, keys: str | None = None) -> bool: ...
def show_log(filter: str, as_json: bool = False) -> None: ...
def send_files(
    paths: list[str],
    peer: str,
    to: str,
    *,
    keys: str | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: str | None = None,
    refuse_special: bool = False,
    patience_s: float = 60.0,
    progress: Callable[[int, int], None] | None = None,
) -> str: ...
def receive_files(
    directory: str,
    listen: str,
    tell: Callable[[str], None],
    *,
    keys: str | None = None,
    psk: str | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: str | None = None,
    overwrite: bool = False,
    by_host: bool = False,
    once: bool = False,
    patience_s: float = 300.0,
) -> None: ...

def send_stream(
    source: str | None,
    gateway: str,
    to: str,
    sink: str,
    *,
    stream: str | None = None,
    keys: str | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: str | None = None,
    patience_s: float = 300.0,
    begun: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> str: ...
def receive_streams(
    directory: str | None,
    listen: str,
    tell: Callable[[str], None],
    *,
    keys: str | None = None,
    psk: str | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: str | None = None,
    once: bool = False,
    patience_s: float = 300.0,
) -> None: ...
def run_gateway(config: str, tell: Callable[[str], None]) -> None: ...
def check_gateway(config: str, destination: str | None = None) -> list[str]: ...
def run_ip_bundles(configs: list[str], helper: list[str], tell: Callable[[str], None], capture: str | None = None) -> None: ...
def check_ip_bundles(configs: list[str]) -> list[str]: ...
def serve_bundle_helper() -> None: ...
def run_ppp_bundle(
    config: str, helper: list[str], tell: Callable[[str], None], capture: str | None = None, is_operated: bool = False
) -> None: ...
def check_ppp_bundle(config: str) -> list[str]: ...

class NetWaits:
    """What one event loop waits for: each wait has a number."""

    def __init__(self) -> None: ...
    def fileno(self) -> int:
        """The file descriptor that is readable when waits have ended."""

    def ended(self) -> list[int]:
        """Numbers of the waits that have ended since the last call."""

    def cancel(self, number: int) -> None: ...

class NetConnection:
    """A connection to another host: attempts return at once, and waits end when another attempt is worthwhile."""

    peer: str
    def try_read(self, most_bytes: int) -> bytes | None: ...
    def try_write(self, data: bytes) -> int: ...
    def try_finish(self) -> bool: ...
    def try_connected(self) -> bool: ...
    def until_readable(self, waits: NetWaits) -> int: ...
    def until_writable(self, waits: NetWaits) -> int: ...
    def until_finished(self, waits: NetWaits) -> int: ...
    def until_connected(self, waits: NetWaits) -> int: ...
    def close(self) -> None: ...
    def until_ended(self, waits: NetWaits) -> int: ...
    def is_closed(self) -> bool: ...
    def remote_address(self) -> str: ...
    def statistics(self) -> tuple[float | None, float | None, int, int] | None: ...

class NetListener:
    """A socket at which connections of trusted hosts are accepted."""

    address: str
    public_key: str
    def try_accept(self) -> NetConnection | None: ...
    def until_accepted(self, waits: NetWaits) -> int: ...
    def close(self, within_s: float) -> None: ...
    def until_ended(self, waits: NetWaits) -> int: ...
    def is_closed(self) -> bool: ...

def connect_stream(
    peer: str,
    to: str,
    *,
    port: int,
    keys: str | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: str | None = None,
    patience_s: float = 60.0,
) -> NetConnection: ...
def listen_for_streams(
    listen: str,
    *,
    port: int,
    keys: str | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: str | None = None,
    patience_s: float = 60.0,
) -> NetListener: ...

class Emulation:
    """A path that is ready to be played; see `farlink.net.emulation.Emulation`."""

    notes: list[str]
    def relay(self, listen: str, to: str, delivers_damaged: bool) -> str: ...
    def tunnel(self, names: tuple[str, str] | None, classes: list[tuple[int, int]]) -> tuple[str, str]: ...
    def run(self) -> str: ...
    def stop(self) -> None: ...
    def latest(self) -> str: ...

def prepare_emulation(
    scenario_json: str,
    point: int,
    run: int,
    *,
    duration_s: float | None = None,
    most_bytes: int = ...,
    spin_s: float = ...,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Emulation: ...

class LiveRun:
    """One run of a scenario's flows for real; see the engine `live`."""

    notes: list[str]
    timestamps: bool
    slowest_bps: float
    duration_s: float
    def tunnel(self) -> tuple[str, str]: ...
    def play(self, near: tuple[str, str], far: tuple[str, str]) -> str: ...
    def close(self) -> None: ...
    def stop(self) -> None: ...

def prepare_live(scenario_json: str, point: int, run: int) -> LiveRun: ...

class Cancel:
    """A token that stops long work: any thread may set it, at any time, and all work that was given it stops."""

    def __init__(self) -> None: ...
    def set(self) -> None:
        """Ask the work to stop. It keeps the runs that are finished."""

    def is_set(self) -> bool:
        """Whether it was asked to stop."""

class Study:
    """A scenario that is ready to run with one engine, piece by piece, from any thread; see `farlink.Study`."""

    points: int

    def run(
        self,
        point: int,
        first_run: int,
        runs: int,
        progress: Callable[[int, int], object] | None = None,
        cancel: Cancel | None = None,
    ) -> RunOutput: ...
    def next_runs(self, point: int, rows: Mapping[str, object]) -> tuple[int, int] | None: ...
    def notes(self) -> list[str]: ...

class RunOutput(TypedDict):
    interrupted: bool
    notes: list[str]
    rows: dict[str, list[str] | array[int] | array[float]]
    summary: dict[str, list[str] | array[int] | array[float]]

class SeriesOutput(TypedDict):
    flow: list[str]
    quantity: list[str]
    time_s: NDArray[float64]
    value: NDArray[float64]

class ErrorRate(TypedDict):
    bits: int
    wrong_bits: int
    events: int
    gave_up: int
    packets: int
    wrong_packets: int
    packet_bits: int
    bit_error_rate: tuple[float, float, float]
    """Estimate, and the lower and upper end of its interval; the others likewise."""
    event_rate: tuple[float, float, float]
    packet_error_rate: tuple[float, float, float]
    interrupted: bool
    reached: bool
    """Whether there were as many events, or as narrow an interval, as was asked for."""

class ErrorTrace(TypedDict):
    position: NDArray[uint64]
    bits: int
    gave_up: int
    interrupted: bool

class BurstStatistics(TypedDict):
    gap_bits: int
    bits: int
    bursts: int
    wrong_bits: int
    bit_error_rate: float
    bursts_per_bit: float
    mean_span_bits: float
    mean_span_error_bits: float
    longest_span_bits: int
    mean_wrong_bits: float
    reach_bits: int
    """From the first wrong bit of all to the last."""
    span_bits: NDArray[uint64]
    span_bursts: NDArray[uint64]
    """How many bursts have each of `span_bits`."""
    wrong_bits_per_burst: NDArray[uint64]
    wrong_bits_bursts: NDArray[uint64]
    """How many bursts have each of `wrong_bits_per_burst`."""

class ErrorBursts(BurstStatistics):
    written: tuple[int, int]
    """Wrong bits that were written, and the bits that they are among."""
    interrupted: bool

class TraceContent(TypedDict):
    meta: str
    kind: str
    arrays: dict[str, int | NDArray[float64] | NDArray[uint64] | NDArray[uint8]]

class ErrorEvents(TypedDict):
    position: NDArray[uint64]
    """Positions of wrong bits of all events after each other; in each they begin with 0."""
    start: NDArray[uint64]
    """Where each event begins in `position`, and the end of the last."""
    gap_min_bits: float
    gap_mean_bits: float
    bit_error_rate: float
    notes: list[str]

class TraceOutput(TypedDict):
    pcapng: bytes | None
    series: SeriesOutput

def schema() -> str:
    """JSON Schema of scenarios."""

def simd() -> str:
    """The SIMD instructions that decoders use on this machine: ``Portable``, ``Avx2`` or ``Avx512Gfni``."""

def expand(scenario_json: str, points: list[int] | None = None) -> str:
    """Check a scenario, or some points of it; JSON with ``points``, ``scenario`` (every default written out), ``approximations``."""

class Points:
    """The points of a scenario, made one by one, and checked then; up to ten million."""

    def __init__(self, scenario_json: str) -> None: ...
    def __len__(self) -> int: ...
    def settings(self, number: int) -> str:
        """Values of what varies, as JSON."""

    def given(self, number: int) -> str:
        """The scenario at this point as it was written, without a grid, as JSON."""

    def normalised(self, number: int, without: list[str]) -> str:
        """The same with every default that has an effect, less some keys at its top."""

def model_points(scenario_json: str, points: list[int] | None = None) -> list[str]:
    """Each grid point, or some, as closed forms see it; JSON with ``scenario``, ``sizes`` of each flow's transport and ``rows``."""

def run(
    scenario_json: str,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    announce: Callable[[str], object] | None = None,
    rows: bool = True,
    cancel: Cancel | None = None,
    points: list[int] | None = None,
    runs: tuple[int, int] | None = None,
) -> RunOutput:
    """Run a scenario; ``progress(done, total)`` is called about ten times a second. Ctrl-C gives what is finished.

    ``announce(text)`` is called before a study that will take long begins. Without ``rows`` the table of them is empty. `points`
    are numbers of the grid points; the rows count them from 0 in the order given. `runs` are the first and the one after the last.
    """

def run_fluid(
    scenario_json: str,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    announce: Callable[[str], object] | None = None,
    rows: bool = True,
    cancel: Cancel | None = None,
    points: list[int] | None = None,
) -> RunOutput:
    """Run a scenario with the fluid engine; as `run`."""

def study(
    scenario_json: str,
    fluid: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    cancel: Cancel | None = None,
) -> Study:
    """Prepare a study that is run by the piece; `KeyboardInterrupt` if it is stopped meanwhile."""

def summarise(rows: Mapping[str, object]) -> dict[str, list[str] | array[int] | array[float]]:
    """The summary of rows of the packet engine, which may be those of pieces in any order; ValueError if they are not usable."""

def fluid_goodput(
    options_json: str,
    rate: NDArray[float64],
    round_trip_s: NDArray[float64],
    buffer: NDArray[float64],
    loss: NDArray[float64],
    flows: NDArray[uint64],
    max_window: NDArray[float64],
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[NDArray[float64], NDArray[float64], NDArray[bool_]]:
    """Goodput of operating points, half-widths, whether these are small enough. Ctrl-C stops it and raises `KeyboardInterrupt`."""

def estimate(scenario_json: str, threads: int = 1) -> tuple[float, float]:
    """CPU time in s and memory in bytes that a scenario will take on so many threads, as estimated before it is run."""

def trace_run(scenario_json: str, point: int, run: int, series: bool = True, pcap: bool = False) -> TraceOutput:
    """Run one run again and observe it. Ctrl-C stops it and raises `KeyboardInterrupt`."""

def error_rate(
    coding_json: str,
    ebn0_db: float,
    *,
    seed: int = 1,
    events: int | None = None,
    max_bits: int = 1 << 30,
    relative_half_width: float | None = None,
    packet_bits: int | None = None,
    confidence: float = 0.95,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ErrorRate:
    """Simulate the error rates of a coding, a table as in ``[link.coding]``; Ctrl-C gives those of what is finished."""

def error_trace(
    coding_json: str,
    ebn0_db: float,
    bits: int,
    *,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ErrorTrace:
    """Where the wrong bits of a coding lie; Ctrl-C gives those of what is finished."""

def error_bursts(
    coding_json: str,
    ebn0_db: float,
    bits: int,
    gap_bits: int,
    *,
    seed: int = 1,
    positions: str | None = None,
    most: int = ...,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ErrorBursts: ...
def read_trace(content: bytes) -> TraceContent: ...
def burst_statistics(position: NDArray[uint64], bits: int, gap_bits: int) -> BurstStatistics:
    """Statistics of the bursts among wrong bits: at least `gap_bits` right bits end a burst."""

def error_events(
    coding_json: str,
    ebn0_db: float,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ErrorEvents:
    """The error events that the channel ``coded`` plays, kept on disk. Ctrl-C raises `KeyboardInterrupt`."""

class CodeSpectrum(TypedDict):
    constraint_length: int
    outputs: int
    rate: float
    period_bits: int
    """Data bits that `events` and `data_bits` are for."""
    free_distance: int
    distance: list[int]
    events: list[int]
    data_bits: list[int]

def known_codes() -> list[tuple[str, int, int, int, str]]:
    """Codes of the literature: generators, constraint length, outputs, free distance, source."""

def code_spectrum(coding_json: str, terms: int) -> CodeSpectrum:
    """A convolutional code and the first terms of its distance spectrum."""

def union_bound(coding_json: str, ebn0_db: float, terms: int) -> float | None:
    """The union bound on the bit error rate of a convolutional code with BPSK or QPSK; None for other modulations."""

def channel_ber(coding_json: str, ebn0_db: float) -> float:
    """Bit error rate of hard decisions at the channel, in closed form: of the data bits themselves without a code."""

class ReceiverDict(TypedDict):
    name: str
    title: str
    characteristic_power_w: float
    form_factor: float
    rate_bps: float
    wavelength_m: float
    source: str

def receivers() -> list[ReceiverDict]:
    """Receivers of light that can be named, and their parameters."""

def receiver_ber(power_w: NDArray[float64], characteristic_power_w: float, form_factor: float) -> NDArray[float64]:
    """Bit error rate of a receiver at each received power in W: Epple, eqs. (1) and (2)."""

def receiver_power(ber: NDArray[float64], characteristic_power_w: float, form_factor: float) -> NDArray[float64]:
    """The inverse of `receiver_ber`; NaN for error rates that are not above 0 and at most 1/2."""

def calibrate(
    power_w: NDArray[float64], blocked: NDArray[bool_] | None, characteristic_power_w: float, form_factor: float, ber: float
) -> float:
    """The factor on the power that makes the mean bit error rate over samples that are not blocked `ber`."""

def circular_pass(
    time_s: NDArray[float64], altitude_m: float, max_elevation_deg: float, start_elevation_deg: float, rising: bool
) -> tuple[NDArray[float64], NDArray[float64]]:
    """Elevation in degrees and range in m of a satellite on a circular orbit at each time in s: see the delay ``pass``."""

def circular_pass_times(
    altitude_m: float, max_elevation_deg: float, start_elevation_deg: float, rising: bool
) -> tuple[float, float]:
    """When that satellite culminates and when it sets, in s; it culminates at 0 and sets never if it stands still."""

def quantities() -> list[tuple[str, str, str, str]]:
    """Name, unit and description of every measured quantity, and when it is unknown (empty: never)."""
