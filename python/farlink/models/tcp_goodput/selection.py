"""Which of two models of goodput holds: one with timeouts and no bottleneck, one with a bottleneck and no timeouts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.ranges import Floats, at_least, within_0_and_1


@checked_arguments
def select(relation: ArrayLike, fluid: ArrayLike, *, threshold: ArrayLike = 0.5) -> Floats:
    r"""Goodput by relation (1) where that is below the threshold, by the fluid simulation elsewhere.

    Parameters
    ----------
    relation
        Sum of the shares of the link's rate that all its connections reach by relation (1), not negative. Any shape.
    fluid
        The same by fluid simulation, in [0, 1], broadcast against `relation`; NaN where it was not simulated.
    threshold
        Share from which the simulation holds, in [0, 1].

    Returns
    -------
    ndarray
        Share of the link's rate, of the broadcast shape.

    Raises
    ------
    ValueError
        If a value lies outside its range, or is NaN where it is needed.

    References
    ----------
    Celandroni, section III: 50 % suits, "even if TGEP agrees with relation (1) (and with ns2 simulation) also for much lower
    values".

    Examples
    --------
    >>> select([0.8, 0.3], [0.85, float("nan")]).tolist()
    [0.85, 0.3]
    """
    small = at_least(0, relation=relation)
    is_small = small < within_0_and_1(threshold=threshold)
    large = within_0_and_1(fluid=np.where(is_small, 0.0, fluid))
    return np.asarray(np.where(is_small, small, large))
