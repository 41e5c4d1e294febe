"""Write the tables of `docs/validation/peers.md`: every cell on both sides.

Usage:  python -m tests.peers.report [TABLE ...]        geo, deep, shared, excused, modern, classes, telemetry, stock, kept; all
                                                        unless named (four minutes)
        python -m tests.peers.report record             measures in ns-3 what the table `modern` lacks (a quarter of an hour)
        python -m tests.peers.report classes-record     measures in ns-3 what `classes` needs (a minute)
        python -m tests.peers.report telemetry-record   measures in ns-3 what `telemetry` and `stock` need (ten minutes)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.peers import classes, modern, ns2, ns3, results, telemetry
from tests.peers.agreement import EXCUSED, agree
from tests.peers.cells import DEEP_CELLS, GEO_CELLS, SHARED_CELLS, Cell
from tests.peers.estimate import Estimate
from tests.peers.ns2 import Setting

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "peers.md"
RELATIVE = 0.01

# Totals that Table I of `celandroni` prints for its own ns-2 runs.
PRINTED_SHARED = {1e-4: 0.994, 1e-3: 0.836, 1e-2: 0.234, 1e-1: 0.0452}


def figure(value: Estimate | None) -> str:
    return f"{value.mean:.4g} ± {value.half_width:.1g}" if value else "–"


def verdict(cell: Cell, ours: Estimate | None, theirs: Estimate) -> str:
    """Difference in percent; a star where the cell is excused."""
    if ours is None:
        return "–"
    mark = "" if agree(ours, theirs) else " **differs**"
    return f"{100 * (ours.mean / theirs.mean - 1):+.1f} %{mark}{' *' if cell.name in EXCUSED else ''}"


def both(cell: Cell) -> tuple[Estimate | None, Estimate]:
    """farlink's estimate (None before farlink is built) and ns-2's, with the peer's settings as excused."""
    try:
        from tests.peers import farlink_side

        ours = farlink_side.goodput(farlink_side.scenario(cell), relative=RELATIVE)
    except ModuleNotFoundError as error:
        if error.name != "farlink":
            raise
        ours = None
    excuse = EXCUSED.get(cell.name)
    theirs = ns2.goodput(excuse.apply(cell.ns2()) if excuse else cell.ns2(), relative=RELATIVE)
    print(f"{cell.name}: farlink {ours}, ns-2 {theirs}", file=sys.stderr)
    return ours, theirs


def geo_table() -> str:
    lines = ["| version | BER | delayed ACK | farlink | ns-2 | difference |", "|---|--:|---|--:|--:|--:|"]
    for cell in GEO_CELLS:
        ours, theirs = both(cell)
        lines.append(
            f"| {cell.variant} | {cell.ber:.0e} | {'on' if cell.delayed_ack else 'off'} | {figure(ours)} "
            f"| {figure(theirs)} | {verdict(cell, ours, theirs)} |"
        )
    return "\n".join(lines)


def deep_table() -> str:
    lines = ["| version | delayed ACK | farlink | ns-2 | difference |", "|---|---|--:|--:|--:|"]
    for cell in DEEP_CELLS:
        ours, theirs = both(cell)
        delayed = "on" if cell.delayed_ack else "off"
        lines.append(f"| {cell.variant} | {delayed} | {figure(ours)} | {figure(theirs)} | {verdict(cell, ours, theirs)} |")
    return "\n".join(lines)


def shared_table() -> str:
    lines = ["| loss | farlink | ns-2 | difference | printed (ns-2 of its time) |", "|--:|--:|--:|--:|--:|"]
    for cell in SHARED_CELLS:
        ours, theirs = both(cell)
        lines.append(
            f"| {cell.loss:.0e} | {figure(ours)} | {figure(theirs)} | {verdict(cell, ours, theirs)} "
            f"| {PRINTED_SHARED[cell.loss]} |"
        )
    return "\n".join(lines)


def excused_table() -> str:
    if not EXCUSED:
        return "No cell is excused."
    lines = ["| cell | why | peer's setting that closes the gap |", "|---|---|---|"]
    lines += [f"| {name} | {excuse.reason} | `{dict(excuse.closing)}` |" for name, excuse in EXCUSED.items()]
    return "\n".join(lines)


def modern_table() -> str:
    """Both sides, ns-3 corrected and as it is shipped; ns-3's figures are the recorded ones."""
    lines = [
        "| path | control | delayed ACK | loss | farlink | ns-3, corrected | difference | ns-3 as shipped | difference |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    record = modern.recorded()
    for cell in modern.MODERN_CELLS:
        ours = modern.farlink_goodput(cell, relative=0.02)
        delayed = "on" if cell.delayed_ack else "off"
        words = [cell.path, cell.control, delayed, f"{cell.loss:.0e}" if cell.loss else "0", figure(ours)]
        for name in (cell.name, f"{cell.name}-shipped"):
            theirs = record[name].estimate if name in record else None
            words.append(figure(theirs))
            if theirs is None:
                words.append("–")
                continue
            mark = "" if agree(ours, theirs, modern.TOLERANCE) else " **differs**"
            star = " *" if cell.name in modern.EXCUSED and name == cell.name else ""
            words.append(f"{100 * (ours.mean / theirs.mean - 1):+.1f} %{mark}{star}")
        print(" ".join(words), file=sys.stderr)
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def telemetry_table() -> str:
    """Both sides at 1 MB, ns-3 corrected and as it is shipped; ns-3's figures are the recorded ones."""
    from farlink.papers.pathapati import peers

    def theirs(transport: str, ber: float, figure: str) -> Estimate:
        peer = peers.ns3(transport, ber)
        return Estimate(peer.figures[figure].mean, peer.figures[figure].half_width, peer.runs)

    lines = [
        "| transport | BER | figure | farlink | ns-3, corrected | difference | ns-3 as shipped |",
        "|---|--:|---|--:|--:|--:|--:|",
    ]
    for name in ("newreno-corrected", "cubic-corrected", "bbr-corrected", "udp"):
        shipped = name.removesuffix("-corrected")
        figure_name, label = (
            ("delivered_bytes", "delivered, bytes") if name == "udp" else ("completion_s", "time to the last byte, s")
        )
        for ber in telemetry.BERS:
            cell = telemetry.TelemetryCell(name, ber)
            ours = telemetry.farlink_figures(cell, telemetry.CLOSE_RUNS)[figure_name]
            corrected = theirs(name, ber, figure_name)
            mark = "" if agree(ours, corrected, telemetry.TOLERANCE) else " **differs**"
            difference = f"{100 * (ours.mean / corrected.mean - 1):+.1f} %{mark}"
            as_shipped = "the same" if name == "udp" else figure(theirs(shipped, ber, figure_name))
            words = [shipped, f"{ber:.1e}" if ber else "0", label, figure(ours), figure(corrected), difference, as_shipped]
            print(" ".join(words), file=sys.stderr)
            lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def classes_table() -> str:
    """Both sides, class by class; ns-3's figures are the recorded ones."""
    lines = [
        "| cell | class | offered, b/s (bytes a packet) | share: farlink | ns-3 | mean delay, s: farlink | ns-3 |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    record = classes.recorded()
    for cell in classes.CELLS:
        ours, theirs = classes.farlink_served(cell), record[cell.name].served
        for index, one in enumerate(cell.classes):
            label = f"{index}, weight {one.weight}" if cell.discipline == "fair" else f"{index}"
            shares = [f"{cell.shares(served)[index]:.4f}" for served in (ours, theirs)]
            delays = [f"{served[index].delay_mean_s:.4f}" for served in (ours, theirs)]
            offered = f"{one.packets_per_s * one.wire_bytes * 8:,.0f} ({one.wire_bytes})"
            lines.append(f"| {' | '.join([cell.name if index == 0 else '', label, offered, *shares, *delays])} |")
    return "\n".join(lines)


def stock_table() -> str:
    """Outcome of ns-3's connections with its own timers and retries."""
    from farlink.papers.pathapati import peers

    lines = ["| segment, bytes | BER | given up | when, s | delivered until then, bytes |", "|--:|--:|--:|--:|--:|"]
    for entry in peers.ns3_stock():
        unfinished = sorted(amount for amount in entry.delivered_bytes if amount < entry.file_bytes)
        when, amount = (
            (f"{values[0]:,.0f} to {values[-1]:,.0f}" if values else "–") for values in (entry.given_up_at_s, unfinished)
        )
        ber = f"{entry.ber:.0e}" if entry.ber else "0"
        lines.append(f"| {entry.segment_bytes} | {ber} | {entry.given_up} of {entry.runs} | {when} | {amount} |")
    return "\n".join(lines)


def kept_table() -> str:
    """Results kept by `make peers`, test by test."""
    lines = [
        "| test | peer | cells | passed | farlink over the peer, % | when | commit | hours |",
        "|---|---|--:|--:|---|---|---|--:|",
    ]
    groups: dict[tuple[str, str], list[results.Result]] = {}
    for result in results.newest(results.read()).values():
        groups.setdefault((result.cell.partition("[")[0], result.peer), []).append(result)
    for (test, peer), group in sorted(groups.items()):
        differences = sorted(100 * one.difference for one in group if one.difference is not None)
        spread = f"{differences[0]:+.1f} to {differences[-1]:+.1f}" if differences else "–"
        passed = sum(one.outcome == "passed" for one in group)
        days, commits = sorted({one.date for one in group}), sorted({one.commit for one in group})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        hours = sum(one.seconds for one in group) / 3600
        name = test.removeprefix("test_").replace(".py::test_", ": ").replace("_", " ")
        words = [name, peer, str(len(group)), str(passed), spread, when, ", ".join(commits), f"{hours:.2f}"]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def record_telemetry() -> None:
    """Measure in ns-3 all kept results of the path of `pathapati`."""
    with tempfile.TemporaryDirectory() as folder:
        telemetry.record(telemetry.build(Path(folder)))


def record_classes() -> None:
    """Measure in ns-3 the service of each class."""
    with tempfile.TemporaryDirectory() as folder:
        classes.record(classes.build(Path(folder)))


def record_ns3() -> None:
    """Measure in ns-3 what is not on record and keep each result at once; as shipped, ten runs a cell show enough."""
    with tempfile.TemporaryDirectory() as folder:
        program = ns3.build(Path(folder))
        record = dict(modern.recorded())

        def note(name: str, settings: Mapping[str, Setting], measure: Callable[[], Estimate]) -> None:
            if name not in record or record[name].settings != settings:
                record[name] = modern.Recorded(settings, measure())
                print(f"{name}: {record[name].estimate}", file=sys.stderr)
                modern.write_record(record)

        for cell in modern.MODERN_CELLS:
            note(cell.name, modern.ns3_settings(cell), partial(modern.ns3_goodput, program, cell, relative=0.02))
        for cell in modern.MODERN_CELLS:
            shipped = cell.ns3(corrected=False)
            note(f"{cell.name}-shipped", shipped, partial(ns3.goodput, program, shipped, max_runs=10))


TABLES = {
    "geo": geo_table,
    "deep": deep_table,
    "shared": shared_table,
    "excused": excused_table,
    "modern": modern_table,
    "classes": classes_table,
    "telemetry": telemetry_table,
    "stock": stock_table,
    "kept": kept_table,
}
RECORDS = {"record": record_ns3, "classes-record": record_classes, "telemetry-record": record_telemetry}


def main() -> None:
    """Replace the page's tables, or those that are named."""
    names = sys.argv[1:] or list(TABLES)
    if len(names) == 1 and names[0] in RECORDS:
        RECORDS[names[0]]()
        return
    text = PAGE.read_text()
    for name in names:
        table = TABLES[name]
        begin, end = f"<!-- table {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table()}\n{rest[rest.index(end) :]}"
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
