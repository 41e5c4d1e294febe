"""Link budget: C/N0 of a satellite link in clear sky and under rain."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import checked_arguments
from farlink.errors import TraceError

SPEED_OF_LIGHT_M_PER_S = 299_792_458.0

# Boltzmann's constant, 1.380649e-23 J/K: -228.6 dBW/(K Hz).
BOLTZMANN_DBW_PER_K_HZ = 10 * math.log10(1.380649e-23)

# Noise temperature of the sky beyond the atmosphere, and of rain if the temperature at the ground is not known.
COSMIC_TEMPERATURE_K = 2.7
MEDIUM_TEMPERATURE_K = 275.0


@dataclass(frozen=True)
class LinkBudget:
    r"""Link budget of the C/N0 in clear sky.

    .. math:: C/N_0 = EIRP + G/T - L_{fs} - L_{gas} - L_{other} + 228.6 \text{ dB}

    Parameters
    ----------
    eirp_dbw
        Power that the transmitter radiates towards the receiver, in dBW.
    g_over_t_dbk
        Gain of the receiving antenna over its noise temperature in clear sky, in dB/K.
    frequency_hz
        Carrier, in Hz, above 0.
    range_m
        Distance, in m, above 0.
    gas_loss_db
        Attenuation by gases of the atmosphere, in dB, at least 0.
    other_loss_db
        Pointing, polarisation, implementation and other constant losses, in dB, at least 0.

    Raises
    ------
    TraceError
        If a value is not finite or out of range.

    References
    ----------
    Maral and Bousquet, Satellite Communications Systems, chapter 5; the free-space loss is ITU-R P.525.

    Examples
    --------
    >>> round(LinkBudget(50.0, 20.0, 19.7e9, 38_500e3, gas_loss_db=0.5).clear_sky_dbhz, 2)
    88.05
    """

    eirp_dbw: float
    g_over_t_dbk: float
    frequency_hz: float
    range_m: float
    gas_loss_db: float = 0.0
    other_loss_db: float = 0.0

    def __post_init__(self) -> None:
        for key in fields(self):
            value = getattr(self, key.name)
            if not math.isfinite(value):
                raise TraceError(f"{key.name}: {value!r} is not a number", "a link budget needs it; or give clear_sky_dbhz")
            if key.name.endswith("_loss_db") and value < 0:
                raise TraceError(f"{key.name}: {value:g} dB is a gain", "losses are at least 0 dB")

    @property
    def free_space_loss_db(self) -> float:
        """Loss by distance, in dB."""
        return free_space_loss_db(self.frequency_hz, self.range_m)

    @property
    def clear_sky_dbhz(self) -> float:
        """C/N0 without rain, in dBHz."""
        losses_db = self.free_space_loss_db + self.gas_loss_db + self.other_loss_db
        return self.eirp_dbw + self.g_over_t_dbk - losses_db - BOLTZMANN_DBW_PER_K_HZ


@checked_arguments
def free_space_loss_db(frequency_hz: float, range_m: float) -> float:
    r"""Loss by distance in free space.

    .. math:: L_{fs} = 20 \log_{10} \frac{4 \pi d f}{c}

    Parameters
    ----------
    frequency_hz
        Carrier, in Hz, above 0.
    range_m
        Distance, in m, above 0.

    Returns
    -------
    float
        In dB.

    Raises
    ------
    TraceError
        If one is not above 0.

    References
    ----------
    ITU-R P.525-4, eq. (4).

    Examples
    --------
    >>> round(free_space_loss_db(19.7e9, 38_500e3), 2)
    210.05
    """
    for name, value in (("frequency_hz", frequency_hz), ("range_m", range_m)):
        if not 0 < value < math.inf:
            raise TraceError(f"{name}: {value:g} is not above 0", "give Hz and m")
    return 20 * math.log10(4 * math.pi * range_m * frequency_hz / SPEED_OF_LIGHT_M_PER_S)


@checked_arguments
def noise_rise_db(
    attenuation_db: ArrayLike,
    *,
    system_temperature_k: float,
    gas_loss_db: float = 0.0,
    medium_temperature_k: float = MEDIUM_TEMPERATURE_K,
) -> NDArray[np.float64]:
    r"""Degradation of the G/T of a station on the ground by rain, which is warmer than the sky beyond it.

    .. math::

       T_{sky}(A) = T_{mr} (1 - 10^{-A/10}) + 2.7 \cdot 10^{-A/10}, \qquad
       \Delta = 10 \log_{10} \left( 1 + \frac{T_{sky}(A_{gas} + A) - T_{sky}(A_{gas})}{T_{sys}} \right)

    Parameters
    ----------
    attenuation_db
        Attenuation by rain :math:`A`, in dB, at least 0. Any shape.
    system_temperature_k
        Noise temperature of antenna and receiver in clear sky, :math:`T_{sys}`, in K, above 0.
    gas_loss_db
        Attenuation by gases, which is there in clear sky too, in dB.
    medium_temperature_k
        Mean radiating temperature :math:`T_{mr}`, in K. P.618 gives 275 K where nothing is known, else ``37.34 + 0.81`` times
        the temperature at the ground.

    Returns
    -------
    ndarray
        Loss in addition to the attenuation, in dB, of the shape of `attenuation_db`.

    Raises
    ------
    TraceError
        If the temperature of the system is not above 0.

    Notes
    -----
    For downlinks: the antenna of a satellite looks at the warm Earth, rain or not. What the antenna sees beside its main beam,
    and losses between antenna and receiver, are left out, which makes the rise a little too large.

    References
    ----------
    ITU-R P.618-13, Annex 1, section 3.

    Examples
    --------
    >>> noise_rise_db([0.0, 3.0, 10.0], system_temperature_k=150.0).round(2)
    array([0.  , 2.8 , 4.21])
    """
    if not 0 < system_temperature_k < math.inf:
        raise TraceError(f"system_temperature_k: {system_temperature_k:g} is not above 0", "give the noise temperature in K")
    passed = 10 ** (-(gas_loss_db + np.asarray(attenuation_db, dtype=np.float64)) / 10)
    rise_k = (medium_temperature_k - COSMIC_TEMPERATURE_K) * (10 ** (-gas_loss_db / 10) - passed)
    rise_db: NDArray[np.float64] = 10 * np.log10(1 + rise_k / system_temperature_k)
    return rise_db


@dataclass(frozen=True)
class ClearSky:
    """A link in clear sky, and the effect of rain on it.

    Parameters
    ----------
    cn0_dbhz
        C/N0 without rain, in dBHz.
    system_temperature_k
        Noise temperature in clear sky of a receiver on the ground, which rain raises; None where it does not. See
        `noise_rise_db`, also for the next two.
    gas_loss_db
        Attenuation by gases, in dB.
    medium_temperature_k
        Mean radiating temperature of the rain, in K.
    """

    cn0_dbhz: float
    system_temperature_k: float | None = None
    gas_loss_db: float = 0.0
    medium_temperature_k: float = MEDIUM_TEMPERATURE_K

    def under(self, attenuation_db: ArrayLike) -> NDArray[np.float64]:
        """C/N0 in dBHz under an attenuation by rain in dB, at least 0. Shape of `attenuation_db`.

        Examples
        --------
        >>> ClearSky(88.0).under([0.0, 3.0])
        array([88., 85.])
        >>> round(float(ClearSky(88.0, system_temperature_k=150.0).under(3.0)), 2)
        82.2
        """
        attenuation = np.asarray(attenuation_db, dtype=np.float64)
        if self.system_temperature_k is None:
            return self.cn0_dbhz - attenuation
        return (
            self.cn0_dbhz
            - attenuation
            - noise_rise_db(
                attenuation,
                system_temperature_k=self.system_temperature_k,
                gas_loss_db=self.gas_loss_db,
                medium_temperature_k=self.medium_temperature_k,
            )
        )
