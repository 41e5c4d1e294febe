"""`farlink trace receivers`: receivers of light, and the power that they need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.power_options import numbers

if TYPE_CHECKING:
    from farlink.channels.receiver import Receiver

EXAMPLES = """
[bold]Examples[/bold]

farlink trace receivers

farlink trace receivers frm5w621 2e-9,0.8 --ber 1e-3,1e-9 --plot sensitivity.png
"""


def receivers(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="By name, or P_0 in W, xi_0 and perhaps its rate: 1.35e-9,0.8,622e6.", show_default="all"
        ),
    ] = None,
    ber: Annotated[str, typer.Option(metavar="BER,...", help="Bit error rates at which to tell the power.")] = "1e-3,1e-6,1e-9",
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="Picture to write: .png, .svg or .pdf.")] = None,
) -> None:
    """Receivers that can be named, their parameters, and the received power that they need for a bit error rate."""
    with user_errors():
        from farlink.channels import receiver as known
        from farlink.destinations import check_outputs
        from farlink.output import whole_file

        rates = numbers("--ber", ber, "1e-3,1e-6")
        check_outputs([("--plot", plot, "picture")])
        chosen = [known.Receiver.parse(name) for name in names] if names else known.receivers()
        data(_table(chosen, rates))
        if plot is not None:
            from farlink.plot.sensitivity import sensitivity

            figure = sensitivity(chosen)
            with whole_file(plot) as temporary:
                figure.savefig(temporary, format=plot.suffix.removeprefix("."), dpi=150)
            note(f"Picture written to {plot}")


def _table(chosen: list[Receiver], rates: list[float]) -> str:
    from farlink.text_table import table
    from farlink.units import show

    powers = [f"at {rate:.0e}".replace("e-0", "e-") for rate in rates]
    rows = [
        (
            receiver.name,
            f"{receiver.characteristic_power_w * 1e9:.4g}",
            f"{receiver.form_factor:.3g}",
            "–" if receiver.rate_bps is None else show(receiver.rate_bps, "rate_bps"),
            "–" if receiver.wavelength_m is None else f"{receiver.wavelength_m * 1e9:.0f} nm",
            *(f"{receiver.sensitivity_dbm(rate):.2f} dBm" for rate in rates),
            receiver.source or "–",
        )
        for receiver in chosen
    ]
    head = ("receiver", "P_0, nW", "xi_0", "rate", "wavelength", *powers, "source")
    return table(head, rows, texts=("source",)) + "\n"
