"""Options that describe a link's modulation and coding, shared by several commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Generators = Annotated[
    str,
    typer.Option(
        "--code",
        metavar="CODE",
        help='Generators of a convolutional code, octal, for example "171,133"; uncoded; or a table as a scenario has it, for '
        "example '{ kind = \"reed-solomon\", n = 255, k = 223 }'.",
    ),
]
CodeRate = Annotated[
    str | None,
    typer.Option("--rate", metavar="K/N", help="Rate after puncturing: 2/3, 3/4, 5/6, 7/8.", show_default="unpunctured"),
]
Modulation = Annotated[str, typer.Option(help="bpsk, qpsk, 8psk or 16qam.")]
Decision = Annotated[str, typer.Option(help="What the decoder sees: soft or hard decisions.")]
Seed = Annotated[int, typer.Option(help="Seed of data and noise.")]
Threads = Annotated[int | None, typer.Option(help="Threads to run on.", show_default="every core")]


def coding_table(code: str, rate: str | None, modulation: str, decision: str) -> dict[str, Any]:
    """The options as the table ``[link.coding]`` of a scenario.

    Raises
    ------
    FarlinkError
        If a table for the code is no TOML.

    Examples
    --------
    >>> coding_table("171,133", "3/4", "bpsk", "soft")["code"]
    {'kind': 'convolutional', 'generators': '171,133', 'rate': '3/4'}
    >>> coding_table('{ kind = "reed-solomon", n = 255, k = 223 }', None, "bpsk", "hard")["code"]
    {'kind': 'reed-solomon', 'n': 255, 'k': 223}
    """
    table = _code(code.strip())
    if rate is not None:
        table["rate"] = rate
    return {"modulation": modulation, "decision": decision, "code": table}


def _code(text: str) -> dict[str, Any]:
    if text == "uncoded":
        return {"kind": "uncoded"}
    if not text.startswith("{"):
        return {"kind": "convolutional", "generators": text}
    import json
    import tomllib

    from farlink.errors import FarlinkError

    remedy = """write it as in a scenario: '{ kind = "reed-solomon", n = 255, k = 223 }'"""
    try:
        table = tomllib.loads(f"code = {text}")
    except tomllib.TOMLDecodeError as error:
        raise FarlinkError(f"--code {text}: {error}", remedy) from error
    if len(table) > 1:
        raise FarlinkError(f"--code {text}: there is more behind the table", remedy)
    try:
        json.dumps(table, allow_nan=False)
    except (TypeError, ValueError) as error:
        message = f"--code {text}: it holds something else than finite numbers, text, lists and tables"
        raise FarlinkError(message, remedy) from error
    return dict(table["code"])


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
        largest = f"{most:.0e}".replace("e+0", "e").replace("e+", "e")
        remedy = "leave it out, or write a number such as 500, 1e4 or 2e6"
        raise FarlinkError(f"{option} {text}: not a whole number from {least} to {largest}", remedy)
    return int(value)
