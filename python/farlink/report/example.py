"""Which run a report shows in detail."""

from __future__ import annotations

import math

from farlink.result import Result
from farlink.series import Series

_MOST_PANELS = 4


def telling_point(result: Result) -> int:
    """Number of the grid point whose aggregate goodput is nearest to half of the best: losses show, and recovery too."""
    columns = (result.summary_columns[name] for name in ("engine", "point", "flow", "goodput_bps"))
    goodputs = {
        int(point): 0.0 if math.isnan(goodput) else float(goodput)
        for engine, point, flow, goodput in zip(*columns, strict=True)
        if engine == "packet" and flow == "all"
    }
    half = max(goodputs.values(), default=0.0) / 2
    return min(goodputs, key=lambda point: abs(goodputs[point] - half), default=0)


def compared_points(points: list[dict[str, object]], point: int) -> list[int]:
    """The points that differ from `point` in the transport or its variant only, itself included; at most four."""
    for path in points[point]:
        if path.endswith((".transport", ".variant")):
            rest = {key: value for key, value in points[point].items() if key != path}
            alike = [i for i, other in enumerate(points) if {k: v for k, v in other.items() if k != path} == rest]
            return alike if len(alike) <= _MOST_PANELS else [point]
    return [point]


def window_span_s(runs: list[Series], flow: str | None = None, losses: int = 10) -> tuple[float, float] | None:
    """The first part of a run with about `losses` recoveries; None for the whole run."""
    ends = []
    for run in runs:
        time, _ = run.select("cwnd", flow)
        moments = _separate(run, flow)
        if len(time) and len(moments) > losses:
            ends.append(moments[losses])
    if not ends:
        return None
    return 0.0, sorted(ends)[len(ends) // 2]


def recovery_span_s(run: Series, flow: str | None = None) -> tuple[float, float] | None:
    """A few round trips around the first recovery after slow start; None if nothing was sent again."""
    import numpy as np

    moments = _separate(run, flow)
    if not moments:
        return _opening_s(run, flow)
    _, rtt = run.select("rtt", flow)
    round_trip_s = float(np.partition(rtt, len(rtt) // 2)[len(rtt) // 2]) if len(rtt) else 1.0
    settled = [moment for moment in moments if moment > 10 * round_trip_s]
    moment = settled[0] if settled else moments[0]
    return max(moment - 4 * round_trip_s, 0.0), moment + 5 * round_trip_s


def _opening_s(run: Series, flow: str | None) -> tuple[float, float] | None:
    _, rtt = run.select("rtt", flow)
    return (0.0, 12 * float(rtt[0])) if len(rtt) else None


def _separate(run: Series, flow: str | None) -> list[float]:
    """Moments of retransmission, one for each group less than a second apart."""
    moments: list[float] = []
    last = -1.0
    for moment in run.select("retransmitted_sequence", flow)[0].tolist():
        if moment > last + 1.0:
            moments.append(moment)
        last = moment
    return moments
