"""`farlink dissector`."""

from __future__ import annotations

from typing import Annotated

import typer

from farlink.cli.messages import data, user_errors

EXAMPLES = """
[bold]Examples[/bold]

farlink run scenario.toml --pcap captures && tshark -X "lua_script:$(farlink dissector)" -r captures/*.pcapng

mkdir -p ~/.local/lib/wireshark/plugins && farlink dissector --text > ~/.local/lib/wireshark/plugins/aerotp.lua
"""


def dissector(
    text: Annotated[bool, typer.Option("--text", help="Print the dissector itself, not where it is.")] = False,
) -> None:
    """Print where the Wireshark dissector of AeroTP is.

    With it, Wireshark and tshark show every field of captures and of AeroTP over UDP, and check both checks.
    """
    with user_errors():
        from farlink.errors import OutputError
        from farlink.wireshark import DISSECTOR

        try:
            content = DISSECTOR.read_text(encoding="utf-8")
        except OSError as error:
            message = f"cannot read {DISSECTOR}: {error.strerror}"
            raise OutputError(message, "install farlink again: the file belongs to it") from error
        data(content if text else f"{DISSECTOR}\n")
