r"""Band-limited Gaussian processes of exactly unit variance, drawn in the frequency domain.

A realisation is the inverse Fourier transform of independent normal amplitudes whose variances are the wanted spectrum, so it
is stationary from the first sample to the last and needs no warm-up. It is periodic; what is drawn is longer than what is kept.

First-order processes (Ornstein-Uhlenbeck, AR(1)) are no option here: their path crosses a level infinitely often, so that
at 10 kS/s they make several times too many fades which are several times too short, and that flatters codes and interleavers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments
from farlink.errors import TraceError
from farlink.extras import require

FIRST_ORDER = (
    "is a first-order process: its path crosses a level infinitely often, "
    "which makes several times too many fades that are too short"
)

# Correlation times generated and discarded, so that the end is independent of the beginning.
_APART = 30


class Spectrum(Protocol):
    """Shape of a power spectral density."""

    @property
    def correlation_s(self) -> float:
        """Time after which values are nearly independent, in s, up to a factor."""
        ...

    def density(self, frequency_hz: NDArray[np.float64]) -> NDArray[np.float64]:
        """Power spectral density, unnormalised."""
        ...


@dataclass(frozen=True)
class Butterworth:
    r"""White noise through a Butterworth low-pass filter, :math:`S(f) = 1 / (1 + (f / f_c)^{2n})`.

    Parameters
    ----------
    order
        Order n of the filter, at least 2.
    cutoff_hz
        Frequency :math:`f_c` at which half of the power passes, in Hz.

    Raises
    ------
    TraceError
        If the order is below 2.

    Examples
    --------
    >>> round(Butterworth.with_tau(3, 0.004).cutoff_hz, 1)
    78.1
    """

    order: int
    cutoff_hz: float

    def __post_init__(self) -> None:
        if self.order < 2:
            raise TraceError(f"order: {self.order} {FIRST_ORDER}", "give order=2 or more, or spectrum=gaussian")

    @classmethod
    def with_tau(cls, order: int, tau_s: float) -> Butterworth:
        """The filter whose noise has the autocorrelation 1/e after `tau_s`: f_c = 0.312 / tau for order 3.

        Parameters
        ----------
        order
            Order of the filter, at least 2.
        tau_s
            Correlation time, in s.
        """
        unit = cls(order, 1.0)
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if unit.autocorrelation(middle) > math.exp(-1) else (low, middle)
        return cls(order, low / tau_s)

    @property
    def correlation_s(self) -> float:
        """See `Spectrum`."""
        # Its autocorrelation rings, and dies away with the pole nearest to the axis.
        return 0.32 / self.cutoff_hz * max(1.0, self.order / 3)

    def density(self, frequency_hz: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Spectrum`."""
        density: NDArray[np.float64] = 1 / (1 + (frequency_hz / self.cutoff_hz) ** (2 * self.order))
        return density

    def autocorrelation(self, lag_s: float) -> float:
        """Autocorrelation after `lag_s`, in s, in closed form: the residues of the density's poles above the axis.

        Parameters
        ----------
        lag_s
            Lag, in s.
        """
        pole = np.exp(1j * np.pi * (2 * np.arange(self.order) + 1) / (2 * self.order))
        terms = -1j * pole * np.exp(2j * np.pi * pole * self.cutoff_hz * abs(lag_s))
        return float(terms.sum().real / (-1j * pole).sum().real)


@dataclass(frozen=True)
class GaussianShaped:
    r"""Noise with the autocorrelation :math:`\exp(-(t / \tau)^2)`, and so :math:`S(f) = \exp(-(\pi f \tau)^2)`.

    Parameters
    ----------
    tau_s
        Correlation time, in s: the autocorrelation there is 1/e.
    """

    tau_s: float

    @property
    def correlation_s(self) -> float:
        """See `Spectrum`."""
        return self.tau_s

    def density(self, frequency_hz: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Spectrum`."""
        density: NDArray[np.float64] = np.exp(-((np.pi * self.tau_s * frequency_hz) ** 2))
        return density

    def autocorrelation(self, lag_s: float) -> float:
        """Autocorrelation after `lag_s`, in s.

        Parameters
        ----------
        lag_s
            Lag, in s.
        """
        return math.exp(-((lag_s / self.tau_s) ** 2))


@dataclass(frozen=True)
class Band:
    """Noise between two frequencies, with the edges of a second-order Butterworth band-pass filter.

    Parameters
    ----------
    low_hz, high_hz
        The edges, in Hz.
    """

    low_hz: float
    high_hz: float

    @property
    def correlation_s(self) -> float:
        """See `Spectrum`."""
        return 0.3 / self.low_hz

    def density(self, frequency_hz: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Spectrum`."""
        with np.errstate(divide="ignore"):
            below = 1 / (1 + (self.low_hz / frequency_hz) ** 4)
        density: NDArray[np.float64] = below / (1 + (frequency_hz / self.high_hz) ** 4)
        return density


@checked_arguments
def gaussian_process(spectrum: Spectrum, samples: int, sample_rate_hz: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a stationary Gaussian process of mean 0 and variance 1.

    Parameters
    ----------
    spectrum
        The shape of its spectrum.
    samples
        How many samples.
    sample_rate_hz
        Their rate, in Hz.
    rng
        Source of randomness.

    Examples
    --------
    >>> from farlink.channels.synthesis.streams import stream
    >>> path = gaussian_process(Butterworth(3, 100.0), 200_000, 1e4, stream(1, "example"))
    >>> bool(abs(path.var() - 1) < 0.05)
    True
    """
    fft = require("scipy.fft", "synthetic fading")
    drawn = fft.next_fast_len(samples + math.ceil(_APART * spectrum.correlation_s * sample_rate_hz), real=True)
    density = spectrum.density(np.arange(drawn // 2 + 1) * (sample_rate_hz / drawn))
    # All bins represent two frequencies, except the first, and the last of an even number.
    twofold = np.full(density.size, 2.0)
    twofold[0] = 1.0
    if drawn % 2 == 0:
        twofold[-1] = 1.0
    scale = np.sqrt(density / np.dot(density, twofold)) * drawn
    amplitude = rng.standard_normal(2 * density.size).view(np.complex128)
    # A bin that represents one frequency is real and has all of its variance.
    real = twofold == 1.0
    amplitude[real] = amplitude[real].real * math.sqrt(2)
    amplitude *= scale * math.sqrt(0.5)
    path: NDArray[np.float64] = fft.irfft(amplitude, drawn, overwrite_x=True)[:samples]
    return path


def warped_process(
    unit: Spectrum, tau_s: NDArray[np.float64], samples: int, sample_rate_hz: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a Gaussian process with a varying correlation time and a smooth path.

    A process of correlation time 1 is run through at the speed 1 / tau; between its points, 32 to a correlation time, the
    path is a line, which takes 3e-4 from the variance.

    Parameters
    ----------
    unit
        Shape of the spectrum, for a correlation time of 1 s.
    tau_s
        Correlation time at the beginning of each second, in s, and linear between them; one more than there are seconds.
    samples
        How many samples.
    sample_rate_hz
        Their rate, in Hz.
    rng
        Source of randomness.
    """
    time_s = np.arange(samples) / sample_rate_hz
    speed = 1 / np.interp(time_s, np.arange(len(tau_s)), tau_s)
    unit_time = np.cumsum(speed) / sample_rate_hz
    per_tau = 32
    points = gaussian_process(unit, math.ceil(unit_time[-1] * per_tau) + 2, per_tau, rng)
    path: NDArray[np.float64] = np.interp(unit_time, np.arange(points.size) / per_tau, points)
    return path
