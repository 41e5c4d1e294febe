"""`farlink bundle ppp`: packets of a TUN device over serial lines, as PPP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.host_options import Log
from farlink.cli.messages import data, note, user_errors
from farlink.cli.progress import StatusLine

if TYPE_CHECKING:
    from farlink.net import PppBundleEvent

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle ppp lines.toml

farlink bundle ppp lines.toml --check

farlink bundle ppp lines.toml --pcap lines.pcapng
"""


def ppp(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")],
    check: Annotated[bool, typer.Option("--check", help="Say what CONFIG does, and end.")] = False,
    pcap: Annotated[
        Path | None,
        typer.Option("--pcap", metavar="FILE", help="Write what the lines carry to FILE, for Wireshark.", show_default=False),
    ] = None,
    log: Log = "warn",
    log_json: Annotated[bool, typer.Option("--log-json", help="What is told on stderr is a line of JSON each.")] = False,
) -> None:
    """Carry IP over serial lines as a PPP bundle until SIGTERM or Ctrl-C, without kernel PPP. It needs CAP_NET_ADMIN to start.

    The peer is farlink, Linux' pppd, or another PPP with multilink (RFC 1990). docs/guides/bundle-ppp.md begins with two lines.
    """
    with user_errors():
        from farlink import net

        if check:
            data("".join(f"{line}\n" for line in net.check_ppp_bundle(config)))
            return
        net.show_log(log, as_json=log_json)
        with StatusLine() as status:
            net.run_ppp_bundle(config, lambda event: _tell(event, status), capture=pcap)


def _tell(event: PppBundleEvent, status: StatusLine) -> None:
    if event.kind == "status":
        status.show(event.text)
        return
    status.clear()
    line = "" if event.line is None else f"{event.line}: "
    note(f"{event.kind}: {line}{event.text}")
