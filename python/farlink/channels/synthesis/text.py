"""``synthetic:NAME?key=value&...``: a synthetic trace by name, wherever a trace file may stand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from farlink.channels.synthesis import rain, vehicle
from farlink.channels.synthesis.generate import Synthesis, settle
from farlink.channels.synthesis.presets import PRESETS
from farlink.channels.synthesis.rain import RainSynthesis
from farlink.channels.synthesis.vehicle import VehicleSynthesis
from farlink.channels.trace import KINDS, Trace
from farlink.channels.trace_file import read, write
from farlink.errors import OutputError, TraceError
from farlink.folders import cache_folder, fingerprint, set_aside
from farlink.near_names import instead

PREFIX = "synthetic:"

AnySynthesis = Synthesis | RainSynthesis | VehicleSynthesis

SERIES = {rain.NAME: (rain.TITLE, rain.PARAMETERS), vehicle.NAME: (vehicle.TITLE, vehicle.PARAMETERS)}
"""Titles and parameters of what is no preset of received power, by name."""


def is_synthetic(text: str | Path) -> bool:
    """Whether a name of a trace is that of a synthetic one.

    Parameters
    ----------
    text
        Text in the place of a file name.

    Examples
    --------
    >>> is_synthetic("synthetic:kiodo?seed=7")
    True
    """
    return str(text).startswith(PREFIX)


def parse(text: str | Path) -> AnySynthesis:
    """Parse the name of a synthetic trace.

    Parameters
    ----------
    text
        ``synthetic:NAME`` or ``synthetic:NAME?key=value&key=value``; keys are ``duration_s``, ``seed`` and the parameters.

    Raises
    ------
    TraceError
        If the name is unknown, or a key or value not allowed.

    Examples
    --------
    >>> wanted = parse("synthetic:kiodo?seed=7&duration_s=50")
    >>> wanted.name, wanted.seed, wanted.duration_s
    ('kiodo', 7, 50.0)
    """
    name, _, query = str(text).removeprefix(PREFIX).partition("?")
    return settled(name, dict(_pair(item) for item in query.split("&") if item))


def settled(name: str, given: dict[str, str]) -> AnySynthesis:
    """Settle a preset, rain or a vehicle, with keys and values as texts.

    Parameters
    ----------
    name
        The preset, or one of `SERIES`.
    given
        ``duration_s``, ``seed`` and parameters.

    Raises
    ------
    TraceError
        If the name is unknown, or a key or value not allowed.
    """
    if name not in PRESETS and name not in SERIES:
        raise TraceError(f"{name!r} is no preset of synthetic fading", instead(name, [*PRESETS, *SERIES]))
    rest = dict(given)
    duration_s, seed = rest.pop("duration_s", None), rest.pop("seed", "1")
    try:
        length = None if duration_s is None else float(duration_s)
    except ValueError:
        raise TraceError(f"duration_s: {duration_s!r} is not a number of seconds", "give for example duration_s=100") from None
    try:
        number = int(seed)
    except ValueError:
        raise TraceError(f"seed: {seed!r} is not a whole number", "give for example seed=1") from None
    if name == rain.NAME:
        return rain.settle(rest, duration_s=length, seed=number)
    if name == vehicle.NAME:
        return vehicle.settle(rest, duration_s=length, seed=number)
    return settle(name, rest, duration_s=length, seed=number)


def synthetic_trace(text: str | Path) -> Trace:
    """The synthetic trace of a name.

    Parameters
    ----------
    text
        See `parse`.
    """
    return read(synthetic_file(text))


def synthetic_file(text: str | Path, *, kinds: Collection[str] | None = None) -> Path:
    """The synthetic trace of a name, as a file in the cache.

    Parameters
    ----------
    text
        See `parse`.
    kinds
        Kinds of trace that the caller can use.

    Returns
    -------
    Path
        File whose name is a hash of all parameters.

    Raises
    ------
    TraceError
        If the name is unknown, a key or value not allowed, or a trace of that kind no use.
    OutputError
        If the cache cannot be written.
    """
    wanted = parse(text)
    if kinds is not None and wanted.kind not in kinds:
        raise TraceError(
            f"{text}: a {wanted.kind} trace, where {' or '.join(sorted(kinds))} is wanted",
            f"use it as {KINDS[wanted.kind].use}",
        )
    kept = cache_folder("traces") / f"synthetic-{_key(wanted)}.npz"
    if kept.is_file():
        try:
            read(kept)
        except TraceError as error:
            set_aside(kept, error.message)
        else:
            return kept
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot create {kept.parent}: {error.strerror}", "set XDG_CACHE_HOME to a directory you may write to"
        ) from error
    return write(wanted.draw(), kept)


def _key(wanted: AnySynthesis) -> str:
    made_by = fingerprint("farlink.channels", "farlink.channels.synthesis", "farlink.channels.rain")
    described = [made_by, np.__version__, wanted.made_by, wanted.name, wanted.seed, wanted.duration_s, wanted.values]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:40]


def _pair(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals or not key:
        raise TraceError(f"{item!r} is not key=value", "write synthetic:NAME?key=value&key=value")
    return unquote(key), unquote(value)
