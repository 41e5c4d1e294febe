"""Metrics for Prometheus: what is known of bundles when they are asked for.

Labels are names of bundles, lines, states and alerts, of which there are few; causes and callers are none.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from farlink import __version__
from farlink.errors import FarlinkError
from farlink.operator.live.recorder import bars_of
from farlink.operator.watch.source import Source

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
STATES = ("waiting", "connecting", "connected", "silent", "dropped", "failed", "blocked", "held")
PERIODS = {"day": "today", "month": "month"}
_MOST_NAME = 40
_MOST_ALERTS = 300
_MOST_AT_ONCE = 16
_LARGEST = 2**62

Value = Callable[[Mapping[str, Any]], Any]

# Name, help, value in what the operator says of a line.
_LINE_GAUGES: tuple[tuple[str, str, Value], ...] = (
    ("farlink_line_up", "Whether the line is connected.", lambda one: one["state"] == "connected"),
    ("farlink_line_primary", "Whether the line is the primary one.", lambda one: one.get("is_primary")),
    ("farlink_line_port_present", "Whether the line's port or interface is there.", lambda one: one.get("has_port")),
    ("farlink_line_state_seconds", "How long the line has been in its state.", lambda one: one.get("for_s")),
    ("farlink_line_attempt", "Attempts since the line was last up.", lambda one: one.get("attempt")),
    ("farlink_line_signal_bars", "Signal, 0 to 5.", lambda one: _bars(one)),
    ("farlink_line_round_trip_seconds", "Round trip of the last probe.", lambda one: one.get("round_trip_s")),
    ("farlink_line_expected_up_seconds", "Expected length of a call, by its history.", lambda one: one.get("expected_up_s")),
)
# A count of each call: it begins anew with the next one, as counters may.
_LINE_COUNTERS: tuple[tuple[str, str, Value], ...] = (
    ("farlink_line_received_bytes", "Bytes received, counted anew for each call.", lambda one: one.get("bytes_in")),
    ("farlink_line_transmitted_bytes", "Bytes sent, counted anew for each call.", lambda one: one.get("bytes_out")),
)
# Metrics of a bundle.
_GAUGES: tuple[tuple[str, str, Value], ...] = (
    ("farlink_bundle_up", "Whether at least one line is connected.", lambda one: one["up"] > 0),
    ("farlink_bundle_lines", "Configured lines.", lambda one: len(one["lines"])),
    ("farlink_bundle_lines_up", "Connected lines.", lambda one: one["up"]),
    ("farlink_bundle_lines_used", "Lines that are used at a time.", lambda one: one["use"]),
    (
        "farlink_bundle_injected_hertz",
        "Drops per second that are injected on each line.",
        lambda one: one["injected_per_s"] or 0,
    ),
    ("farlink_operator_running_seconds", "How long the operator has been running.", lambda one: one["running_s"]),
    ("farlink_journal_writable", "Whether the journal can be written.", lambda one: not one["journal"]["failure"]),
    ("farlink_journal_waiting_transitions", "Transitions that wait for the journal.", lambda one: one["journal"]["waiting"]),
)
_COUNTERS: tuple[tuple[str, str, Value], ...] = (
    ("farlink_journal_left_out_transitions", "Transitions that are lost.", lambda one: one["journal"]["left_out"]),
    ("farlink_hook_failures", "Hooks that failed.", lambda one: one["hooks"]["failures"]),
    ("farlink_hook_left_out_events", "Events for which no hook was started.", lambda one: one["hooks"]["left_out"]),
)


def registry_of(sources: Iterable[Source]) -> CollectorRegistry:
    """A registry with the metrics of some bundles and nothing else."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Bundles(sources))
    return registry


def text_of(registry: CollectorRegistry) -> bytes:
    """All metrics as Prometheus reads them (`CONTENT_TYPE`)."""
    return generate_latest(registry)


class Bundles(Collector):
    """The metrics of some bundles; their operators are asked when they are collected.

    Parameters
    ----------
    sources
        The bundles.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = [(source, _Counted(source)) for source in sources]

    def collect(self) -> Iterator[Metric]:
        """Ask each operator, and make the families."""
        families = _Families()
        families.gauge("farlink_build_info", "Version of farlink.", {"version": __version__}, 1)
        # At the same time: an operator that hangs takes as long as there is for all of them.
        with ThreadPoolExecutor(max(1, min(len(self._sources), _MOST_AT_ONCE))) as pool:
            answers = list(pool.map(lambda pair: _asked(pair[0]), self._sources))
        for (source, counted), (status, took_s) in zip(self._sources, answers, strict=True):
            labels = {"bundle": source.bundle.name}
            is_reachable = status is not None and _is_understood(families, source, status)
            families.gauge("farlink_operator_reachable", "Whether the operator answers.", labels, is_reachable)
            families.gauge("farlink_operator_answer_seconds", "How long its answer took.", labels, took_s)
            _of_journal(families, source.bundle.name, counted)
        return families.made()


class _Families:
    """Families by name, so that one with samples of several bundles is one."""

    def __init__(self) -> None:
        self._by_name: dict[str, Metric] = {}

    def gauge(self, name: str, text: str, labels: Mapping[str, str], value: object) -> None:
        self._add(GaugeMetricFamily, name, text, labels, value)

    def counter(self, name: str, text: str, labels: Mapping[str, str], value: object) -> None:
        """Add a sample; ``_total`` is appended to the name."""
        self._add(CounterMetricFamily, name, text, labels, value)

    def made(self) -> Iterator[Metric]:
        return iter(self._by_name.values())

    def _add(self, kind: Callable[..., Any], name: str, text: str, labels: Mapping[str, str], value: object) -> None:
        # What is not known is no sample: 0 would be a lie.
        if not isinstance(value, int | float) or not math.isfinite(value):
            return
        if name not in self._by_name:
            self._by_name[name] = kind(name, text, labels=tuple(labels))
        family: Any = self._by_name[name]
        family.add_metric(tuple(labels.values()), float(value))


def _asked(source: Source) -> tuple[dict[str, Any] | None, float]:
    begin = time.monotonic()
    try:
        found = source.status()
    except FarlinkError:  # it does not answer, or is of another version and refuses
        return None, time.monotonic() - begin
    return found, time.monotonic() - begin


def _is_understood(families: _Families, source: Source, status: Mapping[str, Any]) -> bool:
    """Make what there is to make of a status, and whether that was all: another version may say something else."""
    try:
        _of_bundle(families, source, status)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        return False
    return True


def _of_bundle(families: _Families, source: Source, status: Mapping[str, Any]) -> None:
    labels = {"bundle": source.bundle.name}
    families.gauge("farlink_bundle_info", "How the bundle carries PPP.", {**labels, "back_end": source.bundle.back_end}, 1)
    for name, text, value in _GAUGES:
        families.gauge(name, text, labels, _known(value, status))
    for name, text, value in _COUNTERS:
        families.counter(name, text, labels, _known(value, status))
    limits = asdict(source.bundle.bundle_budget)
    _costs(families, "farlink_bundle", "of all lines", labels, status.get("costs", {}), limits)
    budgets = {line.name: asdict(source.bundle.budget_of(line)) for line in source.bundle.lines}
    kinds = {line.name: line.kind for line in source.bundle.lines}
    for one in status["lines"]:
        of_line = {**labels, "line": str(one["line"])}
        info = {**of_line, "role": str(one.get("role", "")), "kind": kinds.get(one["line"], "")}
        families.gauge("farlink_line_info", "Role and kind of the line.", info, 1)
        for state in STATES:
            text = "Whether the line is in this state."
            families.gauge("farlink_line_state", text, {**of_line, "state": state}, one["state"] == state)
        for name, text, value in _LINE_GAUGES:
            families.gauge(name, text, of_line, _known(value, one))
        for name, text, value in _LINE_COUNTERS:
            families.counter(name, text, of_line, _known(value, one))
        _costs(families, "farlink_line", "of the line", of_line, one, budgets.get(one["line"], {}))
    _alerts(families, labels, status.get("alerts") or [])
    _deliveries(families, labels, (status.get("delivery") or {}).get("routes") or [])


def _costs(
    families: _Families, begin: str, whose: str, labels: dict[str, str], used: Mapping[str, Any], limits: Mapping[str, Any]
) -> None:
    """What calls have cost, what they may, and the quotient of both."""
    for period, key in PERIODS.items():
        of_period = {**labels, "period": period}
        for what, unit, words in (("airtime", "_seconds", "Airtime"), ("money", "", "Costs")):
            spent = used.get(f"airtime_s_{key}" if what == "airtime" else f"money_{key}")
            limit = limits.get(f"airtime_s_per_{period}" if what == "airtime" else f"money_per_{period}")
            families.gauge(f"{begin}_{what}{unit}", f"{words} {whose} in this day or month.", of_period, spent)
            if limit is None or not isinstance(spent, int | float):
                continue
            families.gauge(f"{begin}_{what}_limit{unit}", f"Budget of {words.lower()} {whose}.", of_period, limit)
            ratio = spent / limit if limit > 0 else float(spent > 0)
            budget = {**labels, "budget": f"{what}_{period}"}
            families.gauge(f"{begin}_budget_used_ratio", f"Share of a budget {whose} that is spent.", budget, ratio)


def _alerts(families: _Families, labels: dict[str, str], alerts: Iterable[Mapping[str, Any]]) -> None:
    raised = {
        tuple(str(one.get(key) or "")[:_MOST_NAME] for key in ("line", "alert", "severity"))
        for one in list(alerts)[:_MOST_ALERTS]
    }
    for line, alert, severity in sorted(raised):
        named = {"line": line, "alert": alert, "severity": severity}
        families.gauge("farlink_alert_raised", "Alerts of the operator that are raised.", {**labels, **named}, 1)
    families.gauge("farlink_alerts", "How many alerts are raised.", labels, len(raised))


def _deliveries(families: _Families, labels: dict[str, str], routes: Iterable[Mapping[str, Any]]) -> None:
    """How messages of alerts go out, by the name of each route; its URL is a secret."""
    for one in list(routes)[:_MOST_ALERTS]:
        route = {**labels, "route": str(one["route"])[:_MOST_NAME]}
        families.gauge("farlink_alert_messages_waiting", "Messages that wait to be sent.", route, one.get("waiting"))
        families.counter("farlink_alert_messages_sent", "Messages that were sent.", route, one.get("sent"))
        families.counter("farlink_alert_messages_left_out", "Messages that were given up.", route, one.get("left_out"))
        families.counter("farlink_alert_message_failures", "Attempts to send one that failed.", route, one.get("failures"))


def _of_journal(families: _Families, bundle: str, counted: _Counted) -> None:
    counts, connections = counted.now()
    if connections is not None:
        families.counter(
            "farlink_bundle_connections", "Connections that the journal has seen begin.", {"bundle": bundle}, connections
        )
    for line in sorted({line.name for line in counted.source.bundle.lines} | {line for line, _, _ in counts}):
        labels = {"bundle": bundle, "line": line}
        for name, text, state in (
            ("farlink_line_attempts", "Dials, and calls that were answered.", "connecting"),
            ("farlink_line_connects", "Attempts that came up.", "connected"),
            ("farlink_line_failures", "Attempts that failed.", "failed"),
            ("farlink_line_drops", "Drops of the network.", "dropped"),
        ):
            families.counter(name, text, labels, counts[line, state, False])
        families.counter("farlink_line_injected_drops", "Drops that were injected.", labels, counts[line, "dropped", True])


class _Counted:
    """Transitions that the journal has got since this process began: a journal forgets what is old, a counter may not."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, bool]] = Counter()
        # A journal that does not exist yet is counted from its beginning; one that cannot be read, from when it can.
        self._last: int | None = None if source.bundle.journal.exists() else 0
        with suppress(FarlinkError):
            self._last = source.journal.counts(_LARGEST)[1]

    def now(self) -> tuple[Counter[tuple[str, str, bool]], int | None]:
        """Line, state and whether it was injected -> count; and the number of the last connection, if that is known."""
        with self._lock:
            connections = self._read()
            return Counter(self._counts), connections

    def _read(self) -> int | None:
        try:
            before = _LARGEST if self._last is None else self._last
            more, last = self.source.journal.counts(before)
            if self._last is not None and last < before:  # the journal was moved away and begun anew
                more, last = self.source.journal.counts(0)
            self._counts.update(more)
            self._last = last
            return self.source.journal.last_connection()
        except FarlinkError:
            return None


def _known(value: Value, of: Mapping[str, Any]) -> Any:
    try:
        return value(of)
    except (KeyError, TypeError, ValueError):
        return None


def _bars(one: Mapping[str, Any]) -> int | None:
    return None if one.get("signal") is None else bars_of(one["signal"], one.get("most_signal"))
