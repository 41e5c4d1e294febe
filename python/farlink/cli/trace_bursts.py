"""`farlink trace bursts`: a bit-error trace at a decoder's output, and its bursts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.coding_options import CodeRate, Decision, Generators, Modulation, Seed, Threads, coding_table
from farlink.cli.messages import data, labelled, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.channels.bit_bursts import BitBursts
    from farlink.channels.burst_run import BurstRun

_MOST_BITS = 10**12

EXAMPLES = """
[bold]Examples[/bold]

farlink trace bursts --code "171,133" --ebn0-db 4

farlink trace bursts --code "171,133" --rate 3/4 --ebn0-db 5 --gap 35 -o bursts.npz

farlink trace bursts --code '{ kind = "convolutional", generators = "171,133", decoder = "serial" }' --ebn0-db 4 --bits 1e7
"""


def bursts(
    code: Generators,
    ebn0_db: Annotated[float, typer.Option(metavar="DB", help="Energy per information bit over noise density, in dB.")],
    rate: CodeRate = None,
    modulation: Modulation = "bpsk",
    decision: Decision = "soft",
    bits: Annotated[str, typer.Option(metavar="N", help="Information bits to decode.")] = "1e8",
    gap: Annotated[
        str | None,
        typer.Option(metavar="BITS", help="So many right bits end a burst.", show_default="K - 1; 8 for other codes"),
    ] = None,
    seed: Seed = 1,
    threads: Threads = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Trace to write, .npz or .parquet, for bit-trace.")
    ] = None,
) -> None:
    """Decode random data, print how the wrong bits cluster, and keep them as a trace that a scenario can replay."""
    with user_errors():
        from farlink.channels import burst_run, coding
        from farlink.cli.coding_options import whole
        from farlink.destinations import check_outputs

        check_outputs([("-o", output, "trace")])
        table = coding_table(code, rate, modulation, decision)
        count = whole("--bits", bits, 1, _MOST_BITS)
        gap_bits = None if gap is None else whole("--gap", gap, 1, 10**9)
        with progress_bar(coding.describe(table), "bits") as progress:
            gap_bits = gap_bits or coding.memory_bits(table)
            found = burst_run.run(table, ebn0_db, count, gap_bits, seed=seed, threads=threads, output=output, progress=progress)
        if found.is_interrupted:
            note(f"interrupted: {found.bits:,} decoded bits kept")
        _print(found, is_default=gap is None and table["code"].get("kind") == "convolutional")
        if output is not None:
            note(f"Trace written to {output}")
            if found.trace_bits < found.bits:
                note(
                    f"note: the trace is of the first {found.trace_bits:,} bits; it would have more wrong ones than a trace may"
                )
        if found.is_interrupted:
            raise typer.Exit(130)


def _print(run: BurstRun, *, is_default: bool) -> None:
    found = run.bursts
    rule = f"{found.gap_bits} right bits or more end a burst"
    lines = [
        ("Title", run.title),
        ("Bits", f"{run.bits:,}"),
        ("Wrong bits", f"{run.wrong_bits:,}"),
        ("Bit error rate", f"{found.ber:.3g}"),
        ("Definition", f"{rule} (K - 1)" if is_default else rule),
        ("Bursts", f"{found.bursts:,}"),
        ("Mean length", _with_interval(found)),
        ("Wrong bits per burst", f"{found.errors_mean:.3g}"),
        ("Single wrong bits", f"{100 * found.single:.3g} % of the bursts"),
        ("Longest burst", f"{found.longest_bits} bits"),
        ("Mean distance", f"{found.distance_mean_bits:,.0f} right bits between bursts"),
    ]
    if not found.bursts:
        lines = lines[:6]
    elif math.isnan(found.distance_mean_bits):
        lines = lines[:-1]
    data(labelled(lines))


def _with_interval(found: BitBursts) -> str:
    from farlink.units import Scale

    return f"{Scale(1.0, '').interval(found.length_mean_bits, found.length_ci95_bits)} bits, first to last wrong bit"
