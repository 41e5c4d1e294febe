"""Presets that represent measurements, with one line of the registry each.

The values stand in for measurements that were never published; they are chosen from theory, from published summaries
and from a measured record of another link, and are to be swept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from farlink.channels.parameter import Value
from farlink.channels.synthesis.marginals import weibull_variance
from farlink.errors import TraceError
from farlink.near_names import instead


@dataclass(frozen=True)
class Preset:
    """A named set of parameters.

    Parameters
    ----------
    title
        What it represents, in one line.
    values
        Parameters that differ from the general defaults.
    notes
        What else to know.
    """

    title: str
    values: Mapping[str, Value] = field(default_factory=dict)
    notes: str = ""


# Correlation time of a Butterworth spectrum of order 3 with a cut-off of 1 Hz.
_TAU_HZ = 0.31243

PRESETS: dict[str, Preset] = {
    "fasolt": Preset(
        "61 km from a mountain to the ground in winter, strong turbulence",
        {"marginal": "gamma-gamma", "alpha": 4.5, "beta": 2.5, "tau_s": 6e-3, "slow_tau_s": 40e-3, "transmitters": 2},
        "sweep the scintillation index from 0.5 to 1.2 (alpha, beta) and tau_s from 3 to 20 ms",
    ),
    "kiodo": Preset(
        "downlink of a satellite 610 km high to 40 cm, from 5 degrees of elevation up",
        {
            "orbit": "circular",
            "scintillation_index": 0.0,
            "tau_s": 0.0,
            "alpha": 4.5,
            "beta": 2.5,
            "jitter_rad": 0.5e-6,
            "beam_radius_rad": 5e-6,
            "jitter_cutoff_hz": 50.0,
            "tracking_loss_every_s": 30.0,
            "tracking_loss_s": 0.1,
        },
        "sweep jitter_cutoff_hz from 10 to 100 Hz; direction=falling goes down",
    ),
    "atenaa": Preset(
        "1.4 km to a vehicle at 20 km/h, trees and poles in between",
        {"scintillation_index": 0.2, "tau_s": 3.5e-3, "clear_mean_s": 10.0},
        "sweep tau_s from 2 to 5 ms and clear_mean_s from 5 to 20 s",
    ),
    "testbed": Preset(
        "500 m between two buildings on a hot, windy day",
        {
            "scintillation_index": 0.12,
            "alpha": 5.6,
            "beta": 4.0,
            "tau_s": 3e-3,
            "slow_tau_s": 20e-3,
            "sway": 0.05,
        },
        "5 cm aperture, sweep scintillation_index from 0.08 to 0.15; marginal=gamma-gamma for a point receiver (index 0.47), "
        "marginal=weibull behind a fibre",
    ),
    "moderate": Preset(
        "record of moderate turbulence behind a fibre, scintillation index 0.32",
        {
            "marginal": "weibull",
            "scintillation_index": weibull_variance(1.83),
            "tau_s": _TAU_HZ / 80,
            "slow_share": 0.3,
            "slow_tau_s": 0.1,
        },
    ),
    "weak": Preset(
        "record of weak turbulence behind a fibre, scintillation index 0.06",
        {
            "marginal": "weibull",
            "scintillation_index": weibull_variance(4.63),
            "tau_s": _TAU_HZ / 96,
            "slow_share": 0.15,
            "slow_tau_s": 0.05,
            "cn2_drift": 0.5,
            "cn2_drift_tau_s": 2.0,
        },
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name.

    Parameters
    ----------
    name
        One of `PRESETS`.

    Raises
    ------
    TraceError
        If there is none.
    """
    if name not in PRESETS:
        raise TraceError(f"{name!r} is no preset of synthetic fading", instead(name, PRESETS))
    return PRESETS[name]
