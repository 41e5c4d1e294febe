"""`farlink sweep`: studies in a folder, which outlive processes and machines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farlink.cli.messages import data, labelled, note, user_errors
from farlink.cli.progress import progress_bar
from farlink.cli.run_by_default import RunByDefault

if TYPE_CHECKING:
    from farlink.scenario import Scenario
    from farlink.study.progress import Status

EXAMPLES = """
[bold]Examples[/bold]

farlink sweep study.toml -o out

farlink sweep status out

farlink sweep result out --parquet rows.parquet --report study.html

farlink sweep indices out --quantity goodput_bps

farlink sweep study.toml -o /shared/out --shard 0/4

farlink sweep study.toml -o /shared/out --executor tcp://host:8786

farlink sweep script study.toml -o /shared/out --jobs 100 > job.sh
"""


app = typer.Typer(
    epilog=EXAMPLES,
    cls=RunByDefault,
    no_args_is_help=True,
    help="Run a study in a folder: units of about a second, resumed after any end, on one machine or many.",
)

Study = Annotated[
    Path, typer.Argument(metavar="STUDY", help=r"Scenario file (TOML) with \[grid] or \[sample].", show_default=False)
]
Folder = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIR", help="Folder of the study; what is done there stays.", show_default=False),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Set a key, as farlink run does. Repeatable.")
]
EngineNames = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME[,NAME...]", help="Engines: packet,fluid,model.", show_default="the study's"),
]
Runs = Annotated[int | None, typer.Option(help="Runs per grid point.", show_default="the study's")]
Seed = Annotated[int | None, typer.Option(help="Seed of every random stream.", show_default="the study's")]
Opened = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.", show_default=False)]


@app.command(epilog=EXAMPLES)
def run(
    study: Study,
    output: Folder,
    set_: Set = None,
    engine: EngineNames = None,
    runs: Runs = None,
    seed: Seed = None,
    workers: Annotated[
        int | None, typer.Option(help="Worker processes, of one thread each.", show_default="every core")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Do part I of N, counted from 0; others do theirs over the same DIR.")
    ] = None,
    as_: Annotated[
        Path | None,
        typer.Option(
            "--as", metavar="DIR2", help="Take DIR for that of another study: work in DIR2, with what of DIR still holds."
        ),
    ] = None,
    executor: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Let the workers of a Dask scheduler do it, such as tcp://host:8786.")
    ] = None,
) -> None:
    """Compute what of STUDY has no file in DIR yet. Killed at any moment, the same command goes on. `run` may be left out."""
    with user_errors():
        from farlink.study.coordinate import Shard
        from farlink.study.drive import work
        from farlink.study.opened import OpenedStudy
        from farlink.study.store import Store

        part = None if shard is None else Shard.parse(shard)
        if executor is not None and workers is not None:
            _refuse(
                "--workers and --executor exclude each other",
                "start workers beside the scheduler: dask worker ADDRESS",
            )
        folder, earlier = (output, None) if as_ is None else (as_, Store(output))
        prepared, drawn = _prepared(study, set_, engine, runs, seed)
        with progress_bar(f"{prepared.title}: points", "points") as progress:
            opened = OpenedStudy.begun(prepared, folder, progress=progress, drawn=drawn, earlier=earlier)
        with progress_bar(prepared.title, "units") as progress:
            try:
                outcome = work(
                    opened,
                    workers=workers,
                    shard=part,
                    earlier=earlier,
                    scheduler=executor,
                    tell=note,
                    progress=progress,
                )
            except KeyboardInterrupt:
                note("interrupted: what is done stays; the same command goes on")
                raise typer.Exit(130) from None
        note(f"{outcome.executed} units executed, {outcome.there} were there, {outcome.set_aside} set aside")
        note(_next_step(opened.status(), folder, part is not None))
        if outcome.set_aside:
            raise typer.Exit(1)


@app.command()
def status(folder: Opened) -> None:
    """Say how far the study in DIR is; also while it runs."""
    with user_errors():
        from farlink import study

        found = study.open(folder).status()
        data(labelled(_lines(found)))
        for failure in found.failures:
            note(_set_aside(failure))


@app.command()
def result(
    folder: Opened,
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the result as JSON; - is standard output.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the rows as CSV; - is standard output.")] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the rows as Parquet.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a report with figures, in one file.")] = None,
) -> None:
    """Print what the study in DIR has so far, in the order of the study; also while it runs."""
    with user_errors():
        from farlink import study
        from farlink.cli.results import print_flows, print_notes, print_table, write_rows
        from farlink.destinations import check_outputs

        check_outputs(
            [("--json", json, "JSON"), ("--csv", csv, "CSV"), ("--parquet", parquet, "Parquet"), ("--report", report, "report")]
        )
        found = study.open(folder).result()
        print_notes(found)
        if found.interrupted:
            note(f"not finished: {found.finished_runs} runs so far")
        if "-" not in (json, csv):
            print_table(found)
        print_flows(found)
        write_rows(found, json=json, csv=csv, parquet=parquet)
        if report is not None:
            from farlink.report import write_report

            write_report(found, report, command=f"farlink sweep result {folder}")
            note(f"report: {report}")


@app.command()
def indices(
    folder: Opened,
    quantity: Annotated[str, typer.Option(metavar="NAME", help="Quantity of the summary.")] = "goodput_bps",
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of which engine.", show_default="the study's first")
    ] = None,
    flow: Annotated[str, typer.Option(metavar="NAME", help="Of which flow.")] = "all",
) -> None:
    """Say how much each parameter that was drawn contributes to the variance of a quantity: Sobol's indices."""
    with user_errors():
        from farlink import study
        from farlink.text_table import table

        found = study.open(folder).indices(quantity, engine=engine, flow=flow)
        has_total = found[0].total is not None
        head = ("parameter", "first-order", "±", *(("total", "±") if has_total else ()))
        rows = []
        for one in found:
            numbers = (one.first, one.first_ci95, *((one.total, one.total_ci95) if has_total else ()))
            rows.append((one.path, *(f"{number:.3f}" for number in numbers)))
        data(table(head, rows) + "\n")
        if not has_total:
            note('total indices: kind = "saltelli" in [sample]')


@app.command()
def script(
    study: Study,
    output: Folder,
    jobs: Annotated[int, typer.Option(min=1, max=100_000, help="Tasks of the array.")] = 10,
    cores: Annotated[int, typer.Option(min=1, max=1024, help="Cores of a task.")] = 1,
    hours: Annotated[float, typer.Option(min=0.02, max=1000, help="Time limit of a task, in hours.")] = 1.0,
    slurm: Annotated[bool, typer.Option("--slurm", help="For SLURM; there is no other kind.")] = True,  # noqa: ARG001
) -> None:
    """Print a job for SLURM's `sbatch` that computes STUDY as an array."""
    with user_errors():
        from farlink.study import slurm as job

        _prepared(study, None, None, None, None)
        data(job.script(study, output, jobs=jobs, cores=cores, hours=hours, options=[]))


def _prepared(
    study: Path, set_: list[str] | None, engine: str | None, runs: int | None, seed: int | None
) -> tuple[Scenario, object]:
    """The scenario, with its sample drawn, and the table of the sample."""
    from farlink import engines
    from farlink.scenario import load
    from farlink.study.sample import drawn

    loaded = load(study)
    scenario = drawn(loaded.data, loaded)
    return engines.prepare(scenario, set=set_ or [], engine=engine, runs=runs, seed=seed), loaded.data.get("sample")


def _next_step(found: Status, folder: Path, is_part: bool) -> str:
    """Advice when a coordinator has ended: a part may end long before the others."""
    missing = found.units - found.done - len(found.failures)
    if is_part and missing > 0:
        more = ", and what precision asks for" if found.is_open else ""
        return f"{missing} of {found.units} units{more} are missing, of other parts: farlink sweep status {folder}"
    return f"the result: farlink sweep result {folder}"


def _set_aside(failure: Mapping[str, Any]) -> str:
    place = ", ".join(str(failure.get(key)) for key in ("engine", "runs"))
    return f"set aside: point {failure.get('point')}, {place}: {failure.get('error')}"


def _lines(found: Status) -> list[tuple[str, str]]:
    known = "or more, as precision asks for" if found.is_open else ""
    lines = [("Done", f"{found.done} of {found.units} units {known}".rstrip())]
    if found.per_s > 0:
        lines.append(("Rate", f"{found.per_s:.3g} units per second, {found.workers} workers so far"))
    if found.left_s is not None and found.done < found.units:
        lines.append(("Time left", _duration(found.left_s)))
    if found.last_s is not None:
        lines.append(("Last unit", f"{_duration(found.last_s)} ago"))
    return [*lines, ("Set aside", str(len(found.failures)))]


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 6000 else f"{seconds / 3600:.3g} h"


def _refuse(message: str, remedy: str) -> None:
    from farlink.errors import StudyError

    raise StudyError(message, remedy)
