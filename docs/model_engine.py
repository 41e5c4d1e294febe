"""Write `docs/validation/model-engine.md` and its picture: `make papers`. Takes some minutes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import model_draws
import numpy as np
import page

import farlink
from farlink.errors import ScenarioError
from farlink.plot.style import COLOURS, MARKERS, MUTED, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 20261
POINTS = 60
RUNS = {"TCP, bulk": 8, "TCP, a file": 60, "ARQ, bulk": 8, "UDP, constant rate": 4, "AeroTP, bulk": 4, "AeroTP, a file": 20}
NEAR, FAR = 0.05, 0.25
# Points of the table of single points.
SHOWN = 30
# Losses and round trips of a link so fast that losses alone limit a flow.
LOSSES, ROUND_TRIPS_S, FAST = (0.003, 0.01, 0.03, 0.06), (0.02, 0.1, 0.5), 5000
BULK, FILE = "TCP, bulk", "TCP, a file"


@dataclass(frozen=True)
class Compared:
    """A scenario and what the engines find: the quantity's means, and the half-width at 95 % of the packet engine's."""

    data: dict[str, Any]
    form: str
    model: float
    packet: float
    packet_ci: float
    fluid: float

    @property
    def difference(self) -> float:
        """Model over packets, less 1."""
        return self.model / self.packet - 1

    @property
    def fluid_difference(self) -> float:
        """Fluid over packets, less 1."""
        return self.fluid / self.packet - 1

    @property
    def transport(self) -> dict[str, Any]:
        """The keys of its transport."""
        keys: dict[str, Any] = self.data["transport"]["t"]
        return keys


def main() -> None:
    """Run all engines and write the page."""
    page.start(__doc__)
    found: dict[str, list[Compared]] = {}
    refusals: dict[str, list[ScenarioError]] = {}
    with page.steps("The engine model", POINTS * len(model_draws.FAMILIES), "points") as told:
        for name, (_, quantity) in model_draws.FAMILIES.items():
            drawn = list(model_draws.drawn(name, POINTS, SEED))
            refusals[name] = [one for one in drawn if isinstance(one, ScenarioError)]
            found[name] = []
            for data in drawn:
                if not isinstance(data, ScenarioError):
                    found[name].append(compared(name, data, quantity))
                    told()
    page.write("model-engine.md", {"model-engine": picture(found)}, **page_values(found, refusals))


def compared(name: str, data: dict[str, Any], quantity: str) -> Compared:
    """What all engines find."""
    engines = ["model", "packet"] + (["fluid"] if name == BULK else [])
    result = farlink.run({**data, "engines": engines, "runs": RUNS[name]})
    entries = {entry["engine"]: entry[quantity] for entry in result.summary() if entry["flow"] == "all"}
    (form,) = {one for engine, one in zip(result.rows["engine"], result.rows["reason"], strict=True) if engine == "model"}
    fluid = entries["fluid"]["mean"] if "fluid" in entries else math.nan
    packet = entries["packet"]
    half_width = math.nan if packet["ci95"] is None else packet["ci95"]
    return Compared(data, form, entries["model"]["mean"], packet["mean"], half_width, fluid)


def page_values(found: dict[str, list[Compared]], refusals: dict[str, list[ScenarioError]]) -> page.Values:
    """Values of the page."""
    bulk = found[BULK]
    return {
        "count": POINTS,
        "shown": SHOWN,
        "delayed": f"{-min(one.difference for one in found[FILE] if not loss(one)):.0%}",
        "near": NEAR,
        "far": FAR,
        "families": "\n".join(families(found, refusals)),
        "forms": "\n".join(by_form(found)),
        "windows": "\n".join(by_window(bulk)),
        "alone": "\n".join(alone()),
        "points": "\n".join(points(bulk[:SHOWN])),
        "refusals": "\n".join(refused(refusals)),
    }


def families(found: dict[str, list[Compared]], refusals: dict[str, list[ScenarioError]]) -> Iterator[str]:
    """A row for each family, and one for the fluid engine."""
    yield "| flows | quantity | refused | compared | within 5 % | within 25 % | median | lowest | highest |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for name, ones in found.items():
        quantity = "time" if "time" in model_draws.FAMILIES[name][1] else "goodput"
        refusals_of = f"{len(refusals[name])} of {len(refusals[name]) + len(ones)}"
        yield f"| {name} | {quantity} | {refusals_of} | {spread([one.difference for one in ones])} |"
        if name == BULK:
            yield f"| the same by the fluid engine | {quantity} | – | {spread([one.fluid_difference for one in ones])} |"


def spread(differences: list[float]) -> str:
    """Cells on differences."""
    values = np.array(differences)
    near, far = (int((np.abs(values) <= bound).sum()) for bound in (NEAR, FAR))
    return f"{len(values)} | {near} | {far} | {np.median(values):+.1%} | {values.min():+.0%} | {values.max():+.0%}"


def by_form(found: dict[str, list[Compared]]) -> Iterator[str]:
    """A row for each form."""
    yield "| form | compared | within 5 % | within 25 % | median | lowest | highest |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for ones in found.values():
        for form in dict.fromkeys(one.form for one in ones):
            yield f"| {form} | {spread([one.difference for one in ones if one.form == form])} |"


def by_window(bulk: list[Compared]) -> Iterator[str]:
    """A row for each version and class of windows, where losses limit the flows."""
    yield "| version | window | compared | within 5 % | within 25 % | median | lowest | highest | fluid: lowest | highest |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for variant in ("reno", "newreno", "sack", "rack"):
        for low, high in ((0.0, 12.0), (12.0, 30.0), (30.0, math.inf)):
            ones = [
                one
                for one in bulk
                if one.transport["variant"] == variant and "Lakshman" not in one.form and low <= window(one) < high
            ]
            if ones:
                words = f"{low:g} to {high:g}" if math.isfinite(high) else f"above {low:g}"
                fluid = [one.fluid_difference for one in ones]
                model = spread([one.difference for one in ones])
                yield f"| {variant} | {words} | {model} | {min(fluid):+.0%} | {max(fluid):+.0%} |"


def alone() -> Iterator[str]:
    """A row for each version: the form over packets where losses alone limit a flow."""
    columns = [(trip_s, loss) for trip_s in ROUND_TRIPS_S for loss in LOSSES]
    yield "| version | acks | " + " | ".join(f"{1000 * trip_s:g} ms, {loss:g}" for trip_s, loss in columns) + " |"
    yield "|---|---|" + "--:|" * len(columns)
    for variant in ("reno", "newreno", "sack", "rack"):
        for is_delayed in (False, True):
            cells = [one_alone(variant, is_delayed, trip_s, loss) for trip_s, loss in columns]
            yield f"| {variant} | {'delayed' if is_delayed else 'each'} | " + " | ".join(cells) + " |"


def one_alone(variant: str, is_delayed: bool, trip_s: float, loss: float) -> str:
    """A cell: closed form over packets, less 1; a dash if it is refused."""
    link = {"rate_bps": FAST * model_draws.PACKET_BITS, "delay_s": (trip_s - 1.04 / FAST) / 2}
    keys = {"kind": "tcp", "segment_bytes": model_draws.PAYLOAD_BYTES, "initial_ssthresh_segments": 10}
    data = {
        "engines": ["model", "packet"],
        "runs": 8,
        "duration_s": 1500 * trip_s + 200,
        "measure": {"warmup_s": 20 * trip_s},
        "link": link | {"channel": {"kind": "loss", "loss": loss}},
        "transport": {"t": {**keys, "variant": variant, "delayed_ack": is_delayed}},
        "flow": {"f": {"transport": "t", "traffic": {"kind": "bulk"}}},
    }
    if model_draws.refused(data):
        return "–"
    found = {entry["engine"]: entry["goodput_bps"]["mean"] for entry in farlink.run(data).summary() if entry["flow"] == "all"}
    return f"{found['model'] / found['packet'] - 1:+.0%}"


def window(one: Compared) -> float:
    """Mean window at a loss, segments."""
    from farlink.models.tcp_latency import padhye

    keys = one.transport
    is_delayed = keys["delayed_ack"] and keys["variant"] != "rack"
    return float(padhye.mean_window(one.data["link"]["channel"]["loss"], segments_per_ack=2 if is_delayed else 1))


def points(bulk: list[Compared]) -> Iterator[str]:
    """A row for each point."""
    yield "| version | acks | segments/s | T, s | queue | q | flows | model | fluid | packet | model | fluid |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for one in bulk:
        link, keys, count = one.data["link"], one.transport, one.data["flow"]["f"]["count"]
        rate = link["rate_bps"] / model_draws.PACKET_BITS
        trip_s = 2 * link["delay_s"] + 1.04 / rate
        share = 1 / (rate * 8 * model_draws.PAYLOAD_BYTES)
        cells = (
            keys["variant"],
            "delayed" if keys["delayed_ack"] else "each",
            f"{rate:.0f}",
            f"{trip_s:.3f}",
            f"{link['queue_packets']}",
            f"{link['channel']['loss']:.1e}",
            f"{count}",
            f"{one.model * share:.3f}",
            f"{one.fluid * share:.3f}",
            f"{one.packet * share:.3f} ± {one.packet_ci * share:.3f}",
            f"{one.difference:+.1%}",
            f"{one.fluid_difference:+.1%}",
        )
        yield f"| {' | '.join(cells)} |"


def refused(refusals: dict[str, list[ScenarioError]]) -> Iterator[str]:
    """A row for each key that was in the way."""
    yield "| flows | key | drawn | for example |"
    yield "|---|---|--:|---|"
    for name, errors in refusals.items():
        keys = Counter(error.message.partition(": ")[0] for error in errors)
        for key, count in keys.most_common():
            example = next(error.message for error in errors if error.message.startswith(f"{key}: "))
            yield f"| {name} | `{key}` | {count} | {example.partition(': ')[2]} |"


def picture(found: dict[str, list[Compared]]) -> Figure:
    """Closed forms over packets, for each family: each point by its loss."""
    figure, (axes,) = new_figure(4.4)
    for (name, ones), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        losses = [max(loss(one), 1e-5) for one in ones]
        axes.plot(losses, [one.model / one.packet for one in ones], marker, color=colour, markersize=5, label=name)
    axes.axhline(1, color=MUTED, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    axes.set_yticks([0.5, 0.7, 1, 1.4, 2], labels=["0.5", "0.7", "1", "1.4", "2"])
    axes.set_xlabel("loss of packets (1e-5 and below at the left edge)")
    axes.set_ylabel("closed form over packets")
    legend_above(figure, axes, columns=3)
    return figure


def loss(one: Compared) -> float:
    """Loss of full packets of a scenario of one hop; of several, that of the channels by loss."""
    hops = [one.data["link"]] if "link" in one.data else list(one.data["hop"].values())
    return float(1 - math.prod(1 - hop["channel"].get("loss", 0.0) for hop in hops))


if __name__ == "__main__":
    main()
