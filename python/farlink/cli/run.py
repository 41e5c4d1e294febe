"""`farlink run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.scenario import Scenario

EXAMPLES = """
[bold]Examples[/bold]

farlink scenarios copy

farlink run scenarios/geo-tcp.toml

farlink run scenarios/geo-tcp.toml --runs 50 --report geo.html --csv rows.csv

farlink run scenarios/geo-tcp.toml --set link.channel.ber=1e-6

farlink run scenarios/geo-tcp.toml --set 'grid.link.channel.ber=[1e-7, 2e-7]'

farlink run scenarios/closed-forms-geo.toml --engine model,fluid,packet --report geo.html

farlink run scenarios/geo-tcp.toml --json - | jq '.summary[0].goodput_bps'

farlink run scenarios/geo-tcp.toml --pcap captures --point 11
"""


def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).", show_default=False)],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Set a key, for example link.channel.ber=1e-7. A key of the grid is then fixed. Repeatable.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME...]",
            help="Engines to run with, in one table: model,fluid,packet.",
            show_default="the scenario's",
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs per grid point.", show_default="the scenario's")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random stream.", show_default="the scenario's")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads to run on.", show_default="every core")] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the result as JSON; - is standard output.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the rows as CSV; - is standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the rows as Parquet.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a report with figures, in one file that needs no network.")
    ] = None,
    pcap: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the packets of the first run at each --point as pcapng.")
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write cwnd, ssthresh, RTT and more over time, as CSV, or Parquet by its name."),
    ] = None,
    point: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|all", help="Grid points for --pcap and --series, counted from 0. Repeatable.", show_default="0"
        ),
    ] = None,
) -> None:
    """Run SCENARIO and print what each flow achieves, with intervals over the runs: 95 %, or precision.level."""
    with user_errors():
        from farlink import engines
        from farlink.cli.results import print_flows, print_notes, print_table, write_rows
        from farlink.destinations import check_outputs
        from farlink.intervals import UNLESS_NAMED, levels_of
        from farlink.output import check_directory

        check_outputs(
            [
                ("--json", json, "JSON"),
                ("--csv", csv, "CSV"),
                ("--parquet", parquet, "Parquet"),
                ("--report", report, "report"),
                ("--series", series, "series"),
            ],
            {"the scenario": scenario},
        )
        if pcap is not None:
            check_directory(pcap)
        if point and not (pcap or series):
            _refuse("--point chooses what to capture, but nothing is", "add --pcap DIR or --series FILE")
        prepared = engines.prepare(scenario, set=set_ or [], engine=engine, runs=runs, seed=seed)
        traced = _points(point or ["0"], prepared) if pcap or series else []
        with progress_bar(prepared.title) as progress:
            # A million rows take a lot of memory; the summary, the table and the report need none.
            rows = json is not None or csv is not None or parquet is not None
            # At another level than that of the core's intervals it counts in how many runs a quantity is known.
            rows = rows or any(level != UNLESS_NAMED for level in levels_of(prepared.data, prepared.points()))
            result = engines.run(
                prepared,
                threads=threads,
                progress=progress,
                announce=lambda text: note(f"note: {prepared.in_its_words(text)}"),
                rows=rows,
            )

        print_notes(result)
        if result.interrupted:
            note(f"{'ended early' if result.failure else 'interrupted'}: {result.finished_runs} finished runs kept")
        if result.interrupted and not result.finished_runs:
            raise typer.Exit(130)
        if "-" not in (json, csv):
            print_table(result)
        print_flows(result)
        write_rows(result, json=json, csv=csv, parquet=parquet)
        _write_traces(prepared, traced, pcap, series)
        if report is not None:
            from farlink.report import write_report

            write_report(result, report, command=_command())
            note(f"report: {report}")
        if result.failure is not None:
            raise result.failure
        if result.interrupted:
            raise typer.Exit(130)


def _write_traces(scenario: Scenario, points: list[int], pcap: Path | None, series: Path | None) -> None:
    from farlink.engines import trace_run
    from farlink.output import whole_file
    from farlink.series import write_series

    runs = []
    for point in points:
        run = trace_run(scenario, point=point, pcap=pcap is not None, quantities=None)
        if pcap is not None and run.pcapng is not None:
            pcap.mkdir(parents=True, exist_ok=True)
            path = pcap / f"point-{point:03}-run-0.pcapng"
            with whole_file(path) as temporary:
                temporary.write_bytes(run.pcapng)
            note(f"pcap: {path} ({run.name})")
        if series is not None:
            runs.append(run)
    if series is not None:
        write_series(runs, series)
        note(f"series: {series} ({'; '.join(run.name for run in runs)})")


def _points(asked: list[str], scenario: Scenario) -> list[int]:
    count = len(scenario.points())
    if "all" in asked:
        return list(range(count))
    for text in asked:
        if not (text.isascii() and text.isdigit()) or int(text) >= count:
            _refuse(f"--point {text}: no such grid point", f"give a number from 0 to {count - 1}, or all")
    return sorted({int(text) for text in asked})


def _refuse(message: str, remedy: str) -> None:
    from farlink.errors import FarlinkError

    raise FarlinkError(message, remedy)


def _command() -> str:
    import shlex

    return shlex.join(["farlink", *sys.argv[1:]])
