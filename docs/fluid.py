"""Write `docs/validation/fluid.md` and its picture: `make papers`. Takes some minutes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fluid_closed_forms
import numpy as np
import page

import farlink
from farlink.engines import fluid
from farlink.plot.style import COLOURS, MARKERS, MUTED, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 20260
POINTS = 50
# Number of the same points for the other transports; the transport of the closed forms runs at all points.
OTHER_POINTS = 20
CLOSED = "Reno"
PAYLOAD_BYTES, HEADER_BYTES = 960, 40
# The fluid engine is valid at points where at most this share of losses ends in a timeout.
MOST_TIMEOUTS = 0.01
WITHIN = 0.05
PACKET_PRECISION = {"quantity": "goodput_bps", "ci": 0.01, "level": 0.95, "min_runs": 8, "max_runs": 120}
MOST_PACKETS = 3e5

SACK = {"variant": "sack", "delayed_ack": False}
OTHERS: dict[str, dict[str, Any]] = {
    "SACK, delayed acknowledgements": {"variant": "sack", "delayed_ack": True},
    "NewReno": {"variant": "newreno", "delayed_ack": False},
    "Reno": {"variant": "reno", "delayed_ack": False},
    "RACK": {"variant": "rack", "delayed_ack": False},
    "SACK, CUBIC": {"variant": "sack", "delayed_ack": False, "congestion_control": "cubic"},
}


@dataclass(frozen=True)
class Point:
    """An operating point: segments per second, s, bandwidth-delay products, loss rate, flows."""

    rate: float
    round_trip_s: float
    beta: float
    loss: float
    flows: int

    @property
    def pipe(self) -> float:
        """Segments that the path holds."""
        return self.rate * self.round_trip_s

    @property
    def buffer(self) -> int:
        """Segments that the queue holds."""
        return max(1, round(self.beta * self.pipe))


@dataclass(frozen=True)
class Compared:
    """Results of both engines: fractions of the rate, half-widths at 95 %, timeouts per loss."""

    point: Point
    packet: float
    packet_ci: float
    fluid: float
    fluid_ci: float
    timeouts: float

    @property
    def difference(self) -> float:
        """Fluid over packet, less 1."""
        return self.fluid / self.packet - 1

    @property
    def qualifies(self) -> bool:
        """Whether hardly any loss ends in a timeout."""
        return self.timeouts <= MOST_TIMEOUTS


def random_points(count: int) -> list[Point]:
    """Points at random: logarithms of rate, round trip, buffer and loss rate uniform, as the number of flows."""
    rng = np.random.default_rng(SEED)

    def one() -> Point:
        return Point(
            rate=10 ** rng.uniform(math.log10(50), math.log10(5000)),
            round_trip_s=10 ** rng.uniform(math.log10(0.05), 0),
            beta=10 ** rng.uniform(math.log10(0.2), math.log10(2)),
            loss=10 ** rng.uniform(-5, -2),
            flows=int(rng.integers(1, 21)),
        )

    return [one() for _ in range(count)]


def scenario(point: Point, transport: dict[str, Any]) -> dict[str, Any]:
    """Both engines' scenario. The packet engine's runs are long enough for some cycles of the window."""
    window = min((point.pipe + point.buffer) / point.flows, 2 / math.sqrt(point.loss))
    rounds = max(400.0, 8 * window * (2 if transport["delayed_ack"] else 1))
    duration_s = rounds * (point.round_trip_s + point.buffer / point.rate)
    packet_s = 1 / point.rate
    ack_s = packet_s * HEADER_BYTES / (PAYLOAD_BYTES + HEADER_BYTES)
    return {
        "duration_s": duration_s,
        "precision": {**PACKET_PRECISION, "max_runs": 8 + int(min(112, MOST_PACKETS * 112 / (point.rate * duration_s)))},
        "engines": ["packet"],
        "measure": {"warmup_s": duration_s / 4},
        "link": {
            "rate_bps": point.rate * 8 * (PAYLOAD_BYTES + HEADER_BYTES),
            "delay_s": (point.round_trip_s - packet_s - ack_s) / 2,
            "queue_packets": point.buffer,
            "channel": {"kind": "loss", "loss": point.loss},
        },
        "transport": {
            "tcp": {
                "kind": "tcp",
                "segment_bytes": PAYLOAD_BYTES,
                "header_bytes": HEADER_BYTES,
                "initial_ssthresh_segments": max(2, int(window / 2)),
                **transport,
            }
        },
        "flow": {
            "bulk": {
                "transport": "tcp",
                "count": point.flows,
                "start_spread_s": 5 * point.round_trip_s,
                "traffic": {"kind": "bulk"},
            }
        },
    }


def compare(points: list[Point], transport: dict[str, Any]) -> Iterator[Compared]:
    """Run both engines over points."""
    for point in points:
        data = scenario(point, transport)
        (packet,) = [entry for entry in farlink.run(data).summary() if entry["flow"] == "all"]
        (ours,) = [
            entry
            for entry in farlink.run({**data, "precision": {"quantity": "goodput_bps", "ci": 0.005}}, engine="fluid").summary()
            if entry["flow"] == "all"
        ]
        share = (PAYLOAD_BYTES + HEADER_BYTES) / PAYLOAD_BYTES
        losses = packet["loss_fraction"]["mean"] * packet["sent_bytes"]["mean"] / (PAYLOAD_BYTES + HEADER_BYTES)
        yield Compared(
            point,
            packet["goodput_fraction"]["mean"] * share,
            packet["goodput_fraction"]["ci95"] * share,
            ours["goodput_fraction"]["mean"] * share,
            ours["goodput_fraction"]["ci95"] * share,
            packet["timeouts"]["mean"] / losses if losses else 0.0,
        )


TABLE_1 = ((1e-4, 0.994, 0.994), (1e-3, 0.845, 0.836), (1e-2, 0.248, 0.234), (1e-1, 0.0781, 0.0452))


def main() -> None:
    """Run both engines and write the page."""
    page.start(__doc__)
    points = random_points(POINTS)
    found = {"SACK": list(compare(points, SACK))}
    for name, transport in OTHERS.items():
        found[name] = list(compare(points if name == CLOSED else points[:OTHER_POINTS], transport))
    drawn = {"fluid-against-packets": picture(found), "fluid-closed-forms": fluid_closed_forms.picture(found[CLOSED])}
    page.write("fluid.md", drawn, **page_values(found), **fluid_closed_forms.page_values(found[CLOSED]))


def page_values(found: dict[str, list[Compared]]) -> page.Values:
    """Values of the page, except on closed forms."""
    return {
        "count": POINTS,
        "payload": PAYLOAD_BYTES,
        "header": HEADER_BYTES,
        "repeats": 120,
        "timeouts": MOST_TIMEOUTS,
        "within": WITHIN,
        "summary": "\n".join(summary(found)),
        "table": "\n".join(table(found["SACK"])),
        "celandroni": "\n".join(celandroni()),
    }


def summary(found: dict[str, list[Compared]]) -> Iterator[str]:
    """A row for each transport."""
    yield "| transport | points | qualify | within 5 % | largest difference | mean difference |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, all_points in found.items():
        chosen = [compared.difference for compared in all_points if compared.qualifies]
        within = sum(abs(difference) <= WITHIN for difference in chosen)
        largest = max(chosen, key=abs)
        mean = sum(chosen) / len(chosen)
        yield f"| {name} | {len(all_points)} | {len(chosen)} | {within} | {largest:+.1%} | {mean:+.1%} |"


def table(compared: list[Compared]) -> Iterator[str]:
    """A row for each point."""
    yield "| segments/s | T, s | buffer | q | flows | W | packet | fluid | difference | timeouts per loss |"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for one in compared:
        point = one.point
        window = point.pipe * one.packet / point.flows
        yield (
            f"| {point.rate:.0f} | {point.round_trip_s:.3f} | {point.buffer} | {point.loss:.1e} | {point.flows} | {window:.1f} "
            f"| {one.packet:.4f} ± {one.packet_ci:.4f} | {one.fluid:.4f} ± {one.fluid_ci:.4f} | {one.difference:+.1%} "
            f"| {one.timeouts:.1%}{'' if one.qualifies else ', too many'} |"
        )


def celandroni() -> Iterator[str]:
    """Table I beside ours."""
    rate, round_trip_s, flows = 455.0, 0.5 + 1 / 455, 5
    losses = [loss for loss, _, _ in TABLE_1]
    buffer = 0.8 * rate * round_trip_s
    plain = fluid.goodput(rate, round_trip_s, buffer, losses, flows, precision=0.003, **fluid.TGEP)
    whole = fluid.goodput(rate, round_trip_s, buffer, losses, flows, repair="reno", precision=0.003)
    yield "| q | TGEP, printed | fluid | difference | ns-2 Reno, printed | fluid, timeouts and several losses | difference |"
    yield "|--:|--:|--:|--:|--:|--:|--:|"
    for (loss, tgep, ns2), ours, reno in zip(TABLE_1, plain.utilisation, whole.goodput, strict=True):
        yield f"| {loss:g} | {tgep} | {ours:.4f} | {ours / tgep - 1:+.1%} | {ns2} | {reno:.4f} | {reno / ns2 - 1:+.1%} |"


def picture(found: dict[str, list[Compared]]) -> Figure:
    """Differences against the mean window of a flow."""
    figure, (axes,) = new_figure(4.4)
    for (name, compared), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        for qualifies in (True, False):
            chosen = [one for one in compared if one.qualifies is qualifies]
            axes.plot(
                [one.point.pipe * one.packet / one.point.flows for one in chosen],
                [100 * one.difference for one in chosen],
                marker,
                color=colour,
                fillstyle="full" if qualifies else "none",
                markersize=5,
                label=name if qualifies else None,
            )
    for edge in (WITHIN, -WITHIN):
        axes.axhline(100 * edge, color=MUTED, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("mean window of a flow, segments")
    axes.set_ylabel("goodput of the fluid above that of packets, %")
    legend_above(figure, axes, columns=3)
    return figure


if __name__ == "__main__":
    main()
