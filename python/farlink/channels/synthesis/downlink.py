r"""Scintillation of a downlink by elevation: index and correlation time.

The index of a 40 cm aperture is a table computed with the Hufnagel-Valley 5/7 profile. For another aperture it is scaled
by the ratio of aperture-averaging factors of weak turbulence,

.. math:: A(D) \propto \mathrm{Re} \int C_n^2(h) \left[(a + i h / H)^{5/6} - a^{5/6}\right] dh, \quad a = k D^2 / (16 L)

References
----------
Andrews, Phillips, Laser beam propagation through random media, 2nd edition, 2005, sections 12.2 and 12.7.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments

WAVELENGTH_M = 847e-9
APERTURE_M = 0.4

# Elevation in degrees, scintillation index at 847 nm behind 40 cm, middle of the range of correlation times in s.
_TABLE = np.array(
    [
        [5, 0.31, 1.85e-3],
        [10, 0.16, 2.5e-3],
        [20, 0.046, 2.85e-3],
        [30, 0.018, 2.7e-3],
        [60, 0.004, 2.2e-3],
        [90, 0.003, 2.05e-3],
    ]
)

LEAST_TAU_S = float(_TABLE[:, 2].min())

# Gamma-gamma fading below this elevation for apertures up to this diameter; it takes over from lognormal fading within a
# degree to either side.
GAMMA_GAMMA_BELOW_DEG = 15.0
GAMMA_GAMMA_APERTURE_M = 0.1


@checked_arguments
def scintillation_index(elevation_deg: NDArray[np.float64], aperture_m: float = APERTURE_M) -> NDArray[np.float64]:
    """Scintillation index by elevation, interpolated in its logarithm over that of the elevation's sine.

    Parameters
    ----------
    elevation_deg
        Elevation, from 5 degrees up.
    aperture_m
        Diameter of the receiver's aperture, in m.

    Examples
    --------
    >>> scintillation_index(np.array([5.0, 10.0, 90.0])).round(3)
    array([0.31 , 0.16 , 0.003])
    """
    log_index = np.log(_TABLE[:, 1])
    if aperture_m != APERTURE_M:
        log_index = log_index + [math.log(_averaging(e, aperture_m) / _averaging(e, APERTURE_M)) for e in _TABLE[:, 0]]
    index: NDArray[np.float64] = np.exp(np.interp(_log_sine(elevation_deg), _log_sine(_TABLE[:, 0]), log_index))
    return index


def correlation_time_s(elevation_deg: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlation time by elevation, in s: the middle of the range, which reaches a quarter to either side.

    Parameters
    ----------
    elevation_deg
        Elevation, from 5 degrees up.
    """
    tau_s: NDArray[np.float64] = np.interp(_log_sine(elevation_deg), _log_sine(_TABLE[:, 0]), _TABLE[:, 2])
    return tau_s


def gamma_gamma_share(elevation_deg: NDArray[np.float64], aperture_m: float) -> NDArray[np.float64]:
    """Which part of the fading is gamma-gamma, from 0 to 1.

    Parameters
    ----------
    elevation_deg
        Elevation, in degrees.
    aperture_m
        Diameter of the receiver's aperture, in m.
    """
    if aperture_m > GAMMA_GAMMA_APERTURE_M:
        return np.zeros_like(elevation_deg)
    return np.clip((GAMMA_GAMMA_BELOW_DEG + 1 - elevation_deg) / 2, 0.0, 1.0)


def hufnagel_valley(height_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refractive-index structure parameter of the Hufnagel-Valley 5/7 profile, in m^(-2/3).

    Parameters
    ----------
    height_m
        Height above the ground, in m.
    """
    wind = 0.00594 * (21 / 27) ** 2 * (1e-5 * height_m) ** 10 * np.exp(-height_m / 1000)
    profile: NDArray[np.float64] = wind + 2.7e-16 * np.exp(-height_m / 1500) + 1.7e-14 * np.exp(-height_m / 100)
    return profile


def _averaging(elevation_deg: float, aperture_m: float, altitude_m: float = 610e3) -> float:
    """Scintillation of weak turbulence behind an aperture, up to a factor."""
    height = np.concatenate([np.linspace(0.0, 2000.0, 2001), np.linspace(2010.0, 40_000.0, 3800)])
    length = altitude_m / math.sin(math.radians(elevation_deg))
    a = 2 * math.pi / WAVELENGTH_M * aperture_m**2 / (16 * length)
    weight = ((a + 1j * height / altitude_m) ** (5 / 6)).real - a ** (5 / 6)
    integrand = hufnagel_valley(height) * weight
    return float(np.sum((integrand[1:] + integrand[:-1]) / 2 * np.diff(height)))


def _log_sine(elevation_deg: NDArray[np.float64]) -> NDArray[np.float64]:
    # A satellite at the horizon is refused before; rounding may still end a hair below the table.
    sine: NDArray[np.float64] = np.log(np.sin(np.radians(np.clip(elevation_deg, _TABLE[0, 0], 90.0))))
    return sine
