"""Synthetic received power, combined from its parts and labelled as synthetic."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments
from farlink.channels.parameter import Value
from farlink.channels.synthesis import blockage, pointing
from farlink.channels.synthesis.elements import next_pass
from farlink.channels.synthesis.orbit import LOWEST_DEG, CircularPass, Pass, delay_trace
from farlink.channels.synthesis.parameters import with_overrides
from farlink.channels.synthesis.presets import preset
from farlink.channels.synthesis.request import check_request, check_samples
from farlink.channels.synthesis.streams import root_seed, stream
from farlink.channels.synthesis.turbulence import turbulence
from farlink.channels.trace import Trace, read_bytes
from farlink.errors import TraceError

DURATION_S = 100.0

SOURCE = "farlink, synthetic fading"


@dataclass(frozen=True)
class Synthesis:
    """A realisation that is settled but not yet drawn.

    Parameters
    ----------
    name
        Its preset.
    values
        All parameters.
    duration_s
        How long, in s.
    seed
        Seed of every random stream.
    geometry
        The pass, if there is one.
    """

    name: str
    values: dict[str, Any]
    duration_s: float
    seed: int
    geometry: Pass | None

    kind: ClassVar[str] = "power"

    @property
    def title(self) -> str:
        """Title of its traces."""
        return f"{self.name.upper() if self.name in ('fasolt', 'kiodo', 'atenaa') else self.name}, seed {self.seed} (synthetic)"

    @property
    def root(self) -> int:
        """Root seed of its random streams."""
        return root_seed(self.seed, self.name)

    @property
    def made_by(self) -> str:
        """Versions that influence the drawn values, other than those of farlink and NumPy."""
        elements = str(self.values["elements"])
        return hashlib.sha256(read_bytes(Path(elements))).hexdigest() if elements else ""

    def draw(self, progress: Callable[[int, int], None] | None = None) -> Trace:
        """Draw its trace: see `power`."""
        return self.power(progress)

    def power(self, progress: Callable[[int, int], None] | None = None) -> Trace:
        """Draw the received power, a trace of kind ``power``.

        Parameters
        ----------
        progress
            Called with the steps done and planned.
        """
        values, rate_hz = self.values, self.values["sample_rate_hz"]
        samples = round(self.duration_s * rate_hz)
        beams = int(values["transmitters"])
        steps = beams + 3
        tell = progress or (lambda _done, _total: None)
        power = turbulence(values, samples, self.root, 0, self.geometry)
        tell(1, steps)
        for beam in range(1, beams):
            power += turbulence(values, samples, self.root, beam, self.geometry)
            tell(1 + beam, steps)
        power *= values["mean_power_w"] / beams
        self._point(power)
        tell(beams + 1, steps)
        if self.geometry is not None and values["transmit_power"] == "constant":
            power *= self._path_factor(samples)
        tell(beams + 2, steps)
        arrays: dict[str, NDArray[Any]] = {"power_w": power}
        blocked = self._block(power)
        if blocked is not None:
            arrays["blocked"] = blocked.astype(np.uint8)
        tell(steps, steps)
        return Trace("power", arrays, self._meta())

    def delay(self, step_s: float = 0.01) -> Trace:
        """The one-way propagation delay of its pass, a trace of kind ``delay``.

        Parameters
        ----------
        step_s
            Time from value to value, in s.

        Raises
        ------
        TraceError
            If it has no pass.
        """
        if self.geometry is None:
            raise TraceError(f"{self.name} has no pass, so its delay does not vary", "give orbit=circular, or a plain delay_s")
        trace = delay_trace(self.geometry, self.duration_s, f"delay of {self.title}", step_s)
        return Trace("delay", trace.arrays, {**self._meta(), "title": trace.title})

    def _point(self, power: NDArray[np.float64]) -> None:
        values, rate_hz = self.values, self.values["sample_rate_hz"]
        if values["jitter_rad"] > 0:
            power *= pointing.jitter(
                power.size,
                rate_hz,
                self.root,
                jitter_rad=values["jitter_rad"],
                beam_radius_rad=values["beam_radius_rad"],
                cutoff_hz=values["jitter_cutoff_hz"],
            )
        if values["sway"] > 0:
            power *= pointing.sway(
                power.size,
                rate_hz,
                self.root,
                deviation=values["sway"],
                low_hz=values["sway_low_hz"],
                high_hz=values["sway_high_hz"],
            )

    def path_factor(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Power that arrives by distance and atmosphere, up to a factor, at times from the start.

        Parameters
        ----------
        time_s
            The times, in s.
        """
        assert self.geometry is not None
        factor: NDArray[np.float64] = self.geometry.range_m(time_s) ** -2.0
        if self.values["zenith_loss_db"] > 0:
            air_masses = 1 / np.sin(np.radians(self.geometry.elevation_deg(time_s)))
            factor *= 10 ** (-self.values["zenith_loss_db"] * air_masses / 10)
        return factor

    def _path_factor(self, samples: int) -> NDArray[np.float64]:
        """The same over its mean in time, so that `mean_power_w` is the mean of the whole trace."""
        time_s = np.linspace(0.0, self.duration_s, max(math.ceil(10 * self.duration_s), 1) + 1)
        each = np.interp(np.arange(samples) / self.values["sample_rate_hz"], time_s, self.path_factor(time_s))
        found: NDArray[np.float64] = each / each.mean()
        return found

    def _block(self, power: NDArray[np.float64]) -> NDArray[np.bool_] | None:
        values = self.values
        blocks: list[blockage.Block] = []
        if values["clear_mean_s"] > 0:
            renewal = blockage.Renewal(
                values["clear_mean_s"],
                values["short_share"],
                (values["short_min_s"], values["short_max_s"]),
                (values["long_min_s"], values["long_max_s"]),
                (values["edge_min_s"], values["edge_max_s"]),
                (values["reacquisition_min_s"], values["reacquisition_max_s"]),
                values["reacquisition_after_s"],
            )
            blocks += renewal.blocks(self.duration_s, stream(self.root, "blockage"))
        if values["tracking_loss_every_s"] > 0:
            every_s, length_s = values["tracking_loss_every_s"], values["tracking_loss_s"]
            blocks += blockage.tracking_losses(self.duration_s, every_s, length_s, stream(self.root, "tracking"))
        elif values["clear_mean_s"] == 0:
            return None
        passed, blocked = blockage.transmission(iter(blocks), power.size, values["sample_rate_hz"], values["floor"])
        power *= passed
        return blocked

    def _meta(self) -> dict[str, Any]:
        found = preset(self.name)
        notes = f"Not measured: stands for {found.title}."
        start_utc = getattr(self.geometry, "start_utc", None)
        return {
            "title": self.title,
            "source": f"{SOURCE}, preset {self.name}",
            "notes": notes + (f" {found.notes[0].upper()}{found.notes[1:]}." if found.notes else ""),
            "duration_s": self.duration_s,
            "synthetic": True,
            "preset": self.name,
            "seed": self.seed,
            "parameters": {name: self.values[name] for name in sorted(self.values)},
            **({"pass_start_utc": start_utc} if start_utc else {}),
        }


def settle(
    name: str, overrides: Mapping[str, object] | None = None, *, duration_s: float | None = None, seed: int = 1
) -> Synthesis:
    """Check the parameters, and compute the pass.

    Parameters
    ----------
    name
        One of `farlink.channels.synthesis.PRESETS`.
    overrides
        Parameters, see `farlink.channels.synthesis.PARAMETERS`; numbers may be texts.
    duration_s
        How long, in s; by default 100 s, and with ``direction="whole"`` all of the pass.
    seed
        Seed of every random stream, at least 0.

    Raises
    ------
    TraceError
        If a name is unknown or a value not allowed.
    """
    defaults = preset(name).values
    check_request(duration_s, seed)
    values = with_overrides(defaults, overrides or {})
    geometry = _pass(values)
    wanted_s = duration_s
    if wanted_s is None:
        wanted_s = DURATION_S
        if geometry is not None and values["direction"] == "whole":
            wanted_s = math.floor(geometry.duration_s)
    if geometry is not None and wanted_s > geometry.duration_s + 1e-6:
        raise TraceError(
            f"duration_s: {wanted_s:g} s is longer than the pass, "
            f"which comes down to {LOWEST_DEG:g} degrees after {geometry.duration_s:.1f} s",
            _shorter(geometry, wanted_s),
        )
    samples = round(wanted_s * float(values["sample_rate_hz"]))
    check_samples(samples, wanted_s, least=2, step="sample_rate_hz")
    # A whole number of samples, so that the sample interval has its stated value.
    return Synthesis(name, dict(values), samples / float(values["sample_rate_hz"]), seed, geometry)


@checked_arguments
def synthesize(name: str, *, duration_s: float | None = None, seed: int = 1, **overrides: object) -> Trace:
    """Generate a trace of received power, labelled as synthetic.

    Parameters
    ----------
    name
        One of `farlink.channels.synthesis.PRESETS`.
    duration_s
        How long, in s; by default 100 s, and with ``direction="whole"`` all of the pass.
    seed
        Seed of every random stream, at least 0. The same seed, duration and parameters give the same trace.
    overrides
        Parameters, see `farlink.channels.synthesis.PARAMETERS`.

    Returns
    -------
    Trace
        Of kind ``power``; its mean where nothing blocks is ``mean_power_w``, 37.2 nW by default.

    Raises
    ------
    TraceError
        If a name is unknown or a value not allowed.

    Examples
    --------
    >>> trace = synthesize("testbed", duration_s=10, seed=7)
    >>> trace.title, trace["power_w"].size
    ('testbed, seed 7 (synthetic)', 100000)
    """
    return settle(name, overrides, duration_s=duration_s, seed=seed).power()


def _pass(values: dict[str, Value]) -> Pass | None:
    start_deg, max_deg = float(values["start_elevation_deg"]), float(values["max_elevation_deg"])
    is_rising = values["direction"] != "falling"
    if values["orbit"] == "circular":
        return CircularPass(float(values["altitude_m"]), start_deg, max_deg, is_rising)
    if values["orbit"] == "elements":
        return next_pass(
            Path(str(values["elements"])),
            str(values["satellite"]),
            latitude_deg=float(values["latitude_deg"]),
            longitude_deg=float(values["longitude_deg"]),
            height_m=float(values["height_m"]),
            after_utc=str(values["after_utc"]),
            start_elevation_deg=start_deg,
            max_elevation_deg=max_deg,
            is_rising=is_rising,
        )
    return None


def _shorter(geometry: Pass, wanted_s: float) -> str:
    if isinstance(geometry, CircularPass) and not geometry.is_rising:
        rising = CircularPass(geometry.altitude_m, LOWEST_DEG, geometry.max_elevation_deg)
        if wanted_s <= rising.culmination_s:
            start_deg = math.ceil(100 * float(rising.elevation_deg(np.array(wanted_s)))) / 100
            return f"start higher: start_elevation_deg={start_deg:g} comes down to {LOWEST_DEG:g} degrees in that time"
    return f"give at most {math.floor(geometry.duration_s)} s"
