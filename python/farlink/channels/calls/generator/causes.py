r"""Why calls drop: a description that `draw` draws calls from, and whose survival `survival` computes.

Handovers between satellites come every 9 to 10 min and fail with a probability. A signal that is low for long drops a call. A
modem that moves at a speed changes its cell, where Mobile IP interrupts the line for as long as it takes to register anew.
Calls may also be lost as they begin, or for no cause that is known.

References
----------
Zaghloul, table 2.2 and sections 5.1 and 8 (future work).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import check_range, checked_arguments

Series = NDArray[np.float64]

LONGEST_S = 1e7
# Registrations are repeated after 1 s at least, and twice as long each time (RFC 5944, section 3.6.3).
_FIRST_REPEAT_S = 1.0
_MOST_ATTEMPTS = 20


@dataclass(frozen=True)
class Handovers:
    """Handovers from satellite to satellite, at times that do not depend on the calls.

    Attributes
    ----------
    shortest_s, longest_s
        Time from one to the next, uniform between these, in s, above 0.
    failure
        Probability that a handover drops the call, 0 to 1.
    interruption_s
        How long a handover that does not fail interrupts the line, in s, 0 to 60; no paper and no log has it.
    is_common
        Whether all lines change their satellite at the same time, as modems at one place do; each fails by itself.

    References
    ----------
    Zaghloul, table 2.2: "Inter-satellite handover 9-10 min".
    """

    shortest_s: float = 540.0
    longest_s: float = 600.0
    failure: float = 0.0
    interruption_s: float = 0.0
    is_common: bool = True

    def __post_init__(self) -> None:
        check_range(0 < self.shortest_s <= LONGEST_S, "handovers.shortest_s", "be above 0 and at most 1e7", self.shortest_s)
        is_ordered = self.shortest_s <= self.longest_s <= LONGEST_S
        check_range(is_ordered, "handovers.longest_s", "be from shortest_s to 1e7", self.longest_s)
        check_range(0 <= self.failure <= 1, "handovers.failure", "be from 0 to 1", self.failure)
        _check_interruption("handovers.interruption_s", self.interruption_s)

    @property
    def mean_s(self) -> float:
        """Mean time between two, in s."""
        return (self.shortest_s + self.longest_s) / 2

    def intervals_s(self, unit: Series) -> Series:
        """Times between handovers, in s, of numbers that are uniform in [0, 1)."""
        return np.asarray(self.shortest_s + (self.longest_s - self.shortest_s) * unit)


@dataclass(frozen=True)
class MobileIp:
    r"""What a change of the network costs with Mobile IP: the line is interrupted, the call and the address stay.

    .. math:: T = T_{detect} + RTT + \sum_{i=1}^{k} \max(1, 2\, RTT) \, 2^{i - 1}

    with k registrations that were lost. A change that loses all its attempts drops the call.

    Attributes
    ----------
    detection_s
        Time until the mobile node hears an agent of the new network, in s, 0 to 60; at most an interval of its
        advertisements.
    rtt_s
        Round trip to the home agent, in s, 0 to 60: a request and its reply.
    loss
        Probability that a request or its reply is lost, 0 to below 1.
    attempts
        Registrations tried before the call counts as dropped, 1 to 20.

    References
    ----------
    RFC 5944, sections 2.4.2 (move detection), 3.6.3 (retransmission: 1 s at least and twice the round trip, doubled each time).
    """

    detection_s: float = 0.5
    rtt_s: float = 0.2
    loss: float = 0.0
    attempts: int = 4

    def __post_init__(self) -> None:
        check_range(0 <= self.detection_s <= 60, "mobile_ip.detection_s", "be from 0 to 60", self.detection_s)
        check_range(0 <= self.rtt_s <= 60, "mobile_ip.rtt_s", "be from 0 to 60", self.rtt_s)
        check_range(0 <= self.loss < 1, "mobile_ip.loss", "be from 0 to below 1", self.loss)
        is_count = isinstance(self.attempts, int) and 1 <= self.attempts <= _MOST_ATTEMPTS
        check_range(is_count, "mobile_ip.attempts", f"be a whole number from 1 to {_MOST_ATTEMPTS}", self.attempts)

    @property
    def failure(self) -> float:
        """Probability that all attempts are lost."""
        return float(self.loss**self.attempts)

    def interruption_s(self, lost: int) -> float:
        """How long the line is interrupted if so many registrations are lost before one succeeds, in s.

        Examples
        --------
        >>> [round(MobileIp(rtt_s=0.2).interruption_s(lost), 3) for lost in (0, 1, 2)]
        [0.7, 1.7, 3.7]
        """
        repeat_s = max(_FIRST_REPEAT_S, 2 * self.rtt_s)
        return self.detection_s + self.rtt_s + repeat_s * (2.0**lost - 1)


@dataclass(frozen=True)
class Cells:
    """Cells that a modem passes through in a straight line; each line by itself.

    Attributes
    ----------
    speed_mps
        Speed, in m/s, above 0.
    radius_m
        Radius of a cell, taken as a circle, in m, above 0.
    failure
        Probability that a change of the cell drops the call, 0 to 1; besides that of `mobile_ip`.
    interruption_s
        How long a change that does not fail interrupts the line, in s, 0 to 60; besides that of `mobile_ip`.
    mobile_ip
        Of networks that change with the cell; none if the address stays.
    """

    speed_mps: float
    radius_m: float
    failure: float = 0.0
    interruption_s: float = 0.0
    mobile_ip: MobileIp | None = None

    def __post_init__(self) -> None:
        check_range(0 < self.speed_mps <= 1e4, "cells.speed_mps", "be above 0 and at most 1e4", self.speed_mps)
        check_range(0 < self.radius_m <= 1e8, "cells.radius_m", "be above 0 and at most 1e8", self.radius_m)
        check_range(0 <= self.failure <= 1, "cells.failure", "be from 0 to 1", self.failure)
        _check_interruption("cells.interruption_s", self.interruption_s)
        mean_s = 1 / crossing_rate_hz(self.speed_mps, radius_m=self.radius_m)
        is_slow = 1 <= mean_s <= LONGEST_S
        check_range(is_slow, "cells", "be crossed in 1 s to 1e7 s on average: radius_m over speed_mps", mean_s)

    @property
    def mean_s(self) -> float:
        """Mean time in a cell, in s."""
        return 1 / crossing_rate_hz(self.speed_mps, radius_m=self.radius_m)

    @property
    def failure_in_all(self) -> float:
        """Probability that a change drops the call, by itself or because all registrations are lost."""
        registration = 0.0 if self.mobile_ip is None else self.mobile_ip.failure
        return 1 - (1 - self.failure) * (1 - registration)

    def intervals_s(self, unit: Series) -> Series:
        """Times in a cell, in s, of numbers that are uniform in [0, 1): chords of the circle over the speed."""
        return np.asarray(2 * self.radius_m / self.speed_mps * np.sqrt(1 - unit**2))


@dataclass(frozen=True)
class LowSignal:
    r"""A signal-to-noise ratio that varies, and drops a call that it leaves low for long.

    The ratio in dB is normal, with an autocorrelation of :math:`e^{-t / \tau}` (Gudmundson's model of shadowing, in time
    instead of distance), and the modem knows it every 4 s.

    Attributes
    ----------
    mean_db, deviation_db
        Mean and standard deviation of the ratio, in dB; the deviation above 0.
    correlation_s
        Its time of correlation, in s, 2 to 1e4.
    rules
        Pairs of a ratio in dB and a time in s: a call drops once the ratio was below for so long.

    References
    ----------
    Zaghloul, section 5.1: below 0 dB for more than 16 s "a call drop will occur", and below 2 dB for more than 20 s "results in
    call drops"; measured every 4 s. M. Gudmundson, "Correlation model for shadow fading in mobile radio systems", Electronics
    Letters 27(23), 1991, for the autocorrelation; neither mean, deviation nor correlation is in the thesis.
    """

    mean_db: float
    deviation_db: float = 4.0
    correlation_s: float = 30.0
    rules: tuple[tuple[float, float], ...] = ((0.0, 16.0), (2.0, 20.0))

    def __post_init__(self) -> None:
        check_range(abs(self.mean_db) <= 100, "low_signal.mean_db", "be from -100 to 100", self.mean_db)
        check_range(0.5 <= self.deviation_db <= 30, "low_signal.deviation_db", "be from 0.5 to 30", self.deviation_db)
        check_range(2 <= self.correlation_s <= 1e4, "low_signal.correlation_s", "be from 2 to 1e4", self.correlation_s)
        is_rule = all(len(one) == 2 and abs(one[0]) <= 100 and READING_S <= one[1] <= 120 for one in self.rules)
        check_range(bool(self.rules) and is_rule, "low_signal.rules", "be pairs of dB and 4 to 120 s", self.rules)

    @property
    def answers(self) -> tuple[int, ...]:
        """Answers in a row below the ratio of each rule that drop a call: the first and the last are the rule's time apart.

        Examples
        --------
        >>> LowSignal(10.0).answers
        (5, 6)
        """
        return tuple(1 + math.ceil(time_s / READING_S - 1e-9) for _, time_s in self.rules)


# The modem is asked every 4 s (Zaghloul, section 5.1).
READING_S = 4.0


@dataclass(frozen=True)
class SetUp:
    """Calls that are lost as they begin: connected, and gone within seconds.

    Attributes
    ----------
    drops
        Expected number of such drops in a call that lasts, 0 to 10: one of exp(-drops) calls survives its beginning.
    mean_s
        Mean age of these drops, in s, 0.1 to 60.
    """

    drops: float
    mean_s: float = 2.0

    def __post_init__(self) -> None:
        check_range(0 <= self.drops <= 10, "set_up.drops", "be from 0 to 10", self.drops)
        check_range(0.1 <= self.mean_s <= 60, "set_up.mean_s", "be from 0.1 to 60", self.mean_s)


@dataclass(frozen=True)
class Redial:
    """How a line that dropped is connected again.

    Attributes
    ----------
    mean_s
        Mean time of a dial, exponential, in s, above 0.
    failure
        Probability that a dial fails; the next one follows at once. 0 to below 1.
    """

    mean_s: float = 53.0
    failure: float = 0.0

    def __post_init__(self) -> None:
        check_range(0 < self.mean_s <= LONGEST_S, "redial.mean_s", "be above 0 and at most 1e7", self.mean_s)
        check_range(0 <= self.failure <= 0.99, "redial.failure", "be from 0 to 0.99", self.failure)


@dataclass(frozen=True)
class DropCauses:
    """Everything that drops the calls of a line, or interrupts them.

    Attributes
    ----------
    handovers, cells, low_signal, set_up
        The causes; none if they do not drop anything.
    other_mean_s
        Mean time between drops of no known cause, which come at a constant rate, in s, above 0; infinite if there are none.
    redial
        How a line comes back.

    Examples
    --------
    >>> DropCauses(handovers=Handovers(failure=1.5))
    Traceback (most recent call last):
    farlink.errors.ArgumentError: handovers.failure must be from 0 to 1, not 1.5
    """

    handovers: Handovers | None = None
    cells: Cells | None = None
    low_signal: LowSignal | None = None
    set_up: SetUp | None = None
    other_mean_s: float = math.inf
    redial: Redial = field(default_factory=Redial)

    def __post_init__(self) -> None:
        check_range(self.other_mean_s >= 1, "other_mean_s", "be at least 1", self.other_mean_s)


def fitted() -> DropCauses:
    """The description that fits the measured calls of seven Seagliders.

    *Fitted*: the drops at the beginning of calls, and the rate of all others (a drop in 63 min of a call). *From the thesis*:
    that a tenth of the drops come at handovers, from which their failure follows; and a redial of 53 s, with which eight lines
    are all up for 87 % of the time. The calls themselves, which last 14 min at most, do not tell handovers from a constant
    rate; a low signal they do not show.

    References
    ----------
    docs/validation/call-drops.md; Zaghloul, sections 5.1 and 7.6.

    Examples
    --------
    >>> fitted().handovers.failure, fitted().other_mean_s
    (0.0151, 4206.0)
    """
    return DropCauses(
        handovers=Handovers(failure=0.0151), set_up=SetUp(drops=0.0082, mean_s=4.5), other_mean_s=4206.0, redial=Redial(53.0)
    )


@checked_arguments
def crossing_rate_hz(speed_mps: float, *, radius_m: float) -> float:
    r"""How often a modem that moves straight on changes its cell, by the fluid-flow model.

    .. math:: \mu = \frac{v L}{\pi S} = \frac{2 v}{\pi r}

    with the perimeter :math:`L = 2 \pi r` and the area :math:`S = \pi r^2` of a circle.

    Parameters
    ----------
    speed_mps
        Speed :math:`v`, in m/s, not negative.
    radius_m
        Radius of the cell :math:`r`, in m, above 0.

    Returns
    -------
    float
        Changes per second.

    Raises
    ------
    ArgumentError
        If a value lies outside its range.

    Notes
    -----
    Directions are uniform. The mean chord of a circle is :math:`\pi r / 2`, so that the time in a cell has the mean
    :math:`1 / \mu`.

    References
    ----------
    R. Thomas, H. Gilbert, G. Mazziotto, "Influence of the moving of the mobile stations on the performance of a radio mobile
    cellular network", 3rd Nordic Seminar on Digital Land Mobile Radio Communications, 1988.

    Examples
    --------
    A car at 50 km/h in cells of 1 km changes every two minutes:

    >>> round(1 / crossing_rate_hz(50 / 3.6, radius_m=1000), 1)
    113.1
    """
    check_range(speed_mps >= 0, "speed_mps", "be at least 0", speed_mps)
    check_range(radius_m > 0, "radius_m", "be above 0", radius_m)
    return 2 * speed_mps / (math.pi * radius_m)


def _check_interruption(name: str, value: float) -> None:
    check_range(0 <= value <= 60, name, "be from 0 to 60; what takes longer is a drop", value)
