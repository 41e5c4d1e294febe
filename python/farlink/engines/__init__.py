"""Engines: a scenario in, a result out. A new one is a file here and a line in `ENGINES`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from farlink import scenario as scenarios
from farlink.engines.piece import Piece
from farlink.errors import ArgumentError, FarlinkError, ScenarioError
from farlink.near_names import instead
from farlink.result import Result, together
from farlink.scenario import Scenario
from farlink.series import QUANTITIES, Series
from farlink.untrusted import printable

if TYPE_CHECKING:
    from types import ModuleType

    from farlink._core import Cancel

Progress = Callable[[int, int], None]

_SET = 'for example {"link.channel.ber": 1e-7} or ["link.channel.ber=1e-7"]'


class Engine(Protocol):
    """Runs every point and seed of a scenario."""

    def __call__(
        self,
        scenario: Scenario,
        *,
        threads: int | None,
        progress: Progress | None,
        announce: Callable[[str], None] | None,
        rows: bool,
        cancel: Cancel | None,
        piece: Piece | None,
    ) -> Result:
        """Run it, or a piece. A caller may follow the progress, be told of long work beforehand, omit the rows, and stop it."""
        ...


ENGINES = {
    "packet": "farlink.engines.packet",
    "fluid": "farlink.engines.fluid",
    "live": "farlink.engines.live",
    "model": "farlink.engines.model",
}
"""The module of each engine, imported when it is first used. It has `run`, an `Engine`. It may have `check`, which gets a
scenario and a piece, and refuses what other engines run: it is asked before any of them spends time on the scenario."""

# Engines without random numbers, or with one run per point.
_RUN_ONCE = ("model", "fluid")


def run(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    set: Mapping[str, Any] | Iterable[str] = (),
    engine: str | Sequence[str] | None = None,
    runs: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
    rows: bool = True,
    cancel: Cancel | None = None,
    points: Sequence[int] | None = None,
    first_run: int | None = None,
) -> Result:
    """Run a scenario, or a piece of it.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a mapping, or a loaded `Scenario`.
    set
        Settings on top of it: ``{"link.channel.ber": 1e-7}`` or ``["link.channel.ber=1e-7"]``.
    engine
        Name of the engine, or of several, as a list or ``"model,fluid,packet"``: their results stand in one. By default those
        that the scenario names, else ``"packet"``.
    runs
        Runs per grid point; replaces a `precision` rule. With `first_run`, the number of runs of this piece.
    seed
        Seed of every random stream, at least 0.
    threads
        Threads to run on; all cores by default. The result does not depend on it.
    progress
        Called with the runs done and the runs planned, about ten times a second. Error events of a coding that must be
        collected first count as 100 runs each.
    announce
        Called before the runs, with one sentence, if they are estimated to take more than ten minutes of CPU time or 2 GB.
    rows
        Keep the rows of single runs, about 500 bytes each. Without them memory does not grow with the number of runs, and the
        result has its summary, table, figures and report, the same to the bit, but no `rows`.
    cancel
        A `farlink.Cancel`: once any thread has called its ``set()``, the study stops as it does at Ctrl-C.
    points
        Numbers of the grid points to run, from 0; all by default. The others are not made, so that a grid may have up to ten
        million points.
    first_run
        Number of the first run, from 0: the runs from it on have, bit for bit, the rows that the whole study has for them. A
        rule ``precision`` is then not applied. Engines with one run per point, ``"fluid"`` and ``"model"``, have run 0 only.

    Returns
    -------
    Result
        If interrupted (Ctrl-C, `cancel`), with the runs that were finished. If an engine fails behind others, with theirs and
        `failure`.

    Raises
    ------
    ScenarioError
        If the scenario is refused, or has no such point.
    ArgumentError
        If `first_run` is given without `runs`, or the engine has no such run.

    See Also
    --------
    Result.concat : one result from pieces.

    Examples
    --------
    >>> result = run(
    ...     {
    ...         "duration_s": 20,
    ...         "runs": 2,
    ...         "link": {"rate_bps": 1e6, "delay_s": 0.25, "channel": {"kind": "ber", "ber": 1e-6}},
    ...         "transport": {"sack": {"kind": "tcp", "variant": "sack"}},
    ...         "flow": {"bulk": {"transport": "sack", "traffic": {"kind": "bulk"}}},
    ...     }
    ... )
    >>> result.summary()[0]["goodput_bps"]["mean"] > 0
    True
    """
    piece = Piece.asked(points, first_run, runs)
    prepared = prepare(scenario, set=set, engine=engine, runs=runs if first_run is None else None, seed=seed)
    results: list[Result] = []
    names = _with_runs(named_engines(prepared), piece)
    for name in names if len(names) > 1 else ():
        check = getattr(_module(name), "check", None)
        if check is not None:
            check(prepared, piece)
    for name in names:
        try:
            work: Engine = _module(name).run
            result = work(
                prepared, threads=threads, progress=progress, announce=announce, rows=rows, cancel=cancel, piece=piece
            )
        except FarlinkError as error:
            if not results:
                raise
            results[-1] = replace(results[-1], interrupted=True, failure=error)
            break
        results.append(result)
        if result.interrupted:
            break
    return results[0] if len(results) == 1 else together(results)


def _with_runs(names: list[str], piece: Piece | None) -> list[str]:
    """The engines that have runs of this piece."""
    if piece is None or piece.has_run(0):
        return names
    found = [name for name in names if name not in _RUN_ONCE]
    if not found and piece.runs is not None:
        message = f"first_run: the engine {' and '.join(names)} has one run per point, and no run {piece.runs.start}"
        raise ArgumentError(message, "ask for its only run: first_run=0, runs=1")
    return found


def trace_run(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    set: Mapping[str, Any] | Iterable[str] = (),
    seed: int | None = None,
    point: int = 0,
    run: int = 0,
    pcap: bool = False,
    quantities: Sequence[str] | None = QUANTITIES,
) -> Series:
    """Run one run of a scenario again and observe it.

    Parameters
    ----------
    scenario, set, seed
        As for `farlink.run`.
    point
        Number of the grid point, from 0.
    run
        Number of the run at it, from 0.
    pcap
        Whether to capture its packets too.
    quantities
        What to observe; None for what the scenario's ``[measure]`` names.

    Returns
    -------
    Series
        The same run, packet for packet, that row ``run`` of the result came from.
    """
    from farlink.engines import packet

    return packet.trace(prepare(scenario, set=set, seed=seed), point=point, run=run, pcap=pcap, quantities=quantities)


def prepare(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    set: Mapping[str, Any] | Iterable[str] = (),
    engine: str | Sequence[str] | None = None,
    runs: int | None = None,
    seed: int | None = None,
) -> Scenario:
    """Load a scenario and apply settings, engine, number of runs and seed to it."""
    if isinstance(scenario, Mapping):
        scenario = scenarios.from_data(scenario)
    elif not isinstance(scenario, Scenario):
        scenario = scenarios.load(scenario)
    if isinstance(set, str):
        set = [set]
    if not isinstance(set, Mapping) and not isinstance(set, Iterable):
        raise ArgumentError(f"set: {set!r} is neither a mapping nor a list", _SET)
    settings = [f"{path}={_toml(value)}" for path, value in set.items()] if isinstance(set, Mapping) else list(set)
    for text in settings:
        if not isinstance(text, str):
            raise ArgumentError(f"set: {printable(repr(text), 60)} is not of the form path=value", _SET)
    for name, number in (("runs", runs), ("seed", seed)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, Integral)):
            raise ArgumentError(f"{name}: {printable(repr(number), 60)} is not a whole number", "give a whole number")
    if engine is not None:
        settings.append(f"engines={_toml(_names(engine))}")
    if runs is not None:
        settings.append(f"runs={runs}")
    if seed is not None:
        settings.append(f"seed={seed}")
    changed = scenario.with_overrides(settings)
    if runs is not None:
        changed.data.pop("precision", None)
    return changed


def named_engines(scenario: Scenario) -> list[str]:
    """The engines that the scenario names. A value that is no list of engines is refused by the extension."""
    named = scenario.data.get("engines", ["packet"])
    if not isinstance(named, list) or not named or any(name not in ENGINES for name in named):
        scenario.expanded([0])
        return ["packet"]
    return [str(name) for name in named]


def _names(engine: str | Sequence[str]) -> list[str]:
    """The engines that an argument names."""
    names = [name.strip() for name in engine.split(",")] if isinstance(engine, str) else engine
    if not isinstance(names, Sequence) or not names:
        raise ArgumentError(
            f"engine: {printable(repr(engine), 60)} names no engine", f"give one or more of {', '.join(ENGINES)}"
        )
    for name in names:
        _module(name)
    return list(names)


def _module(name: str) -> ModuleType:
    """The module of an engine."""
    if isinstance(name, str) and name in ENGINES:
        return import_module(ENGINES[name])
    raise ScenarioError(f"engine {name!r} is not known", instead(str(name), ENGINES))


def _toml(value: Any) -> str:
    """A Python value as TOML on one line."""
    if value is None:
        raise ScenarioError("set: None is no value of a key", "leave the key out")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _toml(value.tolist())
    if isinstance(value, os.PathLike):
        return _toml(os.fspath(value))
    if not isinstance(value, int | float):
        message = f"set: {printable(repr(value), 60)} is not a number, string, boolean, list or table"
        raise ArgumentError(message, "times are plain numbers of seconds")
    return repr(value)
