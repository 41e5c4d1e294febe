"""Share of a link's rate with a short queue: the sawtooth of windows that only its overflow halves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.ranges import Floats, at_least


@checked_arguments
def utilisation(buffer_bdp: ArrayLike) -> Floats:
    r"""Share of a link's rate that connections in step use, whose losses are those of the queue in front of it.

    .. math::

        U = \begin{cases} \frac{3}{4} \frac{(1 + \beta)^2}{1 + \beta + \beta^2} & \beta < 1 \\ 1 & \beta \ge 1 \end{cases}

    Parameters
    ----------
    buffer_bdp
        Room of the queue over what the link carries in a round trip :math:`\beta`, not negative; infinite without a limit. Any
        shape.

    Returns
    -------
    ndarray
        Share in [3/4, 1], of the shape of `buffer_bdp`.

    Notes
    -----
    The window falls to half of what path and queue hold and grows evenly, in rounds that last a round trip until the path is
    full and then as long as the link takes for a window. Connections whose windows are halved one after the other use more.

    References
    ----------
    T. V. Lakshman, U. Madhow, "The performance of TCP/IP for networks with high bandwidth-delay products and random loss",
    IEEE/ACM Transactions on Networking 5(3), 1997, section III.

    Examples
    --------
    >>> utilisation([0.0, 0.2, 0.5, 1.0]).round(3)
    array([0.75 , 0.871, 0.964, 1.   ])
    """
    beta = np.minimum(at_least(0, buffer_bdp=buffer_bdp), 1.0)
    return np.asarray(0.75 * (1 + beta) ** 2 / (1 + beta + beta**2))
