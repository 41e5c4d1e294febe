"""Options of the commands that send to other hosts and receive from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from farlink.net import Insecure

# Not an option, so that it is in no list of processes.
PSK_VARIABLE = "FARLINK_PSK"
PacketBytes = Annotated[
    int,
    typer.Option(metavar="BYTES", help="Longest packet to look for on the path, with all headers: 1200 to 9000."),
]
DamagedLinks = Annotated[
    bool,
    typer.Option("--damaged-links", help="The link delivers damaged packets: no UDP checksum, and parity that corrects them."),
]
Log = Annotated[
    str,
    typer.Option(
        metavar="LEVEL",
        envvar="FARLINK_LOG",
        help="What is told on stderr: error, warn, info, debug, trace, or a part's level: farlink_net::mux=debug.",
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Packets in the clear, if the other side permits it too. Only between programs of this machine.",
    ),
]
InsecureAnywhere = Annotated[
    bool,
    typer.Option(
        "--insecure-anywhere", help="The same between any machines: whoever is on the path reads and changes packets."
    ),
]


def permission(insecure: bool, anywhere: bool) -> Insecure | None:
    """The meaning of the two options together."""
    if anywhere:
        return "anywhere"
    return "loopback" if insecure else None
