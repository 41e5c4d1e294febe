"""Numbers for people: decimal prefixes, and as many digits as the interval supports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# Key suffix -> base unit. The longest match wins.
_SUFFIX = {
    "_bps": "b/s",
    "_bytes": "B",
    "_bits": "b",
    "_s": "s",
    "_hz": "Hz",
    "_m": "m",
    "_db": "dB",
    "_dbhz": "dBHz",
    "_dbm": "dBm",
    "_deg": "°",
    "_w": "W",
    "_fraction": "%",
    "_segments": "segments",
    "_packets": "packets",
    "_per_s": "1/s",
}
_PREFIXED = {"b/s", "B", "b", "Hz", "W"}
_NAME = {
    "ber": "bit error rate",
    "loss": "packet loss rate",
    "delay_s": "one-way delay",
    "down_s": "outage length",
    "period_s": "outage period",
    "queue_packets": "queue limit",
    "queue_bytes": "queue limit",
    "transfer_time_mean_s": "transfer time",
}


@dataclass(frozen=True)
class Scale:
    """One unit for a whole column or axis: shown value = value x `factor`."""

    factor: float
    unit: str

    def exact(self, value: float) -> str:
        """A value that was given, not measured: up to six significant digits."""
        return _plain(value * self.factor, 6)

    def interval(self, mean: float, half_width: float) -> str:
        """Mean and half-width, both to the interval's second significant digit.

        Examples
        --------
        >>> Scale(1e-3, "kb/s").interval(473_218.0, 4_321.0)
        '473.2 ± 4.3'
        >>> Scale(1.0, "s").interval(0.25, math.nan)
        '0.25'
        >>> Scale(1.0, "s").interval(math.nan, math.nan)
        '–'
        """
        mean, half_width = mean * self.factor, half_width * self.factor
        if not math.isfinite(mean):
            return "–"
        if not math.isfinite(half_width):
            return _plain(mean, 4)
        if half_width <= abs(mean) * 1e-9:
            return f"{_plain(mean, 4)} ± 0"
        if 0 < abs(mean) < 1e-3:
            return f"{_plain(mean, 3)} ± {_plain(half_width, 2)}"
        # Two digits of the interval, or one if the mean would then have more than four.
        magnitude = math.floor(math.log10(half_width))
        decimals = 1 - magnitude
        if mean and decimals > 3 - math.floor(math.log10(abs(mean))):
            decimals = max(3 - math.floor(math.log10(abs(mean))), -magnitude)
        decimals = max(decimals, 0)
        return f"{mean:.{decimals}f} ± {half_width:.{decimals}f}"


def unit_of(key: str) -> str:
    """Base unit in a key's suffix, or "".

    Examples
    --------
    >>> unit_of("link.rate_bps"), unit_of("rate_per_s"), unit_of("link.channel.ber")
    ('b/s', '1/s', '')
    """
    matches = [suffix for suffix in _SUFFIX if key.endswith(suffix)]
    return _SUFFIX[max(matches, key=len)] if matches else ""


def scale_for(key: str, values: Iterable[float]) -> Scale:
    """The unit in which the largest of `values` reads best.

    Examples
    --------
    >>> scale_for("goodput_bps", [12e3, 480e3]).unit
    'kb/s'
    >>> scale_for("delay_mean_s", [0.251]).unit
    'ms'
    """
    unit = unit_of(key)
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if unit == "%":
        return Scale(100.0, "%")
    if unit == "s" and 0 < largest < 1.5:
        return Scale(1e3, "ms") if largest >= 1e-3 else Scale(1e6, "µs")
    if unit in _PREFIXED:
        for factor, prefix in ((1e-9, "G"), (1e-6, "M"), (1e-3, "k")):
            if largest * factor >= 1:
                return Scale(factor, prefix + unit)
    return Scale(1.0, unit)


def label(key: str) -> str:
    """A key in words, without its unit.

    Examples
    --------
    >>> label("link.channel.ber"), label("link.rate_bps"), label("transport.sack.max_window_segments")
    ('bit error rate', 'rate', 'max window')
    """
    name = key.rpartition(".")[2]
    if name in _NAME:
        return _NAME[name]
    matches = [suffix for suffix in _SUFFIX if name.endswith(suffix) and suffix != name]
    return name.removesuffix(max(matches, key=len, default="")).replace("_", " ")


def labels(keys: list[str]) -> dict[str, str]:
    """A label for each key, with as much of its path as is needed to distinguish it."""
    short = {key: label(key) for key in keys}
    texts = list(short.values())
    return {key: text if texts.count(text) == 1 else f"{key.rpartition('.')[0]} {text}".strip() for key, text in short.items()}


def show(value: Any, key: str = "") -> str:
    """One value of the grid, with its unit.

    Examples
    --------
    >>> show(1e-07, "link.channel.ber"), show(622e6, "link.rate_bps"), show("sack")
    ('1e-7', '622 Mb/s', 'sack')
    >>> show({"weights": ["strict", 3, 1]})
    'weights strict, 3, 1'
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        if isinstance(value, dict):
            named = [str(value[k]).rpartition("/")[2] for k in ("kind", "file") if k in value]
            return " ".join(named) or ", ".join(f"{name} {show(inner, name)}" for name, inner in value.items())
        if isinstance(value, list):
            return ", ".join(show(inner) for inner in value)
        return str(value).lower() if isinstance(value, bool) else str(value)
    scale = scale_for(key, [float(value)])
    return f"{scale.exact(value)} {scale.unit}".rstrip()


def _plain(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(exponent)}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
