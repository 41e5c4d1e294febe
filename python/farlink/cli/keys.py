"""`farlink keygen`, `farlink pubkey` and `farlink trust`: who this host is, and whose files it receives."""

from __future__ import annotations

from typing import Annotated

import typer

from farlink.cli.messages import data, user_errors

KEYGEN = """
[bold]Examples[/bold]

farlink keygen

farlink keygen --keys /etc/farlink
"""
PUBKEY = """
[bold]Examples[/bold]

farlink pubkey
"""
TRUST = """
[bold]Examples[/bold]

farlink trust hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo= ship

farlink trust

farlink trust --remove ship
"""

Keys = Annotated[
    str | None, typer.Option("--keys", metavar="DIR", help="Folder of the keys of this host. Default: ~/.config/farlink.")
]


def keygen(keys: Keys = None) -> None:
    """Make the key of this host, and print the public one, which its peers have to know."""
    with user_errors():
        from farlink import net

        data(f"{net.generate_key(keys)}\n")


def pubkey(keys: Keys = None) -> None:
    """Print the public key of this host."""
    with user_errors():
        from farlink import net

        data(f"{net.public_key(keys)}\n")


def trust(
    key: Annotated[str | None, typer.Argument(metavar="KEY", help="Public key of the host.")] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A name for it.")] = None,
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Trust this host no more.")] = None,
    keys: Keys = None,
) -> None:
    """Trust a host, whose files are then received; without arguments list the trusted hosts."""
    with user_errors():
        from farlink import net
        from farlink.errors import ArgumentError

        if remove is not None:
            if key is not None:
                raise ArgumentError("--remove and a key are both given", "give one of them")
            if not net.distrust(remove, keys):
                raise ArgumentError(f"no host is called {remove!r}", "farlink trust lists the hosts")
        elif key is None:
            data("".join(f"{public} {known}\n" for known, public in net.trusted(keys).items()))
        elif name is None:
            raise ArgumentError("the host has no name", "give one behind the key, for example ship")
        else:
            net.trust(key, name, keys)
