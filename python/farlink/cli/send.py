"""`farlink send`: files to a host that runs `farlink receive`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.host_options import PSK_VARIABLE, DamagedLinks, InsecureAnywhere, InsecureOption, Log, PacketBytes, permission
from farlink.cli.keys import Keys
from farlink.cli.messages import data, labelled, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.net import Summary

EXAMPLES = """
[bold]Examples[/bold]

farlink send pictures/ notes.txt 192.0.2.7 --key shore

farlink send image.tar 192.0.2.7:5000 --rate 2e6
"""


def send(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH... HOST", help="Files and folders, then the receiver: HOST or HOST:PORT.")
    ],
    key: Annotated[
        str | None, typer.Option(metavar="KEY|NAME", help="Key or name of the receiver. Default: the only trusted host.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="BIT/S", help="The rate with headers. Default: learnt, safe on a path that others share."),
    ] = None,
    packet_bytes: PacketBytes = 1500,
    damaged_links: DamagedLinks = False,
    insecure: InsecureOption = False,
    insecure_anywhere: InsecureAnywhere = False,
    refuse_special: Annotated[
        bool, typer.Option("--refuse-special", help="Send nothing if there are symbolic links, devices, sockets or pipes.")
    ] = False,
    patience: Annotated[float, typer.Option(metavar="S", help="How long to wait for an answer, and to try again.")] = 60.0,
    log: Log = "warn",
    keys: Keys = None,
) -> None:
    """Send files and folders over a bad path. If it is interrupted, the same command goes on where it stopped.

    The pre-shared key, if there is one, is read from the variable FARLINK_PSK.
    """
    with user_errors():
        from farlink import net
        from farlink.errors import ArgumentError
        from farlink.untrusted import printable

        *files, to = paths
        if not files:
            raise ArgumentError("only one argument is given", "give files or folders, then the receiver")
        net.show_log(log)
        with progress_bar("sending", "bytes") as progress:
            summary = net.send_files(
                files,
                to,
                key=key,
                keys=keys,
                psk=os.environ.get(PSK_VARIABLE),
                rate_bps=rate,
                packet_bytes=packet_bytes,
                damaged_links=damaged_links,
                insecure=permission(insecure, insecure_anywhere),
                refuse_special=refuse_special,
                patience_s=patience,
                progress=progress,
            )
        for path, what in summary.left_out:
            typer.echo(f"left out: {printable(path, 500)} is {what}", err=True)
        data(labelled(summary_lines(summary)))
        report_failures(summary)


def summary_lines(summary: Summary) -> list[tuple[str, str]]:
    """The figures of a transfer."""
    lines = [
        ("Files", f"{summary.placed:,} placed, {summary.already_there:,} already there"),
        ("Content", f"{summary.carried_bytes:,} bytes sent, {summary.resumed_bytes:,} there from before"),
    ]
    if summary.failed_count:
        lines.append(("Failed", f"{summary.failed_count:,}"))
    return lines


def report_failures(summary: Summary) -> None:
    """Name what failed, and exit with 2 if something did."""
    from farlink.untrusted import printable

    for path, reason in summary.failed:
        typer.echo(f"error: {printable(path, 500)}: {printable(reason, 500)}", err=True)
    if summary.failed_count:
        raise typer.Exit(2)
