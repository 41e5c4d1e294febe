"""The parameters of synthetic fading: meaning, default and rule of each."""

from __future__ import annotations

from collections.abc import Mapping

from farlink.channels.parameter import Parameter, Value, read_value
from farlink.channels.synthesis.downlink import LEAST_TAU_S
from farlink.channels.synthesis.marginals import MARGINALS
from farlink.channels.synthesis.process import FIRST_ORDER
from farlink.errors import TraceError

_P = Parameter

PARAMETERS: dict[str, Parameter] = {
    "sample_rate_hz": _P(10_000.0, "samples per second", 100.0, 1e6),
    "mean_power_w": _P(37.2e-9, "mean received power where nothing blocks (37.2 nW: BER 1e-6 of the FRM5W621)", 1e-15, 1.0),
    # Turbulence.
    "marginal": _P("lognormal", "distribution of the power", choices=tuple(MARGINALS)),
    "scintillation_index": _P(
        0.1, "variance of the power over its mean squared, of each transmitter; 0: by elevation (lognormal, weibull)", 0.0, 5.0
    ),
    "alpha": _P(4.5, "shape of the slow factor X (gamma-gamma)", 0.2, 1e4),
    "beta": _P(2.5, "shape of the fast factor Y (gamma-gamma)", 0.2, 1e4),
    "spectrum": _P("butterworth", "spectrum of the fast process", choices=("butterworth", "gaussian")),
    "order": _P(3, "order of the Butterworth spectrum", 2, 20),
    "tau_s": _P(0.005, "time after which the autocorrelation of the fast process is 1/e; 0: by elevation", 0.0, 10.0),
    "tau_factor": _P(1.0, "factor on tau_s by elevation; 0.76 to 1.24 is the range that its table gives", 0.1, 10.0),
    "slow_tau_s": _P(0.04, "the same of the slow process, of Gaussian autocorrelation", 1e-4, 100.0),
    "slow_share": _P(0.0, "part of the variance of the process that is slow (lognormal, weibull)", 0.0, 1.0),
    "transmitters": _P(1, "the power is the mean of so many independent beams", 1, 64),
    "cn2_drift": _P(0.0, "standard deviation of ln Cn2, which drifts slowly", 0.0, 2.0),
    "cn2_drift_tau_s": _P(60.0, "correlation time of that drift", 2.0, 1e5),
    # Pointing.
    "jitter_rad": _P(0.0, "standard deviation of the pointing error on each axis", 0.0, 1.0),
    "beam_radius_rad": _P(5e-6, "angle from the axis at which the beam has 1/e^2 of its peak", 1e-9, 1.0),
    "jitter_cutoff_hz": _P(50.0, "cut-off of the pointing jitter", 0.1, 1000.0),
    "sway": _P(0.0, "standard deviation of the factor of building sway", 0.0, 0.25),
    "sway_low_hz": _P(0.1, "lower edge of the sway's band", 0.001, 100.0),
    "sway_high_hz": _P(10.0, "upper edge of the sway's band", 0.002, 1000.0),
    # Blockage.
    "tracking_loss_every_s": _P(0.0, "tracking is lost at about every multiple of this; 0: never", 0.0, 1e6),
    "tracking_loss_s": _P(0.1, "mean length of a loss of tracking", 1e-3, 100.0),
    "clear_mean_s": _P(0.0, "mean time between blockages; 0: none", 0.0, 1e6),
    "short_share": _P(0.6, "part of the blockages that are short", 0.0, 1.0),
    "short_min_s": _P(0.02, "shortest short blockage", 1e-4, 1e4),
    "short_max_s": _P(0.2, "longest short blockage", 1e-4, 1e4),
    "long_min_s": _P(0.5, "shortest long blockage", 1e-4, 1e4),
    "long_max_s": _P(4.0, "longest long blockage", 1e-4, 1e4),
    "edge_min_s": _P(0.01, "shortest edge of a blockage", 1e-4, 100.0),
    "edge_max_s": _P(0.05, "longest edge of a blockage", 1e-4, 100.0),
    "reacquisition_min_s": _P(0.2, "shortest search after a long blockage", 0.0, 1e4),
    "reacquisition_max_s": _P(2.0, "longest search after a long blockage", 0.0, 1e4),
    "reacquisition_after_s": _P(0.3, "blockages longer than this lose the tracker", 0.0, 1e4),
    "floor": _P(1e-4, "part of the power that passes when blocked", 0.0, 0.5),
    # The pass.
    "orbit": _P("none", "where the satellite comes from", choices=("none", "circular", "elements")),
    "altitude_m": _P(610e3, "height of the circular orbit", 150e3, 2000e3),
    "start_elevation_deg": _P(5.0, "elevation at the start", 5.0, 90.0),
    "max_elevation_deg": _P(90.0, "elevation at culmination (of elements: at least)", 5.0, 90.0),
    "direction": _P("rising", "before culmination, after it, or the whole pass", choices=("rising", "falling", "whole")),
    "elements": _P("", "file of two-line elements"),
    "satellite": _P("", "name or catalogue number in it"),
    "latitude_deg": _P(48.087, "latitude of the station, north", -90.0, 90.0),
    "longitude_deg": _P(11.28, "longitude of the station, east", -180.0, 180.0),
    "height_m": _P(600.0, "height of the station", -500.0, 9000.0),
    "after_utc": _P("", "earliest start, as 2025-01-23T12:00:00; empty: epoch of the elements"),
    "aperture_m": _P(0.4, "diameter of the receiver (scintillation by elevation)", 0.001, 10.0),
    "zenith_loss_db": _P(0.0, "loss in the atmosphere at zenith; it grows as 1 / sin(elevation)", 0.0, 20.0),
    "transmit_power": _P(
        "constant", "or adapted to elevation, so that the mean received power is constant", choices=("constant", "elevation")
    ),
}


def read_parameter(name: str, value: object) -> Value:
    """Read and check one value.

    Parameters
    ----------
    name
        Parameter; an unknown one is refused with the nearest known.
    value
        Number, word, or the text of either.

    Raises
    ------
    TraceError
        With name, value and rule.

    Examples
    --------
    >>> read_parameter("tau_s", "6e-3")
    0.006
    """
    if name == "order" and _is_one(value):
        raise TraceError(f"order: 1 {FIRST_ORDER}", "give order=2 or more, or spectrum=gaussian")
    return read_value(name, value, PARAMETERS, "synthetic fading")


def with_overrides(defaults: Mapping[str, Value], overrides: Mapping[str, object]) -> dict[str, Value]:
    """All parameters: those given, else those of a preset, else the general defaults.

    Parameters
    ----------
    defaults
        Values of the preset.
    overrides
        Values that replace them.

    Raises
    ------
    TraceError
        If a name is unknown, a value not allowed, or values contradict each other.
    """
    values = {name: known.default for name, known in PARAMETERS.items()}
    values.update(defaults)
    values.update({name: read_parameter(name, value) for name, value in overrides.items()})
    _check_together(values)
    return values


def _check_together(values: Mapping[str, Value]) -> None:
    number = {name: float(value) for name, value in values.items() if not isinstance(value, str)}
    for low, high in (
        ("short_min_s", "short_max_s"),
        ("long_min_s", "long_max_s"),
        ("edge_min_s", "edge_max_s"),
        ("reacquisition_min_s", "reacquisition_max_s"),
        ("sway_low_hz", "sway_high_hz"),
        ("start_elevation_deg", "max_elevation_deg"),
    ):
        if number[low] > number[high]:
            raise TraceError(f"{low}: {number[low]:g} is above {high} = {number[high]:g}", f"give {low} at most {high}")
    by_elevation = [name for name in ("scintillation_index", "tau_s") if number[name] == 0]
    if values["marginal"] == "gamma-gamma":
        by_elevation = [name for name in by_elevation if name == "tau_s"]
    if by_elevation and values["orbit"] == "none":
        raise TraceError(
            f"{by_elevation[0]}: 0 means by elevation, and there is no orbit", f"give {by_elevation[0]}, or orbit=circular"
        )
    shortest_s = 5 / number["sample_rate_hz"]
    for name in ("tau_s", "slow_tau_s"):
        least_s = number[name] if number[name] > 0 else LEAST_TAU_S * number["tau_factor"]
        if least_s < shortest_s:
            raise TraceError(
                f"{name}: {least_s:g} is below 5 samples at sample_rate_hz = {number['sample_rate_hz']:g}",
                "sample faster, or give a longer time",
            )
    for name in ("jitter_cutoff_hz", "sway_high_hz"):
        if number[name] > number["sample_rate_hz"] / 10:
            raise TraceError(
                f"{name}: {number[name]:g} is above a tenth of sample_rate_hz = {number['sample_rate_hz']:g}", "sample faster"
            )
    if values["orbit"] == "elements":
        for name in ("elements", "satellite"):
            if not values[name]:
                raise TraceError(f"{name}: empty, where orbit is elements", f"give {PARAMETERS[name].meaning}")


def _is_one(value: object) -> bool:
    try:
        return float(str(value)) == 1
    except ValueError:
        return False
