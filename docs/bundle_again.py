"""Write `docs/validation/bundle-again.md`: what sending again gains, by what the sender knows (`make papers`)."""

from __future__ import annotations

from itertools import product
from typing import Any

import bundle_studies as studies
import page
from bundle_studies import Data, Runs, gain

from farlink.papers.estimate import Estimate

RUNS = 20
HOURS = 3.0
UP_TIMES_S = (300, 900, 3000)
# What the receiver of RFC 1990 waits where packets are lost; that of Linux has no timer.
PATIENCE_S = studies.PATIENCE_S
MODEM_BYTES = 100_000
# What a scheduler needs to be used with the receivers of this page.
SENDERS: dict[str, Data] = {
    "whole packets": {},
    "fragments, a packet a line": {"packets": "fragmented", "line_packets": 1},
}
RECEIVERS: dict[str, dict[str, Data]] = {
    "farlink": {
        "lose": {"on_drop": "lose", "reorder_timeout_s": PATIENCE_S},
        "requeue": {"on_drop": "requeue"},
    },
    "RFC 1990": {
        "lose": {"on_drop": "lose", "reorder_timeout_s": PATIENCE_S},
        "requeue": {"on_drop": "requeue", "peer": "rfc1990"},
    },
    "Linux": {
        "lose": {"on_drop": "lose", "receiver": "linux"},
        "requeue": {"on_drop": "requeue", "peer": "linux"},
    },
}


def runs_of(bundle: Data, up_s: float, **more: Any) -> Runs:
    """Runs of SACK over the bundle, whose calls last so long in the mean; the same calls whatever else is set."""
    base: Data = {"lines": studies.LINES, "arq": studies.ARQ, "calls": studies.calls(up_s)}
    return studies.measured(studies.scenario(base | bundle | more, runs=RUNS, hours=HOURS))


def table_of_receivers() -> tuple[str, dict[str, str]]:
    """A row for each sender, mean up time and receiver."""
    head = ["sender", "a line drops every", "receiver", "lost", "sent again", "gain", "of the lost packets, still lost"]
    rows, said = [], {}
    for (sender, keys), up_s, (receiver, settings) in product(SENDERS.items(), UP_TIMES_S, RECEIVERS.items()):
        lose, again = (runs_of(keys | settings[on_drop], up_s) for on_drop in ("lose", "requeue"))
        gained = percents(gain(again, lose))
        left = again["loss_fraction"].mean() / lose["loss_fraction"].mean()
        rows.append([sender, f"{up_s / 60:g} min", receiver, rate(lose), rate(again), gained, f"{100 * left:.0f} %"])
        said[f"{sender} {up_s} {receiver}"] = gained
    return page.table(head, rows, "lrlr"), said


def table_of_linux() -> tuple[str, dict[int, str]]:
    """A row for each mean up time: two pppds, and farlink's sender beside a pppd."""
    head = [
        "a line drops every",
        "pppd to pppd",
        "farlink to pppd: lost",
        "told",
        "told, and sent again",
        "gain of sending again",
    ]
    rows, said = [], {}
    for up_s in UP_TIMES_S:
        linux = runs_of({"scheduler": "linux"}, up_s)
        lose, again = (runs_of(RECEIVERS["Linux"][on_drop], up_s) for on_drop in ("lose", "requeue"))
        # A modem that holds everything leaves the near end nothing to send again.
        told = runs_of(RECEIVERS["Linux"]["requeue"], up_s, modem_bytes=MODEM_BYTES)
        said[up_s] = percents(gain(again, told))
        rows.append([f"{up_s / 60:g} min", *map(rate, (linux, lose, told, again)), said[up_s]])
    return page.table(head, rows, "r"), said


def percents(estimate: Estimate) -> str:
    """A relative change."""
    return f"{100 * estimate.mean:+.1f} ± {100 * estimate.half_width:.1f} %"


def rate(runs: Runs) -> str:
    """Goodput in bit/s."""
    mean = runs.mean("goodput_bps")
    return f"{mean.mean:.0f} ± {mean.half_width:.0f}"


def main() -> None:
    """Measure, and write the page."""
    page.start(__doc__ or "")
    receivers, said = table_of_receivers()
    linux, of_linux = table_of_linux()
    page.write(
        "bundle-again.md",
        {},
        receivers=receivers,
        linux=linux,
        runs=RUNS,
        hours=f"{HOURS:g}",
        patience=f"{PATIENCE_S}",
        beside_linux=of_linux[3000],
        beside_linux_often=of_linux[300],
        beside_farlink=said["whole packets 3000 farlink"],
        beside_farlink_often=said["whole packets 300 farlink"],
    )


if __name__ == "__main__":
    main()
