"""A measured attenuation as C/N0 of a link to a satellite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from farlink.channels.importers.gaps import filled
from farlink.channels.parameter import Parameter
from farlink.channels.rain.levels import Measured
from farlink.channels.rain.scaling import GroundPath, to_slant_path
from farlink.channels.rain.series import cn0_trace
from farlink.channels.rain.settings import LINK, PATH, given, link_of, path_of, read_values
from farlink.channels.trace import Trace
from farlink.errors import TraceError

_NONE = float("nan")

PARAMETERS: dict[str, Parameter] = {
    **LINK,
    "scale": Parameter(
        "to-path", "bring it to the path that follows; none: it was measured on the link itself", choices=("to-path", "none")
    ),
    **PATH,
    "measured_frequency_hz": Parameter(_NONE, "carrier of the link that measured, where the file does not say", 1e9, 100e9),
    "measured_length_m": Parameter(_NONE, "its length, where the file does not say", 1.0, 1e6),
    "measured_tilt_deg": Parameter(_NONE, "its polarisation, where the file does not say; else vertical", 0.0, 90.0),
}
"""Conversion of a measured attenuation into C/N0."""


def cn0_of_measured(measured: Measured, overrides: Mapping[str, object], *, gaps: str = "refuse", where: str = "") -> Trace:
    """C/N0 of a link in the rain that was measured, a trace of kind ``cn0``.

    Parameters
    ----------
    measured
        The attenuation.
    overrides
        Parameters, see `PARAMETERS`; numbers may be texts.
    gaps
        What becomes of gaps: ``"refuse"``, ``"hold"`` or ``"outage"``, see `farlink.channels.importers.gaps.filled`.
    where
        Name of the file, for messages.

    Raises
    ------
    TraceError
        If a parameter is unknown, missing or not allowed, or there are gaps and the policy is to refuse.
    MissingExtraError
        If it is to be scaled and itur is not installed.
    """
    values = read_values(overrides, PARAMETERS)
    clear_sky = link_of(values)
    series = filled(measured.time_s, measured.attenuation_db, gaps, lost=np.inf, where=where or measured.source)
    attenuation_db = series.values
    notes = [series.note] if series.note else []
    if values["scale"] == "none":
        notes.append("attenuation as measured")
    else:
        known = {"frequency_hz": measured.frequency_hz, "length_m": measured.length_m, "tilt_deg": measured.tilt_deg}
        said = {name: values[f"measured_{name}"] for name in known if f"measured_{name}" in given(values)}
        link = {"tilt_deg": 90.0, **_there(known), **said}
        for name in ("frequency_hz", "length_m"):
            if name not in link:
                raise TraceError(
                    f"the file does not say {PARAMETERS[f'measured_{name}'].meaning.split(',')[0]}",
                    f"give measured_{name}=..., or scale=none if it was measured on the link itself",
                )
        ground = GroundPath(**{name: float(value) for name, value in link.items()})
        attenuation_db = to_slant_path(attenuation_db, ground, path_of(values))
        notes.append(
            f"attenuation of {ground.length_m / 1e3:.3g} km at {ground.frequency_hz / 1e9:.4g} GHz brought to a path at "
            f"{float(values['elevation_deg']):g} degrees and {float(values['frequency_hz']) / 1e9:.4g} GHz: not measured there"
        )
    meta: dict[str, Any] = {
        "title": f"{measured.source}, as C/N0",
        "source": measured.source,
        "notes": "; ".join(notes),
        "parameters": given(values),
    }
    if series.note:
        meta["gaps_s"] = series.gaps_s.tolist()
    return cn0_trace(series.time_s, attenuation_db, clear_sky, duration_s=series.duration_s, meta=meta)


def _there(known: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in known.items() if value is not None}
