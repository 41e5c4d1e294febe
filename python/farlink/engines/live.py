"""The live engine: a scenario's flows for real, over its path in real time. Linux, as root.

The path is played between two network namespaces ([emulator](emulate.md)); the flows are the kernel's TCP, AeroTP and UDP of
`farlink-net`. Each run takes as long as the scenario says.
"""

from __future__ import annotations

import json
import math
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from farlink.engines.piece import Piece
from farlink.errors import ArgumentError, FarlinkError, core_errors
from farlink.limits import check_threads
from farlink.namespaces import FAR, NEAR, Namespaces, inside
from farlink.real_time import prioritise
from farlink.result import Result
from farlink.scenario import Scenario

if TYPE_CHECKING:
    from farlink._core import Cancel

_NAME = "live"
_LOOK_S = 0.1
# A bandwidth-delay product of 1 Gb/s and 250 ms; the kernel's usual 6 MB would limit longer paths.
_BUFFERS = "4096 131072 33554432"


def check(scenario: Scenario, piece: Piece | None = None) -> None:
    """Lay out every point, and set one stage without playing on it: what `run` would refuse is refused, in half a second.

    Raises
    ------
    ArgumentError, ScenarioError, FarlinkError
        As `run`.
    """
    _check_whole(piece)
    plays = [_Play(scenario, number, 0) for number in range(len(scenario.points()))]
    with plays[0].stage():
        pass


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
    """Play every point and run of a scenario, one after the other; see `farlink.run`. `threads` changes nothing.

    Raises
    ------
    ScenarioError
        If no socket can play a flow, or real packets cannot play the path.
    ArgumentError
        If a piece is asked for: what is played takes another course each time.
    FarlinkError
        If the system lets this process make no namespaces.
    """
    from farlink import _core

    check_threads(threads)
    _check_whole(piece)
    points = scenario.points()
    normal = scenario.normalised()
    runs = int(normal["runs"])
    # All of it is laid out before anything is played: what cannot be is refused at once.
    first = [_Play(scenario, number, 0) for number in range(len(points))]
    lengths = [play.duration_s for play in first]
    total_s = runs * sum(lengths)
    if announce is not None:
        announce(f"{runs * len(points)} live run{'s' if runs * len(points) > 1 else ''} of real time: up to {total_s:g} s")
    table = _Table(int(normal.get("seed", 1)))
    notes: dict[str, None] = {}
    interrupted, done_s = False, 0.0
    failure: FarlinkError | None = None
    try:
        for number, length_s in enumerate(lengths):
            for each in range(runs):
                play = first[number] if each == 0 else _Play(scenario, number, each)
                notes |= dict.fromkeys(play.notes)
                played = play.run(partial(_tell, progress, total_s, done_s), cancel)
                if played is None:
                    interrupted = True
                    break
                table.add(number, each, played, play.slowest_bps)
                notes |= {f"live: run {each} at point {number} is not valid: {fault}": None for fault in played["faults"]}
                done_s += length_s
                _tell(progress, total_s, done_s, 0.0)
            if interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    except FarlinkError as error:
        if not table.has_rows:
            raise
        # Finished measurements took real time, and stay.
        failure, interrupted = error, True
    columns = table.columns()
    return Result(
        scenario=scenario,
        version=_core.__version__,
        seed=table.seed,
        points=points,
        columns=columns if rows else {},
        summary_columns=_summary(columns),
        interrupted=interrupted,
        approximations=scenario.approximations(),
        notes=list(notes),
        failure=failure,
    )


def _check_whole(piece: Piece | None) -> None:
    if piece is not None:
        message = "points, first_run: the engine live has no pieces, since what it plays takes another course each time"
        raise ArgumentError(message, "leave both out, or take another engine")


def _summary(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Means and intervals over the runs, as of the packet engine: each run is a sample."""
    from farlink import _core

    found = dict(_core.summarise({**columns, "engine": ["packet"] * len(columns["engine"])}))
    return found | {"engine": [_NAME] * len(found["engine"])}


def _tell(progress: Callable[[int, int], None] | None, total_s: float, done_s: float, passed_s: float) -> None:
    if progress is not None:
        progress(min(int(done_s + passed_s), math.ceil(total_s)), math.ceil(total_s))


class _Play:
    """One run of one point."""

    def __init__(self, scenario: Scenario, point: int, run: int) -> None:
        from farlink import _core

        with core_errors(scenario.in_its_words):
            self._core = _core.prepare_live(scenario.to_json(), point, run)
        self.duration_s = self._core.duration_s
        hops = [scenario.data.get("link", {}), *scenario.data.get("hop", {}).values()]
        is_constant = all(isinstance(hop.get("rate_bps", 0.0), int | float) for hop in hops)
        self.slowest_bps = self._core.slowest_bps if is_constant else None
        self.notes = [scenario.in_its_words(note) for note in self._core.notes]
        self._played: dict[str, Any] | None = None
        self._failure: BaseException | None = None
        self._ended = threading.Event()

    @contextmanager
    def stage(self) -> Iterator[Namespaces]:
        """The namespaces with their devices, set up."""
        with core_errors():
            devices = self._core.tunnel()
        with Namespaces() as ends, closing(self._core):
            ends.move(devices)
            for name in (ends.near, ends.far):
                _set(name, "net.ipv4.tcp_timestamps", "1" if self._core.timestamps else "0")
                _set(name, "net.ipv4.tcp_no_metrics_save", "1")
                _set(name, "net.ipv4.tcp_rmem", _BUFFERS)
                _set(name, "net.ipv4.tcp_wmem", _BUFFERS)
            yield ends

    def run(self, tell: Callable[[float], None], cancel: Cancel | None) -> dict[str, Any] | None:
        """Play it; None if it was stopped."""
        with self.stage() as ends:
            places = [(f"/run/netns/{name}", address) for name, address in ((ends.near, NEAR), (ends.far, FAR))]
            thread = threading.Thread(target=self._play, args=places, name="farlink-live", daemon=True)
            thread.start()
            passed_s = 0.0
            try:
                # Not `join`, which takes a thread for ended when Ctrl-C comes meanwhile (CPython 3.11).
                while not self._ended.wait(_LOOK_S):
                    passed_s += _LOOK_S
                    tell(passed_s)
                    if cancel is not None and cancel.is_set():
                        return None
            finally:
                self._core.stop()
                self._ended.wait()
            if self._failure is not None:
                raise self._failure
            played = self._played
            if played is None:
                return None
            unread = ends.unread()
        if any(unread):
            played["faults"].append(f"{sum(unread)} packets were not read in time")
        return played

    def _play(self, near: tuple[str, str], far: tuple[str, str]) -> None:
        try:
            prioritise()
            with core_errors():
                self._played = json.loads(self._core.play(near, far))
        except BaseException as error:
            self._failure = error
        finally:
            self._ended.set()


def _set(namespace: str, key: str, value: str) -> None:
    done = subprocess.run(inside(namespace, ["sysctl", "-qw", f"{key}={value}"]), capture_output=True, text=True, check=False)
    if done.returncode:
        raise FarlinkError(f"cannot set {key} in the namespace {namespace}: {done.stderr.strip()}", "install procps")


class _Table:
    """Rows of runs."""

    def __init__(self, seed: int) -> None:
        from farlink import _core

        self.seed = seed
        self._quantities = [name for name, *_ in _core.quantities()]
        self._rows: list[dict[str, Any]] = []

    def add(self, point: int, run: int, played: Mapping[str, Any], slowest_bps: float | None) -> None:
        """Add the rows of a run."""
        fault = "; ".join(played["faults"])
        for row in played["rows"]:
            values = dict(row)
            duration_s = values["duration_s"]
            if duration_s > 0:
                values["goodput_bps"] = 8 * values["delivered_bytes"] / duration_s
                if slowest_bps:
                    values["goodput_fraction"] = min(1.0, values["goodput_bps"] / slowest_bps)
            values |= {"point": point, "run": run}
            values["reason"] = "; ".join(text for text in (values["reason"], fault and f"not valid: {fault}") if text)
            self._rows.append(values)

    @property
    def has_rows(self) -> bool:
        """Whether there is any."""
        return bool(self._rows)

    def columns(self) -> dict[str, Any]:
        """The tidy table."""
        whole = {name: np.array([row[name] for row in self._rows], dtype=np.uint64) for name in ("point", "run")}
        return {
            "point": whole["point"],
            "engine": [_NAME] * len(self._rows),
            "flow": [row["flow"] for row in self._rows],
            "transport": [row["transport"] for row in self._rows],
            "run": whole["run"],
            "seed": np.full(len(self._rows), self.seed, dtype=np.uint64),
            "status": [row["status"] for row in self._rows],
            "reason": [row["reason"] for row in self._rows],
            **{name: np.array([_number(row.get(name)) for row in self._rows]) for name in self._quantities},
        }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
