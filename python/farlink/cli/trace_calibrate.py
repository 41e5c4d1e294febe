"""`farlink trace calibrate`: a received power scaled to a bit error rate, after cutting, marking blockages, resampling."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.power_options import DEFAULT_RECEIVER, ReceiverName, intervals, power_trace
from farlink.cli.progress import busy
from farlink.cli.trace_summary import summary_lines

EXAMPLES = """
[bold]Examples[/bold]

farlink trace calibrate measured.npz -o link.npz --ber 1e-6

farlink trace calibrate vehicle.npz -o link.npz --ber 1e-6 --find-blockages --block 31-33.5

farlink trace calibrate pass.npz -o falling.npz --from-s 10 --to-s 100 --reverse --sample-rate-hz 5000 --ber 1e-6
"""


def calibrate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Trace of received power, or a file that is imported without options.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Trace to write, .npz or .parquet.")],
    ber: Annotated[
        float | None,
        typer.Option(
            metavar="BER",
            help="Long-term bit error rate to scale the power to; without it the power stays.",
            show_default=False,
        ),
    ] = None,
    receiver: ReceiverName = DEFAULT_RECEIVER,
    from_s: Annotated[float | None, typer.Option(metavar="S", help="Leave out what comes before.", show_default=False)] = None,
    to_s: Annotated[float | None, typer.Option(metavar="S", help="Leave out what comes after.", show_default=False)] = None,
    find_blockages: Annotated[
        bool, typer.Option("--find-blockages", help="Mark what lies long and far below the usual power as blocked.")
    ] = False,
    below_db: Annotated[float, typer.Option(metavar="DB", help="So far below the running median a blockage lies.")] = -13.0,
    min_length_s: Annotated[float, typer.Option(metavar="S", help="Shortest blockage.")] = 0.05,
    window_s: Annotated[float, typer.Option(metavar="S", help="Window of the running median.")] = 20.0,
    edge_s: Annotated[float, typer.Option(metavar="S", help="Widen each blockage that is found by this.")] = 0.0,
    block: Annotated[
        list[str] | None,
        typer.Option(metavar="FROM-TO", help="Mark an interval as blocked, in s of FILE; may be repeated.", show_default=False),
    ] = None,
    sample_rate_hz: Annotated[
        float | None, typer.Option(metavar="HZ", help="Resample; a whole fraction of the rate averages.", show_default=False)
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Turn time round: a rising pass becomes a falling one.")] = False,
) -> None:
    """Scale a received power so that its long-term bit error rate is BER.

    In this order: mark blockages, cut, resample, reverse, scale. Blocked samples do not count, and are played nevertheless.
    """
    with user_errors():
        from farlink.channels import blockages, cache, power
        from farlink.channels.receiver import Receiver
        from farlink.channels.trace_file import write
        from farlink.destinations import check_outputs
        from farlink.errors import FarlinkError, OutputError

        if output.exists() and output.resolve() == file.resolve():
            raise OutputError(f"{output} is the file to calibrate", "choose another name with -o")
        check_outputs([("-o", output, "trace")])
        model = Receiver.parse(receiver)
        spans = intervals("--block", block or [])
        if ber is None and not (find_blockages or spans or reverse) and (from_s, to_s, sample_rate_hz) == (None, None, None):
            raise FarlinkError("nothing to do", "give --ber, for example --ber 1e-6; or cut, resample or reverse")
        with busy(f"reading {file.name}") as say:
            trace = power_trace(cache.import_file(file, kinds=["power"]), str(file))
            rate_hz, samples = power.sample_rate_hz(trace), trace["power_w"]
            say("looking for blockages" if find_blockages else "cutting")
            if find_blockages:
                found = blockages.find(
                    samples, rate_hz, below_db=below_db, min_length_s=min_length_s, window_s=window_s, edge_s=edge_s
                )
                trace = power.with_blocked(trace, found)
            if spans:
                trace = power.with_blocked(trace, blockages.mark(samples.size, rate_hz, spans))
            if from_s is not None or to_s is not None:
                trace = power.cut(trace, from_s, to_s)
            if sample_rate_hz is not None:
                trace = power.resample(trace, sample_rate_hz)
            if reverse:
                trace = power.reverse(trace)
            if ber is not None:
                say("scaling")
                trace = power.calibrate(trace, model, ber)
            say("summing up")
            lines = summary_lines(trace, model)
            write(trace, output)
        data(lines)
        note(f"Trace written to {output}")
