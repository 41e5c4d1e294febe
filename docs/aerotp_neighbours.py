"""Write `docs/validation/aerotp-neighbours.md`, AeroTP among neighbours: `make neighbours`. Takes 35 minutes on two idle cores.

Every cell is a run of the packet engine. Finished cells are kept in `out/aerotp-neighbours.jsonl` with the build that
made them, so that the same command goes on where it stopped; cells of another build are made anew. `--quick` measures
the cells of 10 Mb/s.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import page
from aerotp_cells import (
    CONTROLS,
    FRIENDLY,
    LEARNT,
    LOSSES,
    NEIGHBOURS,
    PACKET_BYTES,
    POLICERS,
    QUEUES,
    RATES_BPS,
    ROUND_TRIPS_S,
    SEEDS,
    Cell,
    Cells,
    Flow,
    Place,
    Policer,
    Transport,
    tcp,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Wish:
    """A wanted figure of a cell, with what was measured."""

    wish: str
    cell: str
    value: float
    is_met: bool


def places(*, quick: bool, losses: tuple[float, ...] = LOSSES) -> list[Place]:
    """The cells."""
    rates = (10e6,) if quick else RATES_BPS
    return [Place(*cell) for cell in itertools.product(rates, ROUND_TRIPS_S, (*QUEUES, *POLICERS), losses)]


def changing(*, quick: bool) -> list[Place]:
    """The cells soon after the start and after changes of the rate, which a policer does not change."""
    return [
        replace(place, span=span)
        for place in places(quick=quick)
        for span in ("start", "halved", "doubled")
        if span == "start" or not isinstance(place.queue, Policer)
    ]


def impaired() -> list[Place]:
    """The cells with jitter, marks and a lossy way back, at 10 Mb/s."""
    of_round_trip = []
    for round_trip_s in ROUND_TRIPS_S:
        place = Place(10e6, round_trip_s, 1.0, 0.0)
        lossy = (place, replace(place, loss=0.02))
        of_round_trip += [replace(one, marks=True) for one in lossy]
        of_round_trip += [replace(one, back_loss=0.1) for one in lossy]
        jitters = ("held", "overtaking")
        of_round_trip += [replace(place, queue=queue, jitter=jitter) for queue in (10, 1.0) for jitter in jitters]
    return of_round_trip


def wanted(seeds: tuple[int, ...], *, quick: bool) -> list[Cell]:
    """All runs."""
    runs: list[Cell] = []
    for seed in seeds:
        for place in places(quick=quick):
            runs += [(place, (control,), seed) for control in (*CONTROLS.values(), tcp("cubic"))]
        runs += [(place, (CONTROLS["alone"],), seed) for place in changing(quick=quick)]
        for place in places(quick=quick, losses=(0.0,)):
            runs += [(place, (first, tcp("bbr")), seed) for first in (FRIENDLY, tcp("cubic"))]
            for n, name in NEIGHBOURS:
                firsts = (FRIENDLY, LEARNT, tcp(name), tcp("cubic"))
                runs += [(place, (first, *[tcp(name)] * n), seed) for first in firsts]
            runs += [(place, (FRIENDLY,) * flows, seed) for flows in (2, 5)]
        for place in places(quick=quick, losses=LOSSES[2:]):
            for name in ("cubic", "reno"):
                runs += [(place, (first, tcp(name)), seed) for first in (FRIENDLY, tcp(name), tcp("cubic"))]
        for place in impaired():
            runs += [(place, (control,), seed) for control in (*CONTROLS.values(), tcp("cubic"))]
            runs += [(place, (first, tcp("cubic")), seed) for first in (FRIENDLY, LEARNT, tcp("cubic"))]
    return runs


def swept() -> list[Cell]:
    """The runs whose windows are looked at: all cells with AeroTP at 10 Mb/s, one seed."""
    at_10 = [cell for cell in wanted(SEEDS[:1], quick=True) if cell[1][0]["kind"] == "aerotp"]
    return list({str(cell): cell for cell in at_10}.values())


def alone(cells: Cells, seeds: tuple[int, ...], of_places: list[Place]) -> Iterator[Wish]:
    """Flows that have the path for themselves: goodput over what the path carries, and drops; the worst of the seeds."""
    for place in of_places:
        shares, drops = {}, {}
        for name, control in (*CONTROLS.items(), ("cubic", tcp("cubic"))):
            flows = [cells[place, (control,), seed][0] for seed in seeds]
            shares[name] = min(flow.goodput_bps for flow in flows) / place.usable_bps
            drops[name] = max(flow.dropped for flow in flows)
        is_tiny = isinstance(place.queue, int) and place.queue <= 4
        yield _at_least("alone: goodput 0.90", place, shares["alone"], 0.90)
        yield _at_most(
            "alone: dropped 5 %, 6 % at loss 0.3", place, drops["alone"], 0.06 if place.loss == 0.3 and is_tiny else 0.05
        )
        if place.loss >= 0.02:
            yield _at_least("friendly: goodput 0.85 at loss 0.02 and more", place, shares["friendly"], 0.85)
        elif place.loss == 0:
            is_short = isinstance(place.queue, Policer) or place.packets < 10
            is_roomy = place.queue in (1.0, 2.0) or (place.round_trip_s == 0.05 and not is_short)
            least = 0.95 if is_roomy else 0.80
            yield _at_least(f"friendly: goodput {least:.2f} without loss", place, shares["friendly"], least)
        else:
            least = max(0.3, min(2 * shares["cubic"], 0.85))
            yield _at_least("friendly: goodput 0.3 and twice CUBIC's between", place, shares["friendly"], least)
        yield _at_most("friendly: dropped 3 %", place, drops["friendly"], 0.03)
        least = 0.80 if place.round_trip_s == 0.5 and place.packets < 0.25 * place.rate_bps * 0.5 / 8 / PACKET_BYTES else 0.85
        yield _at_least("learnt: goodput 0.85, 0.80 at 500 ms in short queues", place, shares["learnt"], least)
        yield _at_most("learnt: dropped 3 %", place, drops["learnt"], 0.03)


def changed(cells: Cells, seeds: tuple[int, ...], *, quick: bool) -> Iterator[Wish]:
    """A path of one's own soon after its start and after changes of its rate; the worst of the seeds."""
    for place in changing(quick=quick):
        share = min(cells[place, (CONTROLS["alone"],), seed][0].goodput_bps for seed in seeds) / place.usable_bps
        yield _at_least(f"alone: goodput 0.90, 60 round trips and 20 s later: {place.span}", place, share, 0.90)


def beside(cells: Cells, seeds: tuple[int, ...], of_places: list[Place]) -> Iterator[Wish]:
    """Flows beside neighbours without loss; means of the seeds."""
    for place in (place for place in of_places if place.loss == 0):
        fair_bps = place.usable_bps
        for n, name in NEIGHBOURS:
            where = f"{place}, {n} {name}"
            neighbour = tcp(name)
            usual = _usual(cells, place, neighbour, n, seeds)
            instead = [cells[place, (tcp("cubic"), *[neighbour] * n), seed][0] for seed in seeds]
            cubic_bps = sum(flow.goodput_bps for flow in instead) / len(seeds)
            cubic_drops = max(flow.dropped for flow in instead)
            for control, least in (("friendly", 0.6), ("learnt", 0.2)):
                runs = [cells[place, (CONTROLS[control], *[neighbour] * n), seed] for seed in seeds]
                own_bps = sum(flows[0].goodput_bps for flows in runs) / len(seeds)
                kept = sum(_others(flows) for flows in runs) / len(seeds) / usual
                share = own_bps / (fair_bps / (n + 1))
                most = 0.35 if place.queue == 2 and control == "friendly" else least
                yield _at_least(f"{control}: a neighbour keeps {least}", where, kept, most)
                yield _at_least(f"{control}: own half of an equal share", where, share, 0.5)
                if control == "friendly":
                    limit = max(2.0, 2 * cubic_bps / (fair_bps / (n + 1)))
                    yield _at_most("friendly: own at most twice an equal share, or twice CUBIC's", where, share, limit)
                    drops = max(flows[0].dropped for flows in runs)
                    yield _at_most(
                        "friendly: dropped 2 %, or 1.5 x CUBIC's and 1.5 %", where, drops, max(0.02, 1.5 * cubic_drops + 0.015)
                    )
        own_bps, cubic_bps = (
            sum(cells[place, (first, tcp("bbr")), seed][0].goodput_bps for seed in seeds) for first in (FRIENDLY, tcp("cubic"))
        )
        yield _at_least("friendly: own what CUBIC has beside one BBRv1", place, own_bps / cubic_bps, 1.0)
        for flows in (2, 5):
            jain = sum(_jain(cells[place, (FRIENDLY,) * flows, seed]) for seed in seeds) / len(seeds)
            yield _at_least("friendly: Jain 0.9 among themselves", f"{place}, {flows} AeroTP", jain, 0.9)


def lossy(cells: Cells, seeds: tuple[int, ...], of_places: list[Place]) -> Iterator[Wish]:
    """Flows beside neighbours where the channel loses packets; means of the seeds."""
    for place in (place for place in of_places if place.loss in LOSSES[2:]):
        for name in ("cubic", "reno"):
            where, neighbour = f"{place}, 1 {name}", tcp(name)
            usual = _usual(cells, place, neighbour, 1, seeds)
            runs = [cells[place, (FRIENDLY, neighbour), seed] for seed in seeds]
            kept = sum(_others(flows) for flows in runs) / len(seeds) / usual
            total = sum(sum(flow.goodput_bps for flow in flows) for flows in runs) / len(seeds) / place.usable_bps
            yield _at_least("friendly: a neighbour keeps 0.7 at loss 0.02 and more", where, kept, 0.7)
            yield _at_least("friendly: all together 0.8 at loss 0.02 and more", where, total, 0.8)


def beside_impaired(cells: Cells, seeds: tuple[int, ...]) -> Iterator[Wish]:
    """Beside one CUBIC with jitter, marks or a lossy way back; means of the seeds."""
    for place in impaired():
        where, neighbour = f"{place}, 1 cubic", tcp("cubic")
        usual = _usual(cells, place, neighbour, 1, seeds)
        for control, least in (("friendly", 0.6), ("learnt", 0.2)):
            runs = [cells[place, (CONTROLS[control], neighbour), seed] for seed in seeds]
            own = sum(flows[0].goodput_bps for flows in runs) / len(seeds) / (place.usable_bps / 2)
            yield _at_least(
                f"{control}: a neighbour keeps {least}",
                where,
                sum(_others(flows) for flows in runs) / len(seeds) / usual,
                least,
            )
            yield _at_least(f"{control}: own half of an equal share", where, own, 0.5)


def windows(cells: Cells) -> Iterator[Wish]:
    """The windows of 30 round trips in which most was dropped of a flow of AeroTP: soon after its start, and later."""
    names = {str(control): name for name, control in CONTROLS.items()}
    for cell in swept():
        place, transports, _ = cell
        own = [n for n, transport in enumerate(transports) if transport["kind"] == "aerotp"]
        tcps = [transport["congestion_control"] for transport in transports if transport["kind"] == "tcp"]
        beside = f", beside {len(tcps)} {tcps[0]}" if tcps else f", {len(own)} AeroTP" if len(own) > 1 else ""
        worst = cells.worst(cell)
        halved = ", the rate halved" if place.span == "halved" else ""
        for index, when in enumerate(("begun in round trips 20 to 60", f"begun later{halved}")):
            dropped, from_s = max((worst[n][index].dropped, worst[n][index].from_s) for n in own)
            wish = f"{names[str(transports[0])]}: dropped 10 % in any window {when}"
            yield _at_most(wish, f"{place}{beside}, from {from_s:.4g} s on", dropped, 0.10)


def _others(flows: list[Flow]) -> float:
    return sum(flow.goodput_bps for flow in flows[1:]) / (len(flows) - 1)


def _usual(cells: Cells, place: Place, neighbour: Transport, n: int, seeds: tuple[int, ...]) -> float:
    """What a neighbour has with AeroTP replaced by a copy of itself, or by CUBIC: the lesser."""
    firsts = (neighbour, tcp("cubic"))
    return min(sum(_others(cells[place, (first, *[neighbour] * n), seed]) for seed in seeds) / len(seeds) for first in firsts)


def _jain(flows: list[Flow]) -> float:
    rates = [flow.goodput_bps for flow in flows]
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def _at_least(wish: str, cell: object, value: float, least: float) -> Wish:
    return Wish(wish, str(cell), value, value >= least)


def _at_most(wish: str, cell: object, value: float, most: float) -> Wish:
    return Wish(wish, str(cell), value, value <= most)


def table(measured: Iterator[Wish]) -> str:
    """A row per wish: in how many cells it is met, the mean, and the three worst that miss it."""
    wishes = list(measured)
    rows = ["| wanted | met | mean | worst that miss it |", "|---|---|---|---|"]
    for name in dict.fromkeys(wish.wish for wish in wishes):
        of_name = [wish for wish in wishes if wish.wish == name]
        missed = sorted((wish for wish in of_name if not wish.is_met), key=lambda wish: wish.value, reverse="dropped" in name)
        worst = "; ".join(f"{wish.value:.3g} ({wish.cell})" for wish in missed[:3])
        mean = sum(wish.value for wish in of_name) / len(of_name)
        rows.append(f"| {name} | {len(of_name) - len(missed)} of {len(of_name)} | {mean:.3g} | {worst} |")
    return "\n".join(rows)


def tables(cells: Cells, seeds: tuple[int, ...], *, quick: bool) -> page.Values:
    """The tables of the page."""
    of_queues = [place for place in places(quick=quick) if not isinstance(place.queue, Policer)]
    policed = [place for place in places(quick=quick) if isinstance(place.queue, Policer)]
    return {
        "alone": table(alone(cells, seeds, of_queues)),
        "changed": table(changed(cells, seeds, quick=quick)),
        "alone_policed": table(alone(cells, seeds, policed)),
        "beside": table(beside(cells, seeds, of_queues)),
        "beside_policed": table(beside(cells, seeds, policed)),
        "lossy": table(lossy(cells, seeds, of_queues)),
        "lossy_policed": table(lossy(cells, seeds, policed)),
        "alone_impaired": table(alone(cells, seeds, impaired())),
        "beside_impaired": table(beside_impaired(cells, seeds)),
        "windows": table(windows(cells)),
    }


def picture(cells: Cells, seeds: tuple[int, ...]) -> Figure:
    """Goodput alone over the channel's loss, and what neighbours keep over the queue, at 10 Mb/s."""
    from farlink.plot.style import new_figure

    figure, (own, kept) = new_figure(7.6, rows=2, is_y_shared=False, is_x_shared=False)
    for index, (name, control) in enumerate((*CONTROLS.items(), ("CUBIC", tcp("cubic")))):
        for round_trip_s, style in zip(ROUND_TRIPS_S, ("-", "--"), strict=True):
            of_place = [Place(10e6, round_trip_s, 10, loss) for loss in LOSSES]
            goodput = [
                sum(cells[place, (control,), seed][0].goodput_bps for seed in seeds) / len(seeds) / place.usable_bps
                for place in of_place
            ]
            label = f"{name}, {round_trip_s * 1e3:g} ms"
            own.plot(
                range(len(LOSSES)),
                goodput,
                style,
                marker="o",
                markerfacecolor=f"C{index}" if style == "-" else "white",
                label=label,
                color=f"C{index}",
            )
    own.set_xticks(range(len(LOSSES)), [f"{loss:g}" for loss in LOSSES])
    own.set(
        title="Alone, queue of 10 packets",
        xlabel="loss of the channel",
        ylabel="goodput over what the path carries",
        ylim=(0, 1.05),
    )
    own.legend(fontsize="small")
    for index, (n, name) in enumerate(NEIGHBOURS):
        neighbour = tcp(name)
        shares = []
        for queue in QUEUES:
            place = Place(10e6, 0.05, queue, 0.0)
            usual = _usual(cells, place, neighbour, n, seeds)
            runs = [cells[place, (FRIENDLY, *[neighbour] * n), seed] for seed in seeds]
            shares.append(sum(_others(flows) for flows in runs) / len(seeds) / usual)
        kept.plot(
            range(len(QUEUES)),
            shares,
            "-" if n == 1 else "--",
            marker="o",
            label=f"{n} {name}",
            markerfacecolor=f"C{index % 3}" if n == 1 else "white",
            color=f"C{index % 3}",
        )
    kept.axhline(1, color="0.7", zorder=0)
    labels = [f"{queue}" if isinstance(queue, int) else f"{queue:g} BDP" for queue in QUEUES]
    kept.set_xticks(range(len(QUEUES)), labels)
    kept.set(
        title="Beside one AeroTP, friendly, 50 ms, no loss",
        xlabel="queue, packets",
        ylabel="a neighbour's goodput over its usual one",
        ylim=(0, None),
    )
    kept.legend(fontsize="small")
    return figure


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 Mb/s and one seed; prints the tables and leaves the page")
    parser.add_argument("--seeds", type=int, choices=range(1, len(SEEDS) + 1), default=len(SEEDS), help="runs of each cell")
    arguments = parser.parse_args()
    is_quick = arguments.quick
    seeds = SEEDS[:1] if is_quick else SEEDS[: arguments.seeds]
    cells = Cells()
    cells.measure(wanted(seeds, quick=is_quick), swept())
    of_page = tables(cells, seeds, quick=is_quick)
    if is_quick:
        print("\n\n".join(f"{name}\n\n{text}" for name, text in of_page.items()))
    else:
        page.write("aerotp-neighbours.md", {"aerotp-neighbours": picture(cells, seeds)}, seeds=len(seeds), **of_page)


if __name__ == "__main__":
    main()
