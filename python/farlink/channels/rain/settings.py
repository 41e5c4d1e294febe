"""Links under rain as named parameters, for commands and names of synthetic traces."""

from __future__ import annotations

import math
from collections.abc import Mapping

from farlink.channels.parameter import Parameter, Value, read_value
from farlink.channels.rain.budget import MEDIUM_TEMPERATURE_K, ClearSky, LinkBudget
from farlink.channels.rain.prediction import SlantPath
from farlink.errors import TraceError

_P = Parameter
_NONE = math.nan

LINK: dict[str, Parameter] = {
    "clear_sky_dbhz": _P(_NONE, "C/N0 without rain; without it a link budget is needed", -50.0, 200.0),
    "eirp_dbw": _P(_NONE, "link budget: radiated power towards the receiver", -200.0, 200.0),
    "g_over_t_dbk": _P(_NONE, "link budget: G/T of the receiver in clear sky", -100.0, 100.0),
    "range_m": _P(_NONE, "link budget: distance", 1e4, 1e12),
    "gas_loss_db": _P(0.0, "link budget: attenuation by gases", 0.0, 100.0),
    "other_loss_db": _P(0.0, "link budget: what else is lost, always", 0.0, 100.0),
    "system_temperature_k": _P(
        0.0, "noise temperature in clear sky of a receiver on the ground, which rain raises; 0: it does not", 0.0, 1e5
    ),
    "medium_temperature_k": _P(MEDIUM_TEMPERATURE_K, "mean radiating temperature of the rain", 200.0, 320.0),
}
"""Conversion of an attenuation into C/N0."""

PATH: dict[str, Parameter] = {
    "latitude_deg": _P(_NONE, "latitude of the station, north; needed", -90.0, 90.0),
    "longitude_deg": _P(_NONE, "longitude of the station, east; needed", -180.0, 360.0),
    "elevation_deg": _P(_NONE, "elevation of the satellite; needed", 5.0, 90.0),
    "frequency_hz": _P(_NONE, "carrier; needed", 1e9, 55e9),
    "height_m": _P(_NONE, "height of the station above the sea; without it that of the map", -500.0, 9000.0),
    "tilt_deg": _P(45.0, "polarisation: 0 horizontal, 90 vertical, 45 circular", 0.0, 90.0),
}
"""Where the path is."""


def read_values(overrides: Mapping[str, object], table: Mapping[str, Parameter]) -> dict[str, Value]:
    """All parameters of a table: those given, else the defaults.

    Raises
    ------
    TraceError
        If a name is unknown or a value not allowed.
    """
    values = {name: known.default for name, known in table.items()}
    return {**values, **{name: read_value(name, value, table, "rain") for name, value in overrides.items()}}


def given(values: Mapping[str, Value]) -> dict[str, Value]:
    """Parameters that have a value, by name."""
    return {name: values[name] for name in sorted(values) if not _is_none(values[name])}


def path_of(values: Mapping[str, Value]) -> SlantPath:
    """The path that parameters describe.

    Raises
    ------
    TraceError
        If one is missing.
    """
    for name in ("latitude_deg", "longitude_deg", "elevation_deg", "frequency_hz"):
        if _is_none(values[name]):
            raise TraceError(f"{name} is not given", f"rain needs {PATH[name].meaning.removesuffix('; needed')}: {name}=...")
    height_m = None if _is_none(values["height_m"]) else float(values["height_m"])
    place = {name: float(values[name]) for name in PATH if name != "height_m"}
    return SlantPath(**place, height_m=height_m)


def link_of(values: Mapping[str, Value]) -> ClearSky:
    """The link without rain that parameters describe.

    Raises
    ------
    TraceError
        If neither the C/N0 in clear sky nor a link budget is given, or both are.
    """
    clear_dbhz = float(values["clear_sky_dbhz"])
    budgeted = [name for name in ("eirp_dbw", "g_over_t_dbk", "range_m") if not _is_none(values[name])]
    if math.isnan(clear_dbhz):
        if not budgeted:
            raise TraceError(
                "no C/N0 is given", "give clear_sky_dbhz=..., or a link budget: eirp_dbw, g_over_t_dbk, range_m, frequency_hz"
            )
        names = (*("eirp_dbw", "g_over_t_dbk", "frequency_hz", "range_m"), "gas_loss_db", "other_loss_db")
        clear_dbhz = LinkBudget(**{name: float(values[name]) for name in names}).clear_sky_dbhz
    elif budgeted:
        raise TraceError(f"clear_sky_dbhz and {budgeted[0]} are both given", "leave one out: the budget gives C/N0 too")
    system_k = float(values["system_temperature_k"])
    return ClearSky(
        clear_dbhz,
        system_k if system_k > 0 else None,
        float(values["gas_loss_db"]),
        float(values["medium_temperature_k"]),
    )


def _is_none(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)
