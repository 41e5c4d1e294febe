"""One transfer over a path whose round trip is constant: by the closed forms, and by the packet engine.

What the closed forms assume is set in the scenario, key by key:

=============================================  ==================================================================
the closed forms                               the scenario
=============================================  ==================================================================
Reno without selective acknowledgements        ``variant``: reno; without limited transmit, which came later
rounds of one round trip, whatever the window  a link of 1 Tb/s: a segment takes 8 ns of the half second
the timer's first value is a constant          ``rto``: fixed, doubled up to 64 times
the window begins with one segment             ``initial_window_segments`` = 1
a loss takes the rest of its round along       channel ``round-loss`` with rounds of a round trip
or every segment is lost for itself            channel ``loss``
acknowledgements are never lost                a way back without errors
the connection stands                          no handshake, no FIN
=============================================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farlink.models.ranges import Floats
from farlink.models.tcp_latency import cardwell, padhye, sikdar, slow_link
from farlink.models.tcp_latency.sikdar.recovery import LossPattern
from farlink.papers.curves import estimate
from farlink.papers.estimate import Estimate
from farlink.result import Result

SEGMENT_BYTES = 1000
RTT_S = 0.5
TIMEOUT_S = 2.0
DELAYED_ACK_S = 0.1
WINDOW_SEGMENTS = 40
# So fast that a segment takes no time.
_RATE_BPS = 1e12
_SEGMENT_S = 8 * (SEGMENT_BYTES + 40) / _RATE_BPS
# Stands for no limit where a model asks for one.
_NO_LIMIT = 100_000

_LOSS = "link.channel.loss"
_BYTES = "flow.file.traffic.bytes"

Point = tuple[int, float]
"""Segments of a transfer and the loss."""


@dataclass(frozen=True)
class Path:
    """A path and the two ends of a connection over it.

    Attributes
    ----------
    losses
        ``"independent"``, or ``"correlated"``: behind a loss the rest of its round is lost, too.
    segments_per_ack
        1, or 2 with delayed acknowledgements.
    window_segments
        Largest window; None without a limit.
    rtt_s
        Round-trip time, in s.
    timeout_s
        First timeout of a sequence, in s.
    """

    losses: LossPattern
    segments_per_ack: int = 2
    window_segments: int | None = None
    rtt_s: float = RTT_S
    timeout_s: float = TIMEOUT_S

    @property
    def delayed_ack_s(self) -> float:
        """How long the acknowledgement of a lone segment is held back, in s."""
        return DELAYED_ACK_S if self.segments_per_ack == 2 else 0.0

    def scenario(
        self,
        segments: Sequence[int],
        loss_rates: Sequence[float],
        *,
        runs: int | tuple[float, int, int],
        changes: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Every transfer at every loss.

        Parameters
        ----------
        segments
            Lengths of the transfers.
        loss_rates
            Losses, above 0.
        runs
            Runs of a point; or how wide the 95 % interval of its mean time may be to either side, as a share of the mean, with
            the least and the largest number of runs.
        changes
            Keys of the transport that take the place of those above.
        """
        channel: dict[str, Any] = {"kind": "loss", "loss": loss_rates[0]}
        if self.losses == "correlated":
            channel |= {"kind": "round-loss", "round_s": self.rtt_s}
        reno = {
            "kind": "tcp",
            "variant": "reno",
            "segment_bytes": SEGMENT_BYTES,
            "initial_window_segments": 1,
            "limited_transmit": False,
            "delayed_ack": self.segments_per_ack == 2,
            "handshake": False,
            "fin": False,
            "rto": {"algorithm": "fixed", "initial_s": self.timeout_s, "backoff_limit": 64, "maximum_s": 64 * self.timeout_s},
        }
        if self.segments_per_ack == 2:
            reno["delayed_ack_timeout_s"] = self.delayed_ack_s
        if self.window_segments is not None:
            reno["max_window_segments"] = self.window_segments
        return {
            "title": self.words,
            **repetitions(runs),
            "give_up_after_s": 1e6,
            "link": {"rate_bps": _RATE_BPS, "delay_s": self.rtt_s / 2, "channel": channel},
            "transport": {"reno": reno | dict(changes or {})},
            "flow": {"file": {"transport": "reno", "traffic": {"kind": "file", "bytes": segments[0] * SEGMENT_BYTES}}},
            "grid": {_BYTES: [number * SEGMENT_BYTES for number in segments], _LOSS: list(loss_rates)},
        }

    @property
    def words(self) -> str:
        """Its description in words."""
        limit = "no window limit" if self.window_segments is None else f"a window of {self.window_segments}"
        return f"{self.losses} losses, b = {self.segments_per_ack}, {limit}"


def repetitions(runs: int | tuple[float, int, int]) -> dict[str, Any]:
    """So many runs, or as many as an interval of the mean time takes: its half-width as a share, least and largest number."""
    if isinstance(runs, int):
        return {"runs": runs}
    half_width, least, most = runs
    return {"precision": {"quantity": "transfer_time_mean_s", "ci": half_width, "min_runs": least, "max_runs": most}}


def simulated(path: Path, result: Result) -> dict[Point, Estimate]:
    """Mean times by point, from the first segment to the first acknowledgement of the last that can arrive, in s."""
    found = {}
    for entry in result.summary():
        time = estimate(entry["transfer_time_mean_s"])
        point = (int(entry[_BYTES]) // SEGMENT_BYTES, float(entry[_LOSS]))
        found[point] = Estimate(time.mean + path.rtt_s / 2, time.half_width)
    return found


def _padhye(path: Path, segments: Floats, loss: Floats) -> Floats:
    rate = padhye.throughput(loss, **_law(path))
    return np.asarray(segments / rate)


def _padhye_approximate(path: Path, segments: Floats, loss: Floats) -> Floats:
    return np.asarray(segments / padhye.send_rate_approximate(loss, **_law(path)))


def _cardwell(path: Path, segments: Floats, loss: Floats) -> Floats:
    return cardwell.transfer_time_s(segments, loss_rate=loss, delayed_ack_s=path.delayed_ack_s, **_law(path))


def _whole_rounds(path: Path, segments: Floats, loss: Floats) -> Floats:
    times = {**_law(path), "delayed_ack_s": path.delayed_ack_s}
    return slow_link.lossy_transfer_time_s(segments, loss_rate=loss, segment_s=_SEGMENT_S, **times)


def _sikdar(method: str) -> Callable[[Path, Floats, Floats], Floats]:
    def time_s(path: Path, segments: Floats, loss: Floats) -> Floats:
        return sikdar.transfer_time_s(
            segments,
            loss_rate=loss,
            rtt_s=path.rtt_s,
            timeout_s=path.timeout_s,
            window_segments=path.window_segments or _NO_LIMIT,
            losses=path.losses,
            delayed_ack_s=path.delayed_ack_s,
            method=method,  # type: ignore[arg-type]
        )

    return time_s


def _law(path: Path) -> dict[str, Any]:
    return {
        "rtt_s": path.rtt_s,
        "timeout_s": path.timeout_s,
        "segments_per_ack": path.segments_per_ack,
        "window_segments": np.inf if path.window_segments is None else path.window_segments,
    }


@dataclass(frozen=True)
class Model:
    """A closed form of a transfer's time.

    Attributes
    ----------
    name
        What it is called.
    time_s
        Its prediction for paths, segments and losses.
    needs_delayed_acks
        Whether its slow start is made for two segments per acknowledgement.
    needs_limit
        Whether it takes no window without a limit.
    """

    name: str
    time_s: Callable[[Path, Floats, Floats], Floats]
    needs_delayed_acks: bool = False
    needs_limit: bool = False

    def is_made_for(self, path: Path) -> bool:
        """Whether it has something to say about a path."""
        return not (
            (self.needs_delayed_acks and path.segments_per_ack != 2) or (self.needs_limit and path.window_segments is None)
        )


MODELS = {
    "padhye": Model("Padhye", _padhye),
    "padhye-approximate": Model("Padhye, approximate", _padhye_approximate),
    "cardwell": Model("Cardwell", _cardwell),
    "whole-rounds": Model("Cardwell, whole rounds", _whole_rounds),
    "sikdar": Model("Sikdar, equation", _sikdar("equation"), needs_delayed_acks=True),
    "sikdar-recursion": Model("Sikdar, recursion", _sikdar("recursion"), needs_delayed_acks=True, needs_limit=True),
}
