"""`farlink bundle carry`: packets of a TUN device over several IP paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.host_options import Log
from farlink.cli.messages import data, note, user_errors

if TYPE_CHECKING:
    from farlink.net import IpBundleEvent

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle carry ship.toml

farlink bundle carry ship.toml --check

farlink bundle carry vps.toml --pcap tun.pcapng

farlink bundle carry ships/*.toml
"""


def carry(
    config: Annotated[
        list[str],
        typer.Argument(metavar="CONFIG...", help="The configuration, a TOML file; one for each peer.", show_default=False),
    ],
    check: Annotated[bool, typer.Option("--check", help="Say what CONFIG does, and end.")] = False,
    pcap: Annotated[
        Path | None,
        typer.Option(
            "--pcap", metavar="FILE", help="Write what the TUN device carries to FILE, for Wireshark.", show_default=False
        ),
    ] = None,
    log: Log = "warn",
    log_json: Annotated[bool, typer.Option("--log-json", help="What is told on stderr is a line of JSON each.")] = False,
) -> None:
    """Carry all IP traffic over several paths at once, sealed, until SIGTERM or Ctrl-C; SIGHUP reloads CONFIG.

    It needs CAP_NET_ADMIN to start.

    The page docs/guides/bundle-ship.md begins with a ship, Starlink, LTE, Iridium and a server.
    """
    with user_errors():
        from farlink import net

        if check:
            data("".join(f"{line}\n" for line in net.check_ip_bundle(config)))
            return
        net.show_log(log, as_json=log_json)
        net.run_ip_bundle(config, _tell, capture=pcap)


def _tell(event: IpBundleEvent) -> None:
    peer = "" if event.peer is None else f"{event.peer}: "
    path = "" if event.path is None else f"{event.path}: "
    note(f"{peer}{event.kind}: {path}{event.text}")
