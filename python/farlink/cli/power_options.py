"""Options that commands for received power share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from farlink.channels.trace import Trace

ReceiverName = Annotated[
    str,
    typer.Option(
        "--receiver", metavar="NAME", help="Receiver by name, or P_0 in W, xi_0 and perhaps its rate: 1.35e-9,0.8,622e6."
    ),
]
DEFAULT_RECEIVER = "frm5w621"


def intervals(option: str, texts: list[str]) -> list[tuple[float, float]]:
    """Intervals of time that were written ``FROM-TO``, in s.

    Raises
    ------
    FarlinkError
        If one is not two numbers.

    Examples
    --------
    >>> intervals("--block", ["1.5-2", "10:12"])
    [(1.5, 2.0), (10.0, 12.0)]
    """
    from farlink.errors import FarlinkError

    found = []
    for text in texts:
        start, _, end = text.replace(":", "-").partition("-")
        try:
            found.append((float(start), float(end)))
        except ValueError as error:
            raise FarlinkError(f"{option} {text}: not an interval", f"write it in seconds: {option} 12.5-14") from error
    return found


def numbers(option: str, text: str, example: str) -> list[float]:
    """Numbers with commas between them.

    Raises
    ------
    FarlinkError
        If they are not finite numbers.

    Examples
    --------
    >>> numbers("--threshold-db", "-3,-6", "-3,-6,-10")
    [-3.0, -6.0]
    """
    import math

    from farlink.errors import FarlinkError

    try:
        found = [float(one) for one in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(math.isfinite(one) for one in found):
        raise FarlinkError(f"{option} {text}: not numbers with commas between them", f"for example: {option} {example}")
    return found


def power_trace(trace: Trace, where: str) -> Trace:
    """The trace, if it is one of received power.

    Raises
    ------
    TraceError
        If it is of another kind.
    """
    from farlink.errors import TraceError

    if trace.kind != "power":
        raise TraceError(f"{where}: a {trace.kind} trace, where received power is wanted", "give a record of received power")
    return trace
