"""`farlink trace packets`: which packets the wrong bits of a trace damage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.trace_summary import summary_lines

_MOST_BYTES = 10**6

EXAMPLES = """
[bold]Examples[/bold]

farlink trace packets bursts.npz --packet-bytes 1040

farlink trace packets bursts.npz --packet-bytes 1040 --corrected-bits 1 -o losses.npz

farlink trace packets bursts.npz --packet-bytes 1040 -o losses.tcl
"""


def packets(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Trace of wrong bits, as farlink trace bursts writes it.")],
    packet_bytes: Annotated[
        str, typer.Option("--packet-bytes", metavar="N", help="Length of a packet on the wire, headers included.")
    ],
    corrected_bits: Annotated[
        str, typer.Option("--corrected-bits", metavar="N", help="Wrong bits that a code around each packet corrects.")
    ] = "0",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="What to write: a trace for packet-trace (.npz, .parquet), 0 or 1 for each packet (.txt), an error model of "
            "ns-2 (.tcl), or the numbers of the lost packets for ns-3 (.list).",
        ),
    ] = None,
) -> None:
    """Map wrong bits to lost packets of one length that follow each other without gaps; for a scenario, ns-2 or ns-3."""
    with user_errors():
        from farlink.channels import packet_errors, trace_file
        from farlink.cli.coding_options import whole
        from farlink.destinations import check_outputs
        from farlink.output import whole_file

        check_outputs([("-o", output, "packet errors")], {"the trace": file})
        length = whole("--packet-bytes", packet_bytes, 1, _MOST_BYTES)
        corrected = whole("--corrected-bits", corrected_bits, 0, 8 * _MOST_BYTES)
        found = packet_errors.packet_errors(trace_file.read(file), length, corrected)
        lists = {".txt": packet_errors.to_flags, ".tcl": packet_errors.to_ns2, ".list": packet_errors.to_ns3}
        if output is not None and output.suffix in lists:
            text = lists[output.suffix](found)
            with whole_file(output) as temporary:
                temporary.write_text(text, encoding="utf-8")
        elif output is not None:
            trace_file.write(found, output)
        data(summary_lines(found))
        if output is not None:
            note(f"Lost packets written to {output}")
