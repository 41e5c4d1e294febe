"""C/N0 of satellite links under rain: link budget, ITU-R prediction, synthesis, measured attenuation on another path."""

from __future__ import annotations

from farlink.channels.rain.budget import ClearSky, LinkBudget, noise_rise_db
from farlink.channels.rain.distribution import Distribution
from farlink.channels.rain.prediction import SlantPath, predict
from farlink.channels.rain.series import cn0_trace, fades_s, time_below

__all__ = [
    "ClearSky",
    "Distribution",
    "LinkBudget",
    "SlantPath",
    "cn0_trace",
    "fades_s",
    "noise_rise_db",
    "predict",
    "time_below",
]
