"""A scenario of a bundle of IP paths, from the configuration of `farlink bundle carry` and what its logs say of the paths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farlink.errors import JournalError
from farlink.near_names import instead
from farlink.net.ship_logs import Down, PathLog, read_journal, read_metrics, span
from farlink.untrusted import read_file, toml_tables

_MOST_BYTES = 1 << 20
# Keys that a path of the configuration, and the bundle's limits, share with a scenario.
_OF_PATH = (
    "standby",
    "classes",
    "cost",
    "bytes_a_day",
    "minutes_a_day",
    "probe_bytes_a_day",
    "probe_interval_s",
    "queue_s",
    "mtu_bytes",
)
_OF_CLASS = ("number", "policy", "ordered")
# A serial line has frames in place of IP and UDP, and datagrams of 1147 bytes at most.
_SERIAL = {"headers_bytes": 6, "mtu_bytes": 1147 + 25 + 6}
# Class of packets without a DSCP that a class names.
_USUAL_CLASS = 4
# A path's own queue where the logs do not show how long packets wait in it, in s; and its least, in bytes.
_QUEUE_S, _LEAST_QUEUE_BYTES = 0.1, 45_000
# Less is no loss that a mean of samples shows.
_LEAST_LOSS = 1e-4


@dataclass(frozen=True)
class Given:
    """Facts about a path that are known without a log.

    Attributes
    ----------
    rate_bps, delay_s
        Its rate, and its one-way delay; None if unknown.
    """

    rate_bps: float | None = None
    delay_s: float | None = None


@dataclass(frozen=True)
class Expected:
    """A scenario and its traces.

    Attributes
    ----------
    data
        The scenario.
    traces
        Text of each trace file, by its name, which the scenario names.
    notes
        What could not be known, a sentence each.
    """

    data: dict[str, Any]
    traces: dict[str, str]
    notes: tuple[str, ...]


def expected_paths(
    config: Path,
    *,
    journal: Path | None = None,
    metrics: Path | None = None,
    calls: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    given: Mapping[str, Given] | None = None,
) -> Expected:
    """Make a scenario of a bundle and its paths.

    Parameters
    ----------
    config
        The configuration of either end, a TOML file. Keys, addresses and interfaces are not read. Of logs that tell of several
        peers, what is of its `peer` counts.
    journal, metrics
        As `read_journal` and `read_metrics` take them; both count from the first time in any log.
    calls
        When a path was down by another log, such as the operator's of a modem: spans in s since 1970, by the name of the path.
    given
        What is known of paths without a log, by name; it goes before what the logs say.

    Raises
    ------
    FarlinkError
        If a file cannot be read, names a path that the configuration does not have, or the rate of a path is not known.

    Notes
    -----
    The traffic is one TCP connection (CUBIC) in the usual class for as long as the logs last, and a call of 50 datagrams a
    second in each class with a DSCP: change it to your own.
    """
    tables = _config(config)
    names = [path["name"] for path in tables["path"]]
    logs = {name: PathLog() for name in names}
    peer = tables.get("peer")
    downs, times = read_journal(journal, peer=peer) if journal else ({}, None)
    for name, found in downs.items():
        _known(journal, name, names)
        logs[name].downs = found
    for name, samples in (read_metrics(metrics, peer=peer) if metrics else {}).items():
        _known(metrics, name, names)
        logs[name].samples = samples
    for name, spans in (calls or {}).items():
        _known("--calls", name, names)
        logs[name].downs = [*logs[name].downs, *(Down(begin, end, "near") for begin, end in spans)]
    for name in given or {}:
        _known("--path", name, names)
    spans_of_calls = [at for spans in (calls or {}).values() for pair in spans for at in pair if math.isfinite(at)]
    whole = span([*logs.values()], times) or ((min(spans_of_calls), max(spans_of_calls)) if spans_of_calls else None)
    start_s, end_s = whole or (0.0, 60.0)
    duration_s = min(max(end_s - start_s, 1.0), 1e7)

    traces: dict[str, str] = {}
    notes: list[str] = []
    members = []
    for path in tables["path"]:
        name = path["name"]
        known = (given or {}).get(name, Given())
        if known.rate_bps is None and "serial" in path:
            known = replace(known, rate_bps=path.get("rate_bps"))
        member = _member(path, logs[name], known, (start_s, duration_s), traces, notes)
        members.append(member)
    data = _scenario(tables, members, duration_s)
    return Expected(data, traces, tuple(notes))


def _config(path: Path) -> dict[str, Any]:
    try:
        text = read_file(path, JournalError, _MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{path} cannot be read: {error}", "check the name of the file") from error
    try:
        tables = toml_tables(text)
    except ValueError as error:
        raise JournalError(f"{path} is no TOML: {error}", "correct it, or see docs/guides/bundle-ship.md") from error
    paths = tables.get("path")
    is_right = (
        isinstance(paths, list) and paths and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in paths)
    )
    if not is_right:
        raise JournalError(f"{path} has no tables [[path]] with a name", "give the configuration of farlink bundle carry")
    return tables


def _known(where: object, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise JournalError(f"{where}: there is no path {name!r} in the configuration", instead(name, names))


def _member(
    path: Mapping[str, Any],
    log: PathLog,
    given: Given,
    of_time: tuple[float, float],
    traces: dict[str, str],
    notes: list[str],
) -> dict[str, Any]:
    """The table of a path."""
    name, (start_s, duration_s) = path["name"], of_time
    member: dict[str, Any] = {"name": name.replace(".", "-")}
    rates, delays = log.rates(), log.delays()
    if given.rate_bps is not None:
        member["rate_bps"] = given.rate_bps
    elif rates:
        member["rate_bps"] = _series(f"{member['name']}-rate.csv", "rate_bps", rates, of_time, traces)
    else:
        remedy = f"give --metrics, or what is known: --path {name}:RATE_BPS:DELAY_S"
        raise JournalError(f"the rate of path {name!r} is not known", remedy)
    if given.delay_s is not None:
        member["delay_s"] = given.delay_s
    elif delays:
        member["delay_s"] = _series(f"{member['name']}-delay.csv", "delay_s", delays, of_time, traces)
    else:
        raise JournalError(
            f"the delay of path {name!r} is not known",
            f"give --metrics, or what is known: --path {name}:RATE_BPS:DELAY_S",
        )
    most_bps = given.rate_bps if given.rate_bps is not None else max(rate for _, rate in rates)
    queue_s = max(log.queue_s(), _QUEUE_S)
    member["queue_bytes"] = max(round(most_bps * queue_s / 8), _LEAST_QUEUE_BYTES)
    if (loss := log.loss()) is not None and loss > _LEAST_LOSS:
        channel = {"kind": "loss", "loss": round(min(loss, 1.0), 6)}
        member |= {"channel": channel, "return": {"channel": channel}}
    if "serial" in path:
        member |= _SERIAL
    member |= {key: path[key] for key in _OF_PATH if key in path and key not in member}
    unplugged = _unplugged(log.downs, start_s, duration_s)
    if unplugged:
        member["unplugged"] = unplugged
    if given.rate_bps is None and not path.get("standby", False) and len(rates) < 2:
        notes.append(f"{name}: the rate is the largest that was seen; the path may carry more")
    return member


def _series(
    file: str, column: str, steps: Sequence[tuple[float, float]], of_time: tuple[float, float], traces: dict[str, str]
) -> float | dict[str, str]:
    """A number, or the trace of one that changes."""
    start_s, duration_s = of_time
    values = [value for _, value in steps]
    if len(steps) == 1 or max(values) - min(values) <= 0.02 * max(values):
        return float(f"{math.fsum(values) / len(values):.6g}")
    rows = [(0.0, values[0])]
    for at, value in steps:
        since = round(at - start_s, 3)
        if since > rows[-1][0]:
            rows.append((since, value))
        else:
            rows[-1] = (rows[-1][0], value)
    # It repeats at its end, which is behind that of the run.
    rows.append((max(rows[-1][0], duration_s) + 1.0, values[-1]))
    traces[file] = f"time_s,{column}\n" + "".join(f"{at:g},{value:.6g}\n" for at, value in rows)
    return {"kind": column.partition("_")[0] + "-trace", "file": file}


def _unplugged(downs: Sequence[Down], start_s: float, duration_s: float) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for down in sorted(downs, key=lambda one: one.from_s):
        begin, end = (round(min(max(at - start_s, 0.0), duration_s), 3) for at in (down.from_s, down.to_s))
        if found and begin < found[-1]["to_s"]:
            found[-1]["to_s"] = max(found[-1]["to_s"], end)
        elif begin < end:
            found.append({"from_s": begin, "to_s": end, "noticed_by": down.noticed_by})
    return found


def _scenario(tables: Mapping[str, Any], members: Sequence[Mapping[str, Any]], duration_s: float) -> dict[str, Any]:
    classes = [table for table in tables.get("class", []) if isinstance(table, dict)]
    limits = dict(tables.get("limits", {}))
    mtu_bytes = tables.get("tun", {}).get("mtu_bytes", 1400)
    paths: dict[str, Any] = {"members": list(members)}
    if classes:
        paths["classes"] = [{key: table[key] for key in _OF_CLASS if key in table} for table in classes]
    if limits:
        paths["limits"] = limits
    transports: dict[str, Any] = {
        "tcp": {
            "kind": "tcp",
            "variant": "sack",
            "congestion_control": "cubic",
            "segment_bytes": mtu_bytes - 52,
            "receive_window_segments": 4000,
        }
    }
    flows: dict[str, Any] = {"bulk": {"transport": "tcp", "class": _USUAL_CLASS, "traffic": {"kind": "bulk"}}}
    for table in classes:
        if table.get("dscp") and table.get("number") != _USUAL_CLASS:
            transports["call"] = {"kind": "udp"}
            traffic = {"kind": "cbr", "rate_bps": 64e3, "payload_bytes": 160}
            flows[f"call-{table['number']}"] = {"transport": "call", "class": table["number"], "traffic": traffic}
    # Values of a path go before these.
    link = {"rate_bps": 1e6, "delay_s": 0.05, "paths": paths}
    return {
        "title": "What to expect of this bundle, by its logs",
        "duration_s": round(duration_s, 3),
        "runs": 1,
        "link": link,
        "transport": transports,
        "flow": flows,
    }
