"""Optical receivers: from received power to the bit error rate at that instant, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.errors import FarlinkError
from farlink.near_names import instead

_MILLIWATT = 1e-3
# As in scenarios.
_MOST_POWER_W, _LARGEST_FORM_FACTOR = 1e3, 1e6
# Rates that differ by less are the same line rate, with and without its coding.
_SAME_RATE = 0.02


class ReceiverError(FarlinkError):
    """A receiver is unknown, or its parameters are impossible."""


@dataclass(frozen=True)
class Receiver:
    r"""A receiver with direct detection, thermal noise and shot noise.

    .. math:: BER_{ST}(P) = Q\left[\frac{P/P_0}{1 + \sqrt{1 + \xi_0 P/P_0}}\right]

    Parameters
    ----------
    name
        Its name.
    characteristic_power_w
        :math:`P_0`, in W, above 0.
    form_factor
        :math:`\xi_0`, at least 0: 0 for thermal noise alone, the larger the more shot noise counts.
    rate_bps
        Data rate that the model was made for, in bit/s; None if it is not known.
    wavelength_m
        Wavelength that it was made for, in m; None if it is not known.
    source
        Source of the parameters.

    Raises
    ------
    ReceiverError
        If a parameter is out of range.

    Notes
    -----
    The parameters hold for one data rate: noise grows with bandwidth, and the model cannot be scaled to another.

    References
    ----------
    Epple, eqs (1) and (2); David, Proceedings of the SPIE 5338 (2004).

    Examples
    --------
    >>> receiver = Receiver("FRM5W621KT/LT", 1.35e-9, 0.8, rate_bps=622e6, wavelength_m=1550e-9)
    >>> f"{receiver.power_w(1e-6) * 1e9:.1f} nW"
    '37.2 nW'
    >>> f"{receiver.ber(37.24e-9):.2e}"
    '9.99e-07'
    """

    name: str
    characteristic_power_w: float
    form_factor: float
    rate_bps: float | None = None
    wavelength_m: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        power_w, form = self.characteristic_power_w, self.form_factor
        if not 0 < power_w <= _MOST_POWER_W:
            allowed = f"it is above 0 and at most {_MOST_POWER_W:g} W"
            raise ReceiverError(f"receiver {self.name}: characteristic_power_w is {power_w:g} W", allowed)
        if not 0 <= form <= _LARGEST_FORM_FACTOR:
            allowed = f"it is a number from 0 to {_LARGEST_FORM_FACTOR:g}"
            raise ReceiverError(f"receiver {self.name}: form_factor is {form:g}", allowed)
        for key in ("rate_bps", "wavelength_m"):
            value = getattr(self, key)
            if value is not None and (not math.isfinite(value) or value <= 0):
                raise ReceiverError(f"receiver {self.name}: {key} is {value:g}", "it is a number above 0, or left out")

    @classmethod
    def named(cls, name: str) -> Receiver:
        """A receiver of the literature.

        Raises
        ------
        ReceiverError
            If there is no receiver of that name.

        Examples
        --------
        >>> Receiver.named("frm5w621").rate_bps
        622000000.0
        """
        from farlink import _core

        known = {entry["name"]: entry for entry in _core.receivers()}
        if name not in known:
            own = "P_0 in W and xi_0 are a receiver as well, such as 1.35e-9,0.8"
            raise ReceiverError(f"there is no receiver {name!r}", f"{instead(name, known)} {own}")
        entry = known[name]
        return cls(
            entry["name"],
            entry["characteristic_power_w"],
            entry["form_factor"],
            entry["rate_bps"],
            entry["wavelength_m"],
            entry["source"],
        )

    @classmethod
    def parse(cls, text: str) -> Receiver:
        """A receiver as a command names it: its name, or ``P_0,xi_0`` and perhaps the data rate, in W and bit/s.

        Raises
        ------
        ReceiverError
            If it is neither.

        Examples
        --------
        >>> Receiver.parse("1.35e-9,0.8,622e6").form_factor
        0.8
        """
        if "," not in text:
            return cls.named(text)
        try:
            numbers = [float(word) for word in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3):
            raise ReceiverError(f"receiver {text!r} is not two or three numbers", "give P_0 in W and xi_0, such as 1.35e-9,0.8")
        return cls(text, numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else None)

    @classmethod
    def from_sensitivity(
        cls,
        sensitivity_dbm: float,
        ber: float,
        form_factor: float,
        rate_bps: float | None = None,
        *,
        wavelength_m: float | None = None,
        name: str = "custom",
    ) -> Receiver:
        r"""A receiver from the sensitivity in its data sheet.

        With :math:`q = Q^{-1}(BER)`, eq. (1) solved for the power is :math:`P = P_0 (2 q + \xi_0 q^2)`.

        Parameters
        ----------
        sensitivity_dbm
            Mean received power at which the receiver has that bit error rate, in dBm.
        ber
            The bit error rate, between 0 and 0.5.
        form_factor
            :math:`\xi_0`; a data sheet does not say it. 0 is a PIN diode in thermal noise; 0.8 was measured on an APD module.
        rate_bps
            Data rate of the data sheet, in bit/s.
        wavelength_m
            Wavelength, in m.
        name
            What to call it.

        Examples
        --------
        >>> receiver = Receiver.from_sensitivity(-34.0, 1e-10, 0.8, 2.5e9)
        >>> round(receiver.sensitivity_dbm(1e-10), 6)
        -34.0
        """
        from farlink import _core

        power_w = _MILLIWATT * 10 ** (sensitivity_dbm / 10)
        # A receiver with P_0 = 1 W gives the power in multiples of P_0.
        checked = cls(name, 1.0, form_factor, rate_bps, wavelength_m)
        multiple = float(_core.receiver_power(_between(np.atleast_1d(ber)), 1.0, checked.form_factor)[0])
        source = f"sensitivity {sensitivity_dbm:g} dBm at a bit error rate of {ber:g}"
        return cls(name, power_w / multiple, form_factor, rate_bps, wavelength_m, source)

    def ber(self, power_w: ArrayLike) -> Any:
        """Bit error rate at a received power.

        Parameters
        ----------
        power_w
            Received power, in W, at least 0; any shape.

        Returns
        -------
        float or ndarray
            In [0, 0.5], of that shape.

        Raises
        ------
        ReceiverError
            If a power is negative or no number.
        """
        from farlink import _core

        given = np.asarray(power_w, dtype=np.float64)
        flat = np.ascontiguousarray(given.ravel())
        bad = np.flatnonzero(~(flat >= 0))
        if bad.size:
            raise ReceiverError(f"the power is {flat[bad[0]]:g} W at sample {bad[0]}", "a received power is at least 0 W")
        found = np.asarray(_core.receiver_ber(flat, self.characteristic_power_w, self.form_factor)).reshape(given.shape)
        return found if given.ndim else float(found)

    def power_w(self, ber: ArrayLike) -> Any:
        """Received power at which the receiver has a bit error rate: the inverse of `ber`.

        Parameters
        ----------
        ber
            Bit error rate, between 0 and 0.5; any shape.

        Returns
        -------
        float or ndarray
            In W, of that shape.

        Raises
        ------
        ReceiverError
            If a bit error rate is out of range.
        """
        from farlink import _core

        given = np.asarray(ber, dtype=np.float64)
        flat = _between(np.ascontiguousarray(given.ravel()))
        found = np.asarray(_core.receiver_power(flat, self.characteristic_power_w, self.form_factor)).reshape(given.shape)
        return found if given.ndim else float(found)

    def sensitivity_dbm(self, ber: ArrayLike) -> Any:
        """Received power at which the receiver has a bit error rate, in dBm.

        Examples
        --------
        >>> round(Receiver("", 1.35e-9, 0.8).sensitivity_dbm(1e-6), 2)
        -44.29
        """
        found = 10 * np.log10(np.asarray(self.power_w(ber)) / _MILLIWATT)
        return found if found.ndim else float(found)

    def sensitivity_curve(
        self, lowest_ber: float = 1e-12, highest_ber: float = 0.1, points: int = 100
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Received power in dBm and bit error rate, from the highest to the lowest error rate.

        Parameters
        ----------
        lowest_ber, highest_ber
            Range of the bit error rate, between 0 and 0.5.
        points
            Number of points, evenly spaced in the logarithm of the bit error rate.
        """
        ber = np.geomspace(highest_ber, lowest_ber, points)
        return self.sensitivity_dbm(ber), ber

    def rate_warning(self, rate_bps: float) -> str | None:
        """Warning about using the model at that data rate; None if it is fine, or if the model's own rate is unknown.

        Examples
        --------
        >>> Receiver("frm5w621", 1.35e-9, 0.8, 622e6).rate_warning(1e9)
        'receiver frm5w621 was modelled at 622 Mb/s; at 1 Gb/s its noise, and so its error rate, is another'
        """
        if self.rate_bps is None or abs(rate_bps - self.rate_bps) <= _SAME_RATE * self.rate_bps:
            return None
        from farlink.units import show

        own, other = show(self.rate_bps, "rate_bps"), show(float(rate_bps), "rate_bps")
        return f"receiver {self.name} was modelled at {own}; at {other} its noise, and so its error rate, is another"


def receivers() -> list[Receiver]:
    """The receivers of the literature."""
    from farlink import _core

    return [Receiver.named(entry["name"]) for entry in _core.receivers()]


def _between(ber: NDArray[np.float64]) -> NDArray[np.float64]:
    bad = np.flatnonzero(~((ber > 0) & (ber < 0.5)))
    if bad.size:
        raise ReceiverError(f"a bit error rate of {ber[bad[0]]:g}", "give a number between 0 and 0.5, such as 1e-6")
    return np.ascontiguousarray(ber, dtype=np.float64)
