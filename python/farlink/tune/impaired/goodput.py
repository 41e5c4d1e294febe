"""Goodput of settings over an impaired link: TCP by the packet engine over what the decoders leave."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path as File
from typing import Any

import numpy as np

from farlink.channels.trace import Trace
from farlink.channels.trace_file import write
from farlink.student import t_quantile, widened
from farlink.tune.impaired.impairment import Impairment
from farlink.tune.impaired.kept_goodput import KEPT
from farlink.tune.impaired.play import Played, play
from farlink.tune.offered import Offered, Path, Precision, Progress
from farlink.tune.packet_goodput import duration_s, link, ran
from farlink.tune.points import Point

RUNS = 8


@dataclass(frozen=True)
class Judged:
    """A setting over an impaired link.

    Attributes
    ----------
    point
        The setting; its loss is that of noise and impairment.
    share
        Share of the link's rate that all connections deliver; None if it was not simulated: it loses too much, or cannot be the
        best.
    half_width
        Of its interval, at the level of the study.
    """

    point: Point
    share: float | None
    half_width: float


def judged(
    points: Sequence[Point],
    impairment: Impairment,
    *,
    flows: int,
    path: Path,
    precision: Precision,
    tolerance: float | None = None,
    most_loss: float = 1.0,
    progress: Progress | None = None,
) -> list[Judged]:
    """Goodput of each point over an impairment.

    What was simulated is kept on disk: Ctrl-C loses the point at hand, and the next call goes on from there.

    Parameters
    ----------
    points
        Settings at conditions; those of a C/N0 are compared with each other.
    impairment
        What impairs the link.
    flows, path, precision
        See `farlink.tune.evaluate.rated`.
    tolerance
        Settings of a C/N0 that cannot reach so near to its best one are not simulated: no goodput exceeds what arrives. None
        to simulate all.
    most_loss
        Settings that lose more are not simulated, and no other one is compared with them.
    progress
        Called with the points done and planned.
    """
    progress = progress or (lambda _done, _total: None)
    found: dict[int, Judged] = {}
    for _, each in groupby(sorted(points, key=lambda one: one.cn0_dbhz), key=lambda one: one.cn0_dbhz):
        here, before = list(each), len(found)
        with tempfile.TemporaryDirectory() as folder:
            links = []
            for number, point in enumerate(here):
                links.append(_link(point, impairment, flows, path, precision, File(folder) / f"{number}.npz"))
                progress(2 * before + number + 1, 2 * len(points))
            best_bps = 0.0
            # From the highest that a setting can reach down.
            for number, one in enumerate(sorted(links, key=lambda one: -one.most_bps), start=1):
                share, half_width = None, 0.0
                can_be_near = tolerance is None or one.most_bps >= (1 - tolerance) * best_bps
                if can_be_near and one.left.loss <= most_loss:
                    share, half_width = one.simulated(impairment.seed)
                    best_bps = max(best_bps, share * one.point.payload_bps)
                found[id(one.point)] = Judged(replace(one.point, loss=one.left.loss), share, half_width)
                progress(2 * before + len(here) + number, 2 * len(points))
    return [found[id(point)] for point in points]


@dataclass(frozen=True)
class _Link:
    """A setting's link behind the decoders.

    Attributes
    ----------
    point
        The setting; its loss is that of noise.
    offered
        The link, for the packet engine.
    left
        What the impairment leaves.
    file, digest
        Trace of its losses that the channel replays, if it does, and what stands for it.
    """

    point: Point
    offered: Offered
    left: Played
    file: File | None
    digest: str

    @property
    def most_bps(self) -> float:
        """No goodput is above what arrives."""
        return self.point.payload_bps * (1 - self.left.loss)

    def simulated(self, seed: int) -> tuple[float, float]:
        """Share of the link's rate and the half-width of its interval."""
        if self.left.loss >= 1:
            return 0.0, 0.0
        level, channels = self.offered.precision.level, self.left.channels
        if len(channels) == 1:
            share, ci95 = self._ran(channels[0], RUNS, seed)
            half_width = widened(ci95, RUNS - 1, level)
        else:
            shares = [self._ran(channel, 1, seed + run)[0] for run, channel in enumerate(channels)]
            share = float(np.mean(shares))
            half_width = t_quantile(len(shares) - 1, level) * float(np.std(shares, ddof=1)) / math.sqrt(len(shares))
        return min(share, 1 - self.left.loss), half_width

    def _ran(self, channel: dict[str, Any], runs: int, seed: int) -> tuple[float, float]:
        """Share and the half-width of its 95 % interval, kept or by the packet engine."""
        scenario = link(self.offered, 0, channel, runs=runs, seed=seed)
        key = {"scenario": scenario, "trace": self.digest}
        found = KEPT.read(key)
        if found is None:
            share, half_width = ran(link(self.offered, 0, self._with_file(channel), runs=runs, seed=seed))
            found = {"share": float(share), "half_width": float(half_width)}
            KEPT.write(key, found)
        return found["share"], found["half_width"]

    def _with_file(self, channel: dict[str, Any]) -> dict[str, Any]:
        return channel if self.file is None else {**channel, "file": str(self.file)}


def _link(point: Point, impairment: Impairment, flows: int, path: Path, precision: Precision, file: File) -> _Link:
    rate = np.array([point.rate_segments_per_s])
    offered = Offered(rate, np.array([point.loss]), flows, path, precision, float(point.wait_segments))
    left = play(point, impairment, duration_s=duration_s(offered, 0), runs=RUNS)
    if left.trace is None:
        return _Link(point, offered, left, None, "")
    # On disk, and not in memory.
    return _Link(point, offered, replace(left, trace=None), write(left.trace, file), _digest(left.trace))


def _digest(trace: Trace) -> str:
    digest = hashlib.sha256(f"{trace.kind} {trace.meta.get('duration_s')}".encode())
    for name, values in sorted(trace.arrays.items()):
        digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
