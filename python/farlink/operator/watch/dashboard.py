"""The dashboard for Grafana, as its JSON: state of each line, drops, signal, throughput, budgets, journal, alerts."""

from __future__ import annotations

from typing import Any

_OF = '{bundle=~"$bundle"}'
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_RED, _GREEN, _YELLOW = "red", "green", "yellow"
# State of a line -> number, colour. Words stand beside colours.
_STATES = {
    "waiting": (0, "#8e8e8e"),
    "connecting": (1, "#f2cc0c"),
    "connected": (2, "#299c46"),
    "silent": (3, "#ff9830"),
    "dropped": (4, "#e0752d"),
    "failed": (5, "#e02f44"),
    "blocked": (6, "#890f02"),
    "held": (7, "#a352cc"),
}


def dashboard() -> dict[str, Any]:
    """The dashboard, ready for JSON. It asks for its data source and for the bundles that are shown."""
    return {
        "uid": "farlink-bundles",
        "title": "farlink: bundles",
        "tags": ["farlink"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "panels": [{"id": at, "datasource": _SOURCE, **panel} for at, panel in enumerate(_panels(), start=1)],
    }


def _variables() -> list[dict[str, Any]]:
    bundle = {
        "name": "bundle",
        "label": "Bundle",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": "label_values(farlink_operator_reachable, bundle)", "refId": "bundle"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }
    return [{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}, bundle]


def _panels() -> list[dict[str, Any]]:
    by_line, each = "{{bundle}} {{line}}", "sum by (bundle, line)"
    states = [
        _target(f'{number} * (farlink_line_state{{bundle=~"$bundle",state="{state}"}} == 1)', by_line, f"s{number}")
        for state, (number, _) in _STATES.items()
    ]
    sent, received = "farlink_line_transmitted_bytes_total", "farlink_line_received_bytes_total"
    return [
        _stat("Operator", f"farlink_operator_reachable{_OF}", (0, 0, 4, 4), {"0": ("gone", _RED), "1": ("runs", _GREEN)}),
        _stat("Bundle", f"farlink_bundle_up{_OF}", (4, 0, 4, 4), {"0": ("down", _RED), "1": ("up", _GREEN)}),
        _stat("Journal", f"farlink_journal_writable{_OF}", (8, 0, 4, 4), {"0": ("unwritable", _RED), "1": ("written", _GREEN)}),
        _stat("Lines up", f"farlink_bundle_lines_up{_OF}", (12, 0, 4, 4)),
        _stat("Alerts raised", f"farlink_alerts{_OF}", (16, 0, 4, 4)),
        _stat("Connections", f"farlink_bundle_connections_total{_OF}", (20, 0, 4, 4)),
        {
            **_panel("State of each line", "state-timeline", (0, 4, 24, 8), states),
            "options": {"mergeValues": True, "showValue": "auto", "rowHeight": 0.9},
            "fieldConfig": {"defaults": {"mappings": [_states_mapping()], "custom": {"fillOpacity": 80}}, "overrides": []},
        },
        _graph(
            "Lines up, and used",
            (0, 12, 12, 7),
            [
                _target(f"farlink_bundle_lines_up{_OF}", "{{bundle}} up", "up"),
                _target(f"farlink_bundle_lines_used{_OF}", "{{bundle}} used", "used"),
            ],
        ),
        _graph(
            "Drops per hour",
            (12, 12, 12, 7),
            [
                _target(f"{each} (increase(farlink_line_drops_total{_OF}[1h]))", by_line, "drops"),
                _target(f"{each} (increase(farlink_line_injected_drops_total{_OF}[1h]))", f"{by_line} injected", "injected"),
            ],
        ),
        _graph(
            "Throughput",
            (0, 19, 12, 7),
            [
                _target(f"8 * rate({received}{_OF}[$__rate_interval])", f"{by_line} in", "in"),
                _target(f"-8 * rate({sent}{_OF}[$__rate_interval])", f"{by_line} out", "out"),
            ],
            "bps",
        ),
        _graph("Signal (bars)", (12, 19, 12, 7), [_target(f"farlink_line_signal_bars{_OF}", by_line, "bars")], most=5),
        _graph(
            "Expected length of a call",
            (0, 26, 12, 7),
            [_target(f"farlink_line_expected_up_seconds{_OF}", by_line, "expected")],
            "s",
        ),
        _graph(
            "Attempts and failures per hour",
            (12, 26, 12, 7),
            [
                _target(f"{each} (increase(farlink_line_attempts_total{_OF}[1h]))", by_line, "attempts"),
                _target(f"{each} (increase(farlink_line_failures_total{_OF}[1h]))", f"{by_line} failed", "failures"),
            ],
        ),
        {
            **_graph(
                "Budgets that are spent",
                (0, 33, 12, 7),
                [
                    _target(f"farlink_line_budget_used_ratio{_OF}", f"{by_line} {{{{budget}}}}", "line"),
                    _target(f"farlink_bundle_budget_used_ratio{_OF}", "{{bundle}} {{budget}}", "bundle"),
                ],
                "percentunit",
            ),
            "type": "bargauge",
        },
        _graph(
            "Airtime and money of this month",
            (12, 33, 12, 7),
            [
                _target(
                    'farlink_bundle_airtime_seconds{bundle=~"$bundle",period="month"}', "{{bundle}} airtime (s)", "airtime"
                ),
                _target('farlink_bundle_money{bundle=~"$bundle",period="month"}', "{{bundle}} money", "money"),
            ],
        ),
        {
            **_panel(
                "Raised alerts", "table", (0, 40, 24, 6), [_target(f"farlink_alert_raised{_OF}", "", "alerts", is_table=True)]
            ),
            "fieldConfig": {"defaults": {}, "overrides": []},
        },
    ]


def _states_mapping() -> dict[str, Any]:
    options = {str(number): {"text": state, "color": colour} for state, (number, colour) in _STATES.items()}
    return {"type": "value", "options": options}


def _target(expression: str, legend: str, name: str, *, is_table: bool = False) -> dict[str, Any]:
    table = {"format": "table", "instant": True} if is_table else {}
    return {"refId": name, "datasource": _SOURCE, "expr": expression, "legendFormat": legend, **table}


def _panel(title: str, kind: str, place: tuple[int, int, int, int], targets: list[dict[str, Any]]) -> dict[str, Any]:
    x, y, width, height = place
    return {"title": title, "type": kind, "gridPos": {"x": x, "y": y, "w": width, "h": height}, "targets": targets}


def _graph(
    title: str, place: tuple[int, int, int, int], targets: list[dict[str, Any]], unit: str = "short", *, most: int | None = None
) -> dict[str, Any]:
    bounds = {} if most is None else {"min": 0, "max": most}
    return {
        **_panel(title, "timeseries", place, targets),
        "fieldConfig": {"defaults": {"unit": unit, **bounds}, "overrides": []},
        "options": {"legend": {"displayMode": "table", "calcs": ["lastNotNull"]}},
    }


def _stat(
    title: str, expression: str, place: tuple[int, int, int, int], words: dict[str, tuple[str, str]] | None = None
) -> dict[str, Any]:
    shown = {value: {"text": text, "color": colour} for value, (text, colour) in (words or {}).items()}
    mappings = [{"type": "value", "options": shown}] if shown else []
    return {
        **_panel(title, "stat", place, [_target(expression, "{{bundle}}", "value")]),
        "fieldConfig": {"defaults": {"mappings": mappings, "unit": "none"}, "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "auto", "colorMode": "background"},
    }
