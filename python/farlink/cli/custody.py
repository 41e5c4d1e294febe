"""`farlink custody`: streams that gateways take over and pass on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.host_options import PSK_VARIABLE, DamagedLinks, InsecureAnywhere, InsecureOption, Log, PacketBytes, permission
from farlink.cli.keys import Keys
from farlink.cli.messages import data, labelled, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.net import StreamEvent

SEND = """
[bold]Examples[/bold]

farlink custody send image.tar 127.0.0.1 --sink archive --key hub

tar c logs/ | farlink custody send - 192.0.2.7:5000 --sink archive
"""
RECEIVE = """
[bold]Examples[/bold]

farlink custody receive incoming/ --listen 0.0.0.0

farlink custody receive - | tar x
"""

app = typer.Typer(
    no_args_is_help=True,
    help="Hand streams to gateways, which keep them on their disks and pass them on, and receive them at the far end.",
)

Json = Annotated[bool, typer.Option("--json", help="A line of JSON on stdout for what would be text.")]


@app.command(epilog=SEND)
def send(
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="A file, or standard input.")],
    gateway: Annotated[str, typer.Argument(metavar="HOST[:PORT]", help="The gateway that takes the stream over.")],
    sink: Annotated[str, typer.Option(metavar="NAME", help="Where it goes: a sink in the routes of the gateways.")],
    key: Annotated[
        str | None, typer.Option(metavar="KEY|NAME", help="Key or name of the gateway. Default: the only trusted host.")
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Go on with this stream, which was interrupted, and has the same content."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="BIT/S", help="The rate with headers. Default: learnt, safe on a path that others share."),
    ] = None,
    packet_bytes: PacketBytes = 1500,
    damaged_links: DamagedLinks = False,
    insecure: InsecureOption = False,
    insecure_anywhere: InsecureAnywhere = False,
    patience: Annotated[float, typer.Option(metavar="S", help="How long to wait until the gateway keeps more.")] = 300.0,
    as_json: Json = False,
    log: Log = "warn",
    keys: Keys = None,
) -> None:
    """Hand FILE or standard input to a gateway. When the command ends, the gateway has all of it on its disk and passes it on.

    The number of the stream is told on stderr. After an interruption, or a kill, the same command with --stream NUMBER goes on
    where it stopped. The pre-shared key, if there is one, is read from the variable FARLINK_PSK.
    """
    with user_errors(), progress_bar("kept", "bytes") as progress:
        from farlink import net

        net.show_log(log)
        sent = net.send_stream(
            None if source == "-" else source,
            gateway,
            sink=sink,
            key=key,
            stream=stream,
            keys=keys,
            psk=os.environ.get(PSK_VARIABLE),
            rate_bps=rate,
            packet_bytes=packet_bytes,
            damaged_links=damaged_links,
            insecure=permission(insecure, insecure_anywhere),
            patience_s=patience,
            begun=lambda number: note(f"stream {number}"),
            progress=progress,
        )
        if as_json:
            data(json.dumps(asdict(sent)) + "\n")
        else:
            data(labelled([("Stream", sent.stream), ("Kept", f"{sent.bytes:,} bytes, all of it")]))


@app.command(epilog=RECEIVE)
def receive(
    directory: Annotated[
        str, typer.Argument(metavar="DIR|-", help="Where each stream gets a file; - passes the first one to standard output.")
    ],
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS[:PORT]", help="Address of the socket; 0.0.0.0 or [::] is every interface.")
    ] = "127.0.0.1:47470",
    once: Annotated[bool, typer.Option("--once", help="Stop after one whole stream.")] = False,
    patience: Annotated[float, typer.Option(metavar="S", help="How long to wait for a gateway that is silent.")] = 300.0,
    packet_bytes: PacketBytes = 1500,
    damaged_links: DamagedLinks = False,
    insecure: InsecureOption = False,
    insecure_anywhere: InsecureAnywhere = False,
    as_json: Json = False,
    log: Log = "warn",
    keys: Keys = None,
) -> None:
    """Receive the streams that trusted gateways bring, until Ctrl-C. The same command later goes on with what is missing.

    A stream is the file SINK-NUMBER when all of it is there. If gateways have lost bytes of it, the name ends with .damaged,
    zeros stand for them, and SINK-NUMBER.lost lists them. The pre-shared key, if there is one, is read from the variable
    FARLINK_PSK.
    """
    with user_errors():
        from farlink import net
        from farlink.errors import ArgumentError

        is_pipe = directory == "-"
        if is_pipe and as_json:
            raise ArgumentError(
                "standard output cannot have both the stream and lines of JSON", "give a folder, or leave out --json"
            )
        net.show_log(log)
        worst = 0

        def tell(event: StreamEvent) -> None:
            nonlocal worst
            worst = max(worst, 1 if event.lost_bytes else event.exit_code)
            if as_json:
                if event.kind != "kept":
                    data(json.dumps({name: value for name, value in asdict(event).items() if value not in ("", None)}) + "\n")
            elif event.kind == "listening":
                hosts = len(net.trusted(keys))
                note(f"listening on {event.address} for streams of {hosts} trusted host{'' if hosts == 1 else 's'}")
            else:
                _tell(event, is_pipe)

        net.receive_streams(
            None if is_pipe else directory,
            tell,
            listen=listen,
            keys=keys,
            psk=os.environ.get(PSK_VARIABLE),
            packet_bytes=packet_bytes,
            damaged_links=damaged_links,
            insecure=permission(insecure, insecure_anywhere),
            once=once,
            patience_s=patience,
        )
        if worst:
            raise typer.Exit(worst)


def _tell(event: StreamEvent, is_pipe: bool) -> None:
    from farlink.untrusted import printable

    if event.kind == "done":
        lines = [("Stream", event.stream), ("From", event.host), ("Sink", event.sink), ("Content", f"{event.bytes:,} bytes")]
        if event.path is not None:
            lines.append(("File", printable(event.path, 500)))
        if event.lost_bytes:
            lines.append(("Lost", f"{event.lost_bytes:,} bytes, which gateways had and have no more"))
        text = labelled(lines)
        if is_pipe:
            typer.echo(text, err=True, nl=False)
        else:
            data(text)
    elif event.kind in ("waits", "failed"):
        note(f"stream {event.stream}: {printable(event.reason, 500)}")
