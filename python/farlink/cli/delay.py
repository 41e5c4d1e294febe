"""`farlink delay`: the propagation delay over a satellite."""

from __future__ import annotations

from typing import Annotated

import typer

from farlink.cli.messages import data, labelled, user_errors
from farlink.cli.power_options import numbers

EXAMPLES = """
[bold]Examples[/bold]

farlink delay --elevation 35,10

farlink delay --at 52.5,13.4 --at 40.7,-74.0 --satellite -15

farlink delay --altitude 8062e3 --elevation 40
"""


def delay(
    elevation: Annotated[
        str | None,
        typer.Option(metavar="DEG[,DEG]", help="Elevation of the satellite at the sender and at the receiver; one for both."),
    ] = None,
    altitude: Annotated[str, typer.Option(metavar="M|geo", help="Altitude of the satellite above the ground.")] = "geo",
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="LAT,LON", help="Place of the sender, then of the receiver, instead of elevations."),
    ] = None,
    satellite: Annotated[
        str | None, typer.Option(metavar="LON", help="Longitude of a geostationary satellite, east positive; with --at.")
    ] = None,
) -> None:
    """Propagation delay from station to station over a satellite, and what a scenario needs of it."""
    with user_errors():
        from farlink.channels import geometry
        from farlink.errors import FarlinkError

        if at and elevation is not None:
            raise FarlinkError("--elevation and --at are both given", "give one of them: places have elevations of their own")
        altitude_m = _altitude_m(altitude)
        if at:
            up, down = _seen(at, satellite, altitude_m)
        else:
            up, down = _elevations(elevation, satellite)
        legs = [geometry.slant_range_m(altitude_m, one) for one in (up, down)]
        one_way_s = geometry.relay_delay_s(altitude_m, up, down)
        lines = [
            ("Altitude", f"{altitude_m / 1e3:,.0f} km, period {geometry.orbital_period_s(altitude_m) / 60:,.1f} min"),
            ("Elevation", f"{up:.1f}° at the sender, {down:.1f}° at the receiver"),
            ("Distance", f"{legs[0] / 1e3:,.0f} km up, {legs[1] / 1e3:,.0f} km down"),
            ("Delay", f"{1e3 * one_way_s:.1f} ms one way, {2e3 * one_way_s:.1f} ms there and back, without processing"),
            ("In a scenario", f"delay_s = {one_way_s:.4f}"),
        ]
        data(labelled(lines))


def _altitude_m(text: str) -> float:
    from farlink.channels.geometry import GEO_ALTITUDE_M
    from farlink.errors import FarlinkError

    try:
        return GEO_ALTITUDE_M if text == "geo" else float(text)
    except ValueError:
        raise FarlinkError(f"--altitude {text}: not a number of m", "write for example 780e3, 8062e3 or geo") from None


def _elevations(elevation: str | None, satellite: str | None) -> tuple[float, float]:
    from farlink.errors import FarlinkError

    if satellite is not None:
        raise FarlinkError("--satellite without a place", "give --at LAT,LON for each station")
    if elevation is None:
        raise FarlinkError("neither --elevation nor --at is given", "give for example --elevation 35,10")
    found = numbers("--elevation", elevation, "35,10")
    if len(found) > 2:
        raise FarlinkError(f"--elevation {elevation}: more than two stations", "give one for both, or one for each")
    return found[0], found[-1]


def _seen(at: list[str], satellite: str | None, altitude_m: float) -> tuple[float, float]:
    """Elevations at places."""
    from farlink.channels import geometry
    from farlink.errors import FarlinkError

    if satellite is None:
        raise FarlinkError("--at without a satellite", "give its longitude, for example --satellite -15")
    if altitude_m != geometry.GEO_ALTITUDE_M:
        message = f"--at with --altitude {altitude_m:g}: only a geostationary satellite stays above one place"
        raise FarlinkError(message, "give --elevation, or leave --altitude out")
    if len(at) > 2:
        raise FarlinkError(f"{len(at)} places", "give --at once for both ends, or once for each")
    (longitude,) = numbers("--satellite", satellite, "-15")[:1]
    found = []
    for text in at:
        place = numbers("--at", text, "52.5,13.4")
        if len(place) != 2:
            raise FarlinkError(f"--at {text}: not a latitude and a longitude", "for example: --at 52.5,13.4")
        degrees = geometry.geostationary_elevation_deg(place[0], place[1], longitude)
        if degrees < 0:
            message = f"--at {text}: a satellite at {longitude:g}° is {-degrees:.1f}° below the horizon"
            raise FarlinkError(message, "choose a satellite nearer to that longitude; beyond 81° of latitude none is seen")
        found.append(degrees)
    return found[0], found[-1]
