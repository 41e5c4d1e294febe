"""The reference of results, from the engine's list of quantities: part of `make docs`."""

from __future__ import annotations

import textwrap

from farlink import _core

OF_PATHS = (
    ("goodput_bps", "data of users that arrived over the path forward, over `duration_s`; what is sent again and copies count"),
    ("goodput_fraction", "the same over the mean rate of the path"),
    ("delivered_bytes", "the same in bytes"),
    ("delivered_packets", "datagrams that arrived, acknowledgements and probes included"),
    ("sent_bytes", "bytes of all datagrams that were sent, headers of seal, UDP and IP included"),
    ("overhead_bytes", "those of them that are no data of users"),
    ("loss_fraction", "share of the datagrams that were lost, dropped by the path's queue, or sent while it was unplugged"),
    ("arrival_delay_mean_s", "mean time of a datagram in the path, from sending to arrival"),
    ("back_channel_fraction", "bytes of datagrams sent on the way back, over what the path can carry there"),
    ("lines_up_fraction", "share of the time that the near end took the path for up"),
    ("call_drops", "how often the near end found it down"),
    ("duration_s", "measured time"),
)

ROW_KEYS = (
    ("engine", "which engine; `packet`"),
    ("flow", "name of the flow; `NAME.1`, `NAME.2`, ... if its `count` is above 1 and there are at most 256 such flows; "
     "transfers have one row for all of a name; `all` for all flows together; [paths](#rows-of-paths) have rows of their own"),
    ("transport", "name of the flow's transport; `mixed` for several"),
    ("run", "number of the run at its grid point, from 0"),
    ("seed", "seed of the scenario"),
    ("*grid paths*", "a column per path of the grid, with its value"),
    (
        "status",
        "`ok`; `unfinished`: traffic that has an end was still arriving when the run was over; `stalled`: nothing arrived for "
        "longer than a round trip and a timeout, or nothing more can arrive ([rule](../concepts/packet-engine.md#status))",
    ),
    ("reason", "what is missing, since when, and why; empty if `ok`, but with the engine `model` its equation"),
)  # fmt: skip


def page() -> str:
    """The reference of results."""
    lines = [
        "<!-- Written by docs/generate.py (`make docs`) from the engine's list of quantities. -->",
        "# Result reference",
        "",
        _wrapped(
            "A result has a row per grid point, flow and run (`result.rows`, `--csv`, `--parquet`, `rows` of `--json`). "
            "What cannot be known is null: `None` in Python, empty in CSV, – in tables."
        ),
        "",
        "## Which row",
        "",
        "| column | meaning |",
        "|---|---|",
        *(f"| {name if name.startswith('*') else f'`{name}`'} | {meaning} |" for name, meaning in ROW_KEYS),
        "",
        "## What was measured",
        "",
        "| column | unit | meaning | null if |",
        "|---|---|---|---|",
    ]
    for name, unit, meaning, unknown in _core.quantities():
        lines.append(f"| `{name}` | {unit or '1'} | {meaning} | {unknown or 'never'} |")
    lines += [
        "",
        "## Rows of paths",
        "",
        _wrapped(
            "A bundle of IP paths (`[link.paths]`) has a row for each path behind that of `all`: `flow` is `HOP.paths.NAME`, "
            "`transport` is `path`. What is not below is null there. Counts begin at the end of the warm-up."
        ),
        "",
        "| column | meaning in the row of a path |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in OF_PATHS),
        "",
        "## The summary",
        "",
        _wrapped(
            "`result.summary()` and `summary` of `--json` have an entry per grid point and flow: the keys of a row less "
            '`run`, `seed`, `status` and `reason`, the number of `runs`, and each quantity as `{"mean": x, "ci95": '
            "half_width}`. The mean is over the runs in which the quantity is known; the half-width is that of the 95 % "
            "interval by Student's t, null for a single run. Where `precision.level` is not 0.95, each quantity has also "
            "`half_width`, that of the interval at this level, which the table, the figures and the report show. "
            "Stalled runs count in the means like all others."
        ),
        "",
    ]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 128, break_on_hyphens=False)
