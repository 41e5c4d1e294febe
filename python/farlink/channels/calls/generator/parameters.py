"""A description of what drops calls, from named numbers: the parameters of `farlink bundle generate`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from farlink.arguments import checked_arguments
from farlink.channels.calls.generator.causes import Cells, DropCauses, Handovers, LowSignal, MobileIp, Redial, SetUp, fitted
from farlink.channels.parameter import Parameter, read_value
from farlink.errors import JournalError, TraceError

_FITTED = fitted()
assert _FITTED.handovers is not None
assert _FITTED.set_up is not None
_P = Parameter

PARAMETERS: dict[str, Parameter] = {
    "handover_shortest_s": _P(_FITTED.handovers.shortest_s, "shortest time between handovers of the satellite", 1.0, 1e7),
    "handover_longest_s": _P(_FITTED.handovers.longest_s, "longest time between handovers", 1.0, 1e7),
    "handover_failure": _P(_FITTED.handovers.failure, "probability that a handover drops the call", 0.0, 1.0),
    "handover_break_s": _P(0.0, "interruption by a handover that does not fail", 0.0, 60.0),
    "handover_common": _P(1, "1: all lines change at the same time; 0: each by itself", 0, 1),
    "set_up_drops": _P(_FITTED.set_up.drops, "expected drops at the beginning of a call", 0.0, 10.0),
    "set_up_mean_s": _P(_FITTED.set_up.mean_s, "mean age of these", 0.1, 60.0),
    "other_mean_s": _P(_FITTED.other_mean_s, "mean time up between drops of no known cause; 0: there are none", 0.0, 1e7),
    "snr_mean_db": _P(
        math.nan, "mean signal-to-noise ratio, of which 16 s below 0 dB or 20 s below 2 dB drop a call", -100.0, 100.0
    ),
    "snr_deviation_db": _P(4.0, "its standard deviation", 0.5, 30.0),
    "snr_correlation_s": _P(30.0, "its time of correlation", 2.0, 1e4),
    "speed_mps": _P(math.nan, "speed through cells on the ground", 1e-3, 1e4),
    "cell_radius_m": _P(1000.0, "radius of a cell", 1.0, 1e8),
    "cell_failure": _P(0.0, "probability that a change of the cell drops the call", 0.0, 1.0),
    "cell_break_s": _P(0.0, "interruption by a change of the cell that does not fail", 0.0, 60.0),
    "mobile_ip_rtt_s": _P(math.nan, "round trip to the home agent, which a change of the cell costs with Mobile IP", 0.0, 60.0),
    "mobile_ip_detection_s": _P(0.5, "time until an agent of the new network is heard", 0.0, 60.0),
    "mobile_ip_loss": _P(0.0, "probability that a registration or its reply is lost", 0.0, 0.99),
    "mobile_ip_attempts": _P(4, "registrations until the call counts as dropped", 1, 20),
    "redial_mean_s": _P(_FITTED.redial.mean_s, "mean time of a dial", 0.1, 1e7),
    "dial_failure": _P(_FITTED.redial.failure, "probability that a dial fails", 0.0, 0.99),
}

# Parameters that have a meaning only beside another one.
_NEEDS = {
    "snr_deviation_db": "snr_mean_db",
    "snr_correlation_s": "snr_mean_db",
    "cell_radius_m": "speed_mps",
    "cell_failure": "speed_mps",
    "cell_break_s": "speed_mps",
    "mobile_ip_rtt_s": "speed_mps",
    "mobile_ip_detection_s": "mobile_ip_rtt_s",
    "mobile_ip_loss": "mobile_ip_rtt_s",
    "mobile_ip_attempts": "mobile_ip_rtt_s",
}


@checked_arguments
def causes_of(given: Mapping[str, object]) -> DropCauses:
    """A description from the parameters that are given, the others as fitted to measured calls.

    Parameters
    ----------
    given
        Names in `PARAMETERS` and values, numbers or their text.

    Returns
    -------
    DropCauses
        The description.

    Raises
    ------
    JournalError
        If a name is unknown, a value is out of its range, or a parameter is given without the one that it belongs to.

    Examples
    --------
    >>> causes_of({"handover_failure": "0.05"}).handovers.failure
    0.05
    >>> causes_of({"cell_radius_m": 500})
    Traceback (most recent call last):
        ...
    farlink.errors.JournalError: cell_radius_m is given without speed_mps
    """
    values = {name: known.default for name, known in PARAMETERS.items()}
    for name, value in given.items():
        try:
            values[name] = read_value(name, value, PARAMETERS, "drawn calls")
        except TraceError as error:
            raise JournalError(error.message, error.remedy) from error
        if name in _NEEDS and _NEEDS[name] not in given:
            raise JournalError(f"{name} is given without {_NEEDS[name]}", f"give {_NEEDS[name]} too, or leave {name} out")
    number = {name: float(value) for name, value in values.items()}
    if number["handover_shortest_s"] > number["handover_longest_s"]:
        low, high = (f"{number[f'handover_{end}_s']:g}" for end in ("shortest", "longest"))
        raise JournalError(f"handover_shortest_s: {low} is above handover_longest_s, {high}", "give both, the shortest first")
    if 0 < number["other_mean_s"] < 1:
        message = f"other_mean_s: {number['other_mean_s']:g} is neither 0 nor at least 1"
        raise JournalError(message, "give 1 s or more, or 0 for none")
    return DropCauses(
        handovers=Handovers(
            number["handover_shortest_s"],
            number["handover_longest_s"],
            number["handover_failure"],
            number["handover_break_s"],
            bool(number["handover_common"]),
        ),
        cells=_cells(number),
        low_signal=_low_signal(number),
        set_up=SetUp(number["set_up_drops"], number["set_up_mean_s"]),
        other_mean_s=number["other_mean_s"] or math.inf,
        redial=Redial(number["redial_mean_s"], number["dial_failure"]),
    )


def _cells(number: Mapping[str, float]) -> Cells | None:
    if math.isnan(number["speed_mps"]):
        return None
    mobile_ip = None
    if not math.isnan(number["mobile_ip_rtt_s"]):
        detection_s, rtt_s, loss = (number[f"mobile_ip_{name}"] for name in ("detection_s", "rtt_s", "loss"))
        mobile_ip = MobileIp(detection_s, rtt_s, loss, int(number["mobile_ip_attempts"]))
    return Cells(number["speed_mps"], number["cell_radius_m"], number["cell_failure"], number["cell_break_s"], mobile_ip)


def _low_signal(number: Mapping[str, float]) -> LowSignal | None:
    if math.isnan(number["snr_mean_db"]):
        return None
    return LowSignal(number["snr_mean_db"], number["snr_deviation_db"], number["snr_correlation_s"])
