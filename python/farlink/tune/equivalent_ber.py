"""Loss of segments as the rate of independent bit errors that lose as many, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_BER = 0.5


def ber_of(loss: Floats, bits: int) -> Floats:
    r"""The equivalent bit error rate: independent errors at this rate lose as many segments of this length.

    .. math:: p = 1 - (1 - P)^{1/n}, at most 1/2

    Behind a Viterbi decoder wrong bits come in bursts, so that the decoder's bit error rate is larger than this one.

    Parameters
    ----------
    loss
        Probability that a segment is lost. Any shape.
    bits
        Of a segment, headers included.

    Examples
    --------
    >>> lost_of(ber_of(np.array([0.0, 0.01, 1.0]), 4416), 4416).round(4)
    array([0.  , 0.01, 1.  ])
    """
    with np.errstate(divide="ignore"):
        found: Floats = np.minimum(MOST_BER, -np.expm1(np.log1p(-loss) / bits))
    return found


def lost_of(ber: Floats, bits: int) -> Floats:
    """Probability that a segment is lost at a bit error rate: the inverse of `ber_of`."""
    found: Floats = -np.expm1(bits * np.log1p(-ber)) + 0.0
    return found
