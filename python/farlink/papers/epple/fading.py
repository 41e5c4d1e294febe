"""Protocols over synthetic fading, which stands in for the measurements: they are not published.

Each repetition has a trace of its own, scaled until its long-term bit error rate is the one that is asked for; both directions
fade together, as in the paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink import _core
from farlink.channels.synthesis import synthetic_trace
from farlink.channels.synthesis.orbit import LIGHT_SPEED_M_PER_S
from farlink.channels.trace import Trace
from farlink.papers.epple.intervals import interval
from farlink.papers.epple.scenarios import TRANSPORT
from farlink.papers.epple.setting import HEADER_BYTES, PAPER_SETTING, REPORT_BYTES, Setting
from farlink.papers.estimate import Estimate
from farlink.papers.item import Workbench

STAND_IN = "synthetic stand-in"
RECEIVER = next(one for one in _core.receivers() if one["name"] == "frm5w621")
"""The reference receiver, Fujitsu FRM5W621KT/LT."""

WHOLE_PASS_S = 100.0
"""Length of KIODO's measurement: tracking was lost at about 30, 60 and 90 s of it."""
LEAST_S = 2.0
"""Shortest run that is worth its start-up."""

_ALTITUDE_M = 610e3
_LOWEST_DEG = 5.0
_TRACES = 5


@dataclass(frozen=True)
class Fading:
    """Light of a link over time.

    Attributes
    ----------
    place
        Whose preset, a key of `Setting.distances_m`.
    direction
        Of the satellite's pass: ``"rising"``, or ``"falling"`` for the reversed one of section 4.1.1.
    duration_s
        Length of a trace and of a run.
    changes
        Parameters of the preset that differ.
    is_moving
        Whether the delay to ATENAA's vehicle changes as it drives. Its distance does not change the light.
    """

    place: str
    direction: str = "rising"
    duration_s: float = 12.0
    changes: Mapping[str, float] = field(default_factory=dict, hash=False)
    is_moving: bool = False

    def texts(self, bench: Workbench, setting: Setting, count: int) -> list[str]:
        """Names of so many traces."""
        keys: dict[str, Any] = {"duration_s": f"{self.duration_s:g}", **self.changes}
        if self.place == "KIODO":
            keys["altitude_m"] = f"{_altitude_m(setting):.10g}"
            if self.direction == "falling":
                keys |= {"direction": "falling", "start_elevation_deg": f"{self.highest_deg(setting):.6g}"}
        rest = "".join(f"&{key}={value}" for key, value in keys.items())
        return [f"synthetic:{self.place.lower()}?{seed}{rest}" for seed in _seeds(bench, count)]

    def drives(self, bench: Workbench, setting: Setting, count: int) -> list[str]:
        """Names of so many traces of the delay to a vehicle that drives; none if nothing does."""
        if not self.is_moving:
            return []
        distance_m = LIGHT_SPEED_M_PER_S * setting.delay_s(self.place)
        keys = f"duration_s={self.duration_s:g}&distance_m={distance_m:.10g}"
        return [f"synthetic:vehicle?{seed}&{keys}" for seed in _seeds(bench, count)]

    def highest_deg(self, setting: Setting) -> float:
        """Elevation at the end of a rising run: where the reversed one begins."""
        elevation_deg, _ = _core.circular_pass(
            np.array([float(self.duration_s)]), _altitude_m(setting), 90.0, _LOWEST_DEG, True
        )
        # A hundredth of a degree higher, so that the falling run ends above 5 degrees.
        return math.ceil(100 * float(elevation_deg[0])) / 100

    def delay(self, setting: Setting) -> float | dict[str, Any]:
        """One way."""
        if self.place != "KIODO":
            return setting.delay_s(self.place)
        start_deg = _LOWEST_DEG if self.direction == "rising" else self.highest_deg(setting)
        return {
            "kind": "pass",
            "altitude_m": _altitude_m(setting),
            "start_elevation_deg": start_deg,
            "direction": self.direction,
        }


def _seeds(bench: Workbench, count: int) -> list[str]:
    return [f"seed={100 * bench.seed + index}" for index in range(count)]


def seconds(bench: Workbench, place: str, usual_s: float, *, whole: Collection[str] = ("KIODO",)) -> float:
    """How long to run at a place: where `whole` says so for as long as KIODO was measured, unless in a hurry."""
    if place in whole and not bench.quick:
        return WHOLE_PASS_S
    return max(LEAST_S, bench.share(usual_s))


def _altitude_m(setting: Setting) -> float:
    return _ALTITUDE_M * setting.distances_m["KIODO"] / PAPER_SETTING.distances_m["KIODO"]


@dataclass(frozen=True)
class Outcomes:
    """Results of a transport, a value for each trace.

    Attributes
    ----------
    goodput, loss, timeouts
        As a result has them.
    back
        Load of the back channel: an acknowledgement for each packet that arrives intact.
    """

    goodput: list[float]
    loss: list[float]
    timeouts: list[float]
    back: list[float]

    @property
    def mean(self) -> Estimate:
        """Mean goodput with its interval over the traces."""
        return interval(self.goodput)


def over_fading(
    bench: Workbench,
    setting: Setting,
    fading: Fading,
    tables: Mapping[str, Mapping[str, Any]],
    *,
    use: str,
    bers: float | Sequence[float] | None = None,
    count: int | None = None,
    is_return_clear: bool = False,
) -> dict[str, Outcomes]:
    """Run transports over the same traces.

    Parameters
    ----------
    bench
        Where to run; its seed is that of the traces too.
    setting
        The link.
    fading
        The light.
    tables
        Transports by name.
    use
        What for, in a few words.
    bers
        Long-term bit error rate, or that of each trace; the setting's unless given.
    count
        How many traces.
    is_return_clear
        Whether acknowledgements are never lost.
    """
    count = count or bench.repetitions(_TRACES)
    texts = fading.texts(bench, setting, count)
    rates = list(bers) if isinstance(bers, Sequence) else [setting.ber if bers is None else bers] * count
    channel = {"kind": "fading", "file": texts[0], "receiver": RECEIVER["name"], "ber": rates[0]}
    zipped: dict[str, list[Any]] = {"link.channel.file": texts, "link.channel.ber": rates}
    if not is_return_clear:
        zipped |= {"link.return.channel.file": texts, "link.return.channel.ber": rates}
    delay = fading.delay(setting)
    if drives := fading.drives(bench, setting, count):
        delay = {"kind": "delay-trace", "file": drives[0]}
        zipped["link.delay_s.file"] = drives
    data = {
        "title": f"Epple, {fading.place}, synthetic fading, {use}",
        "duration_s": fading.duration_s,
        "link": {
            "rate_bps": setting.rate_bps,
            "delay_s": delay,
            "channel": channel,
            "return": {"channel": {"kind": "none"} if is_return_clear else channel},
        },
        "transport": {name: dict(table) for name, table in tables.items()},
        "flow": {"bulk": {"transport": next(iter(tables)), "traffic": {"kind": "bulk"}}},
        "grid": {TRANSPORT: list(tables)},
        "grid_zip": [zipped],
    }
    name = re.sub(r"[^a-z0-9.]+", "-", f"{fading.place} {use}".lower())
    rows = bench.run(name, data, runs=1).rows
    found = {name: Outcomes([], [], [], []) for name in tables}
    columns = (TRANSPORT, "flow", "goodput_fraction", "loss_fraction", "timeouts", "sent_bytes")
    for name, flow, goodput, loss, timeouts, sent in zip(*(rows[key] for key in columns), strict=True):
        if flow == "all":
            continue
        one, table = found[name], tables[name]
        one.goodput.append(goodput)
        one.loss.append(loss)
        one.timeouts.append(timeouts)
        # Damaged frames are not answered, unlike in the engine, which answers them if their header is intact.
        protocol = "sr" if table["mode"] == "selective-repeat" else "tcp"
        packet_bytes = table["segment_bytes"] + HEADER_BYTES[protocol] + (10 if table.get("timestamps") else 0)
        packets = sent / packet_bytes * (1 - loss)
        one.back.append(packets * 8 * REPORT_BYTES[protocol] / fading.duration_s / setting.rate_bps)
    return found


def trace(text: str) -> Trace:
    """A trace by its name."""
    return synthetic_trace(text)


def clear(power: Trace) -> NDArray[np.bool_]:
    """Where nothing blocks the light."""
    if "blocked" not in power.arrays:
        return np.ones(power["power_w"].size, dtype=np.bool_)
    free: NDArray[np.bool_] = power["blocked"] == 0
    return free


def short_term_ber(power: Trace, ber: float) -> NDArray[np.float64]:
    """Bit error rate at each sample, scaled to a long-term one: equations (1) and (2), blockages cut for the scaling."""
    p0, form = RECEIVER["characteristic_power_w"], RECEIVER["form_factor"]
    gain = _core.calibrate(power["power_w"], ~clear(power), p0, form, ber)
    return _core.receiver_ber(gain * power["power_w"], p0, form)


def mean_loss(ber: NDArray[np.float64], packet_bytes: float) -> float:
    """Share of packets with a wrong bit, if each meets the bit error rate of one instant."""
    return float(-np.expm1(8 * packet_bytes * np.log1p(-ber)).mean())


def ber_for_loss(power: Trace, packet_bytes: float, loss: float) -> float:
    """The long-term bit error rate at which so many packets are lost.

    Parameters
    ----------
    power
        A trace.
    packet_bytes
        Length of a packet.
    loss
        Share of packets; more than is blocked.
    """
    p0, form = RECEIVER["characteristic_power_w"], RECEIVER["form_factor"]
    power_w, free = power["power_w"], clear(power)

    def scaled(gain: float) -> NDArray[np.float64]:
        return _core.receiver_ber(gain * power_w, p0, form)

    # Between a thousandth and a thousand times the characteristic power.
    low, high = (math.log(factor * p0 / power_w.mean()) for factor in (1e-3, 1e3))
    for _ in range(40):
        middle = (low + high) / 2
        if mean_loss(scaled(math.exp(middle)), packet_bytes) > loss:
            low = middle
        else:
            high = middle
    return float(scaled(math.exp((low + high) / 2))[free].mean())
