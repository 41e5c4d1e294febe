"""Bundles of cellular modems, run many times over: what `docs/cellular_bundle.py` prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from bundle_studies import Runs, measured
from cellular_lines import (
    BEFORE_S,
    BESIDE,
    BULK,
    FAST_BPS,
    KINDS,
    LENGTH_S,
    LENGTHS_S,
    ON_DROP,
    PATIENCES_S,
    SCHEDULERS,
    STARLINK_BPS,
    STARLINK_DELAY_S,
    STRETCH_S,
    TCP,
    TELEMETRY,
    TRANSPORTS,
    VIDEO,
    WARMUP_S,
    Data,
    Line,
    Modems,
    Spells,
    averaged,
    begins_s,
    in_parts,
    joined,
    read_dish,
    read_modems,
    scenario,
)

Told = Callable[[], None]


def over_tcp(name: str) -> Data:
    """TCP in bulk."""
    return BULK | {"transport": TCP | TRANSPORTS[name]}


@dataclass(frozen=True)
class Found:
    """All runs.

    Attributes
    ----------
    modems
        The log.
    bulk, video
        By assumed length, and by a modem's name or the fate of packets: TCP (SACK), and a video.
    telemetry
        Over the whole log: by assumed length, and by a modem's name or scheduler and the fate of packets.
    schedulers, patiences
        SACK over the bundle at the assumed length.
    transports
        Every TCP over the bundle, by the fate of packets, and averaged over single modems.
    drops
        SACK and CUBIC around each drop, by the fate of packets, and over only the modem that drops.
    fast
        SACK and CUBIC over faster lines, with handovers and without.
    beside
        Synthetic, by which lines, scheduler and `line_packets`: SACK, CUBIC, the video, and telemetry.
    """

    modems: Modems
    bulk: dict[tuple[float | None, str], Runs]
    video: dict[tuple[float | None, str], Runs]
    telemetry: dict[tuple[float | None, str, str], Runs]
    schedulers: dict[str, Runs]
    patiences: dict[float | None, Runs]
    transports: dict[tuple[str, str], Runs]
    drops: dict[tuple[str, str], Runs]
    fast: dict[tuple[str, float | None], Runs]
    beside: dict[tuple[str, str, int], dict[str, Runs]]


SCENARIOS = len(LENGTHS_S) + len(SCHEDULERS) + len(PATIENCES_S) + len(TRANSPORTS) + 3 + len(KINDS)


def study(tell: Told) -> Found:
    """Run everything. Takes three minutes."""
    modems = read_modems()
    span_s = modems.span_s
    bulk, video, telemetry = by_length(modems, tell)
    usual = modems.lines(LENGTH_S)
    schedulers, patiences = {}, {}
    for scheduler in SCHEDULERS:
        schedulers[scheduler] = in_parts(usual, BULK, span_s, scheduler=scheduler)
        tell()
    for patience_s in PATIENCES_S:
        patiences[patience_s] = in_parts(usual, BULK, span_s, reorder_timeout_s=patience_s or "never")
        tell()
    transports = {}
    for name in TRANSPORTS:
        for on_drop in ON_DROP:
            transports[name, on_drop] = in_parts(usual, over_tcp(name), span_s, on_drop=on_drop)
        transports[name, "alone"] = averaged([in_parts([line], over_tcp(name), span_s) for line in usual])
        tell()
    drops, fast = around_drops(modems, tell), faster(modems, tell)
    beside = beside_starlink(modems, tell)
    return Found(modems, bulk, video, telemetry, schedulers, patiences, transports, drops, fast, beside)


def by_length(modems: Modems, tell: Told) -> tuple[dict[Any, Runs], dict[Any, Runs], dict[Any, Runs]]:
    """Single modems and the bundle, by the assumed length of a handover."""
    bulk, video, telemetry = {}, {}, {}
    for length_s in LENGTHS_S:
        lines = modems.lines(length_s)
        for link, line in zip(modems.links, lines, strict=True):
            bulk[length_s, link.name] = in_parts([line], BULK, modems.span_s)
            video[length_s, link.name] = in_parts([line], VIDEO, modems.span_s)
            telemetry[length_s, link.name, "lose"] = measured(scenario([line], TELEMETRY, 0, modems.span_s))
        for on_drop in ON_DROP:
            bulk[length_s, on_drop] = in_parts(lines, BULK, modems.span_s, on_drop=on_drop)
            video[length_s, on_drop] = in_parts(lines, VIDEO, modems.span_s, on_drop=on_drop)
            for scheduler in SCHEDULERS:
                data = scenario(lines, TELEMETRY, 0, modems.span_s, scheduler=scheduler, on_drop=on_drop)
                telemetry[length_s, scheduler, on_drop] = measured(data)
        video[length_s, "redundant"] = in_parts(lines, VIDEO, modems.span_s, scheduler="redundant")
        tell()
    return bulk, video, telemetry


def around_drops(modems: Modems, tell: Told) -> dict[tuple[str, str], Runs]:
    """The bundle around each drop, and only the modem that drops."""
    lines = modems.lines(LENGTH_S)
    places = [(number, begin_s) for number, downs in enumerate(modems.downs[None]) for begin_s, _ in downs if begin_s > 0]
    found: dict[tuple[str, str], list[Runs]] = {}
    for name, (number, drop_s) in product(("SACK", "CUBIC"), places):
        begin_s, flow = drop_s - BEFORE_S - WARMUP_S, over_tcp(name)
        alone = scenario([lines[number]], flow, begin_s, STRETCH_S + WARMUP_S)
        found.setdefault((name, "alone"), []).append(measured(alone))
        for on_drop in ON_DROP:
            data = scenario(lines, flow, begin_s, STRETCH_S + WARMUP_S, on_drop=on_drop)
            found.setdefault((name, on_drop), []).append(measured(data))
    tell()
    return {key: joined(runs) for key, runs in found.items()}


def faster(modems: Modems, tell: Told) -> dict[tuple[str, float | None], Runs]:
    """The bundle with faster lines."""
    found = {}
    for length_s in (None, LENGTH_S):
        lines = [replace(line, rate_bps=FAST_BPS) for line in modems.lines(length_s)]
        for name in ("SACK", "CUBIC"):
            found[name, length_s] = in_parts(lines, over_tcp(name), modems.span_s)
        tell()
    return found


def beside_starlink(modems: Modems, tell: Told) -> dict[tuple[str, str, int], dict[str, Runs]]:
    """Synthetic: a dish of other days beside two modems; each part of their log with another hour of the dish."""
    hours = read_dish()
    flows = {"SACK": over_tcp("SACK"), "CUBIC": over_tcp("CUBIC"), "video": VIDEO, "telemetry": TELEMETRY}
    found = {}
    for name, scheduler, packets in KINDS:
        runs: dict[str, list[Runs]] = {flow: [] for flow in flows}
        for number, begin_s in enumerate(begins_s(modems.span_s)):
            lines = parallel(modems, hours[number % len(hours)], begin_s)
            chosen = {"Starlink alone": lines[:1], "the modems alone": lines[1:]}.get(name, lines)
            for flow, told in flows.items():
                data = scenario(chosen, told, begin_s, STRETCH_S + WARMUP_S, scheduler=scheduler, line_packets=packets)
                runs[flow].append(measured(data | {"seed": number}))
        found[name, scheduler, packets] = {flow: joined(parts) for flow, parts in runs.items()}
        tell()
    return found


def parallel(modems: Modems, hour: Spells, begin_s: float) -> list[Line]:
    """Starlink and two modems: the part of the dish's hour has the same position in its hour as that of the modems' log."""
    shift_s = begin_s - begin_s % (3600 - STRETCH_S - WARMUP_S)
    dish = [(begin + shift_s, end + shift_s) for begin, end in hour]
    return [Line(STARLINK_BPS, STARLINK_DELAY_S, dish), *modems.lines(LENGTH_S, BESIDE)]
