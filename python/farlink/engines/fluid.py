"""The fluid engine: the long run of TCP flows over one bottleneck, in Rust."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.engines.core_result import from_core
from farlink.engines.piece import Piece
from farlink.errors import core_errors
from farlink.limits import check_seed, check_threads
from farlink.models import ranges
from farlink.result import Result
from farlink.scenario import Scenario

if TYPE_CHECKING:
    from farlink._core import Cancel

Floats = NDArray[np.float64]

# Options that make `goodput` the simulator of Celandroni, Ferro and Potorti: at most one loss in a round trip, detected after
# one, and no timeouts. Their goodput is then `Goodput.utilisation`.
TGEP: dict[str, Any] = {"multiple_losses": False, "timeouts": False, "duplicate_acks": 0.0}


def run(
    scenario: Scenario,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    announce: Callable[[str], None] | None = None,
    rows: bool = True,
    cancel: Cancel | None = None,
    piece: Piece | None = None,
) -> Result:
    """Run every point of a scenario, or some, until its goodput is known; see `farlink.run`.

    Without ``precision`` within 1 % at a level of 99 %. There is one run per point, however many the scenario names, and its
    length is the engine's to choose: ``[fluid] max_time_s`` bounds it.
    """
    from farlink import _core

    check_threads(threads)
    points = None if piece is None else piece.points
    expanded = scenario.expanded(points)
    chosen = None if points is None else list(points)
    with core_errors(scenario.in_its_words):
        output = _core.run_fluid(scenario.to_json(), threads, progress, announce, rows, cancel, chosen)
    return from_core(scenario, expanded, output, piece)


class Goodput(NamedTuple):
    """Results of operating points, in arrays of one shape."""

    goodput: Floats
    """Segments delivered to all receivers together, as a fraction of what the link carries."""
    utilisation: Floats
    """The same with those that the channel loses: the share of the time that the link is busy."""
    half_width: Floats
    """Half-width of its confidence interval, in the same unit."""
    is_precise: NDArray[np.bool_]
    """Whether that is as small as was asked for."""


def goodput(
    rate_segments_per_s: ArrayLike,
    round_trip_s: ArrayLike,
    buffer_segments: ArrayLike,
    loss: ArrayLike,
    flows: ArrayLike = 1,
    *,
    segments_per_ack: int = 1,
    max_window_segments: ArrayLike = np.inf,
    growth: Literal["reno", "cubic"] = "reno",
    repair: Literal["reno", "newreno", "sack", "rack"] = "sack",
    multiple_losses: bool = True,
    timeouts: bool = True,
    least_timeout_s: float = 1.0,
    timeout_round_trips: float = 1.5,
    duplicate_acks: float = 3,
    own_buffers: bool = False,
    precision: float = 0.01,
    level: float = 0.99,
    max_time_s: float = 1e7,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Goodput:
    r"""Long-run goodput of TCP flows over one bottleneck, for many operating points at once.

    Parameters
    ----------
    rate_segments_per_s
        Rate of the bottleneck :math:`\mu`, segments per second, above 0. Any shape; the others are broadcast against it.
    round_trip_s
        Round trip without queueing, the service time of a segment included, in s, above 0.
    buffer_segments
        Room of the queue, segments, at least 0; infinite for one without limit.
    loss
        Probability :math:`q` that the channel loses a segment, from 0 to below 1.
    flows
        Number of flows :math:`N`, at least 1.
    segments_per_ack
        Segments :math:`b` per acknowledgement: 2 if acknowledgements are delayed.
    max_window_segments
        Largest window, segments, at least 1.
    growth
        Growth of windows in congestion avoidance.
    repair
        What several losses in one window cost; with ``"rack"`` a lost retransmission needs no timeout.
    multiple_losses
        Whether losses happen as they come. If not, one that comes less than a round trip after another waits until that one is
        repaired; see `TGEP`.
    timeouts
        Whether the retransmission timer expires.
    least_timeout_s, timeout_round_trips
        It is the larger of `least_timeout_s`, in s, and `timeout_round_trips` round trips, and doubles while it expires.
    duplicate_acks
        Duplicate acknowledgements that mean a loss; 0 if a loss is known exactly a round trip after it.
    own_buffers
        Whether each flow has an equal share of the rate and of the buffer for itself.
    precision, level
        The simulation of a point ends when the confidence interval at `level` is within `precision` of the goodput, a fraction.
    max_time_s
        Or when so much time has been simulated, in s.
    seed
        Seed of all random streams; each point has its own stream.
    threads
        Threads to run on; all cores by default. The result does not depend on it.
    progress
        Called with the points done and all points, about ten times a second.

    Returns
    -------
    Goodput
        Arrays of the broadcast shape.

    Raises
    ------
    ValueError
        If a value is outside its range.

    Notes
    -----
    A fluid has no packets: windows are continuous, and a queue is the windows less what the path holds. Against the packet
    engine see ``docs/validation/fluid.md``.

    References
    ----------
    Celandroni, Ferro, Potorti, section III; Lakshman and Madhow 1997, section III.

    Examples
    --------
    A buffer of one bandwidth-delay product keeps the link busy; one of a fifth does not.

    >>> found = goodput(100.0, 1.0, [20, 100], 0.0)
    >>> found.goodput.round(2).tolist()
    [0.87, 1.0]
    """
    from farlink import _core

    check_threads(threads)
    check_seed(seed)
    columns = np.broadcast_arrays(
        ranges.positive(rate_segments_per_s=rate_segments_per_s),
        ranges.positive(round_trip_s=round_trip_s),
        ranges.at_least(0, buffer_segments=buffer_segments),
        ranges.from_0_to_below_1(loss=loss),
        ranges.whole(1, flows=flows).astype(np.float64),
        ranges.at_least(1, max_window_segments=max_window_segments),
    )
    _known("growth", growth, ("reno", "cubic"))
    _known("repair", repair, ("reno", "newreno", "sack", "rack"))
    ranges.positive(precision=precision)
    ranges.positive(max_time_s=max_time_s)
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, not {level!r}")
    if not all(np.isfinite(column).all() for column in (*columns[:2], columns[4])):
        raise ValueError("rate_segments_per_s, round_trip_s and flows must be finite")
    shape = columns[0].shape
    rate, round_trip, buffer, lost, count, window = (
        np.ascontiguousarray(column, dtype=np.float64).ravel() for column in columns
    )
    options = {
        "growth": growth,
        "repair": repair,
        "segments_per_ack": float(ranges.at_least(1, segments_per_ack=segments_per_ack)),
        "duplicate_acks": float(ranges.at_least(0, duplicate_acks=duplicate_acks)),
        "multiple_losses": multiple_losses,
        "own_buffers": own_buffers,
        "timeout": _timeout(least_timeout_s, timeout_round_trips) if timeouts else None,
        "seed": seed,
        "bound": precision,
        "level": level,
        "max_time_s": max_time_s,
    }
    with core_errors():
        delivered, half_width, is_precise = _core.fluid_goodput(
            json.dumps(options), rate, round_trip, buffer, lost, count.astype(np.uint64), window, threads, progress
        )
    return Goodput(
        delivered.reshape(shape),
        (delivered / (1 - lost)).reshape(shape),
        half_width.reshape(shape),
        is_precise.reshape(shape),
    )


def _timeout(least_s: float, round_trips: float) -> list[float]:
    return [
        float(ranges.positive(least_timeout_s=least_s)),
        float(ranges.at_least(0, timeout_round_trips=round_trips)),
    ]


def _known(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
