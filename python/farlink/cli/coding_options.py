"""Options that describe a link's modulation and coding, shared by several commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Generators = Annotated[
    str,
    typer.Option("--code", metavar="OCTAL", help='Generators of a convolutional code, octal, for example "171,133".'),
]
CodeRate = Annotated[
    str | None,
    typer.Option("--rate", metavar="K/N", help="Rate after puncturing: 2/3, 3/4, 5/6, 7/8.", show_default="unpunctured"),
]
Modulation = Annotated[str, typer.Option(help="bpsk, qpsk, 8psk or 16qam.")]
Decision = Annotated[str, typer.Option(help="What the decoder sees: soft or hard decisions.")]
Seed = Annotated[int, typer.Option(help="Seed of data and noise.")]
Threads = Annotated[int | None, typer.Option(help="Threads to run on.", show_default="every core")]


def coding_table(generators: str, rate: str | None, modulation: str, decision: str) -> dict[str, Any]:
    """What the options say, as the table ``[link.coding]`` of a scenario."""
    code: dict[str, Any] = {"kind": "convolutional", "generators": generators}
    if rate is not None:
        code["rate"] = rate
    return {"modulation": modulation, "decision": decision, "code": code}


def whole(option: str, text: str, least: int, most: int) -> int:
    """A whole number that may be written 1e8.

    Raises
    ------
    FarlinkError
        If it is none, or out of range.

    Examples
    --------
    >>> whole("--bits", "1e8", 1, 10**12)
    100000000
    """
    from farlink.errors import FarlinkError

    try:
        value = float(text.replace("_", ""))
    except ValueError:
        value = float("nan")
    if not least <= value <= most or value != int(value):
        raise FarlinkError(f"{option} {text}: not a whole number from {least} to {most:g}", f"for example: {option} 1e8")
    return int(value)
