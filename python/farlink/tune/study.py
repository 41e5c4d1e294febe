"""A tuning study: conditions, connections, model of goodput, thresholds."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from farlink.errors import TuneError
from farlink.near_names import instead
from farlink.tune import goodput as models
from farlink.tune import modem as modems
from farlink.tune.description import (
    Between,
    Count,
    Description,
    Field,
    NotNegative,
    Number,
    Positive,
    PrivateAttr,
    Seed,
    Share,
    Text,
    model_validator,
    read_toml,
    validated,
)
from farlink.tune.impaired.impairment import Impairment, impairment
from farlink.tune.modem import Modem
from farlink.tune.offered import Path as NetworkPath
from farlink.tune.offered import Precision

_MOST_CONDITIONS = 10_000
# A table of so many takes some 200 MB as JSON.
_MOST_ROWS = 500_000

Several = Annotated[tuple[Positive, ...], Field(min_length=1)]


class Usable(Description):
    """Requirements of a setting; without one that meets them nothing is sent.

    Attributes
    ----------
    loss
        Largest probability that a segment is lost.
    goodput_bps
        Least goodput of all connections together.
    """

    loss: Share = 0.3
    goodput_bps: NotNegative = 0.0


class Thresholds(Description):
    """The C/N0 at which a modem changes from one setting to the next.

    Attributes
    ----------
    margin_db
        A setting is held down to so much above the C/N0 from which it is the best: what the measurement and the time until the
        modem has changed may cost.
    hysteresis_db
        It is entered from so much above that again.
    """

    margin_db: NotNegative = 0.0
    hysteresis_db: NotNegative = 0.5


class Simulated(Description):
    """How exactly engines find goodput.

    Attributes
    ----------
    ci
        The fluid engine goes on until the half-width of the interval is at most this share of the goodput.
    level
        Confidence level of that interval, and of those of the packet engine.
    """

    ci: Between = 0.01
    level: Between = 0.99


class Study(Description):
    """Conditions and goals of a tuning.

    Attributes
    ----------
    title
        For people.
    modem
        File of its description, relative to the study's.
    cn0_from_dbhz, cn0_to_dbhz, cn0_step_db
        Carrier power over noise density: from, to, and how finely.
    shares
        Shares of the carrier.
    bandwidths_hz
        Instead of `shares`: bandwidths that are allotted, in symbols per second, of a modem with one symbol rate.
    flows
        Numbers of TCP connections that a share is divided among.
    families
        Families of codes to choose from; all by default.
    round_trip_s
        Round trip without the time that a segment takes to be sent; or several, for a table that is entered by it.
    buffer_bdp
        Room in the queue, over what the link carries in a round trip; or several.
    segments_per_ack
        Segments that an acknowledgement answers.
    goodput
        Model of goodput: a key of `farlink.tune.goodput.GOODPUT`.
    tolerance
        Share of its goodput that the best setting must be better by, or the one of the C/N0 below is kept.
    usable
        What a setting must reach.
    thresholds
        The thresholds between settings.
    precision
        Of goodput that is simulated.
    impairment
        Of the link on top of the modem's noise: the table of a scenario's channel. Goodput is then by the packet engine.
    seed
        Of all that an impairment draws.
    """

    title: Text = "Tuning"
    modem: Text
    cn0_from_dbhz: Number
    cn0_to_dbhz: Number
    cn0_step_db: Positive = 1.0
    shares: tuple[Share, ...] = Field(default=(1.0,), min_length=1)
    bandwidths_hz: tuple[Positive, ...] | None = Field(default=None, min_length=1)
    flows: tuple[Count, ...] = Field(default=(1,), min_length=1)
    families: tuple[Text, ...] | None = Field(default=None, min_length=1)
    round_trip_s: Positive | Several = 0.5
    buffer_bdp: Positive | Several = 1.0
    segments_per_ack: Count = 1
    goodput: Text = "relation"
    tolerance: NotNegative = 0.005
    usable: Usable = Usable()
    thresholds: Thresholds = Thresholds()
    precision: Simulated = Simulated()
    impairment: dict[str, Any] | None = None
    seed: Seed = 1
    # Folder to which relative names of files in the impairment refer.
    _folder: Path | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _by_packets(cls, data: Any) -> Any:
        """An impairment needs packets; without one no seed is used."""
        if isinstance(data, dict) and data.get("impairment") is not None and "goodput" not in data:
            return {**data, "goodput": "packet"}
        if isinstance(data, dict) and data.get("impairment") is None and "seed" in data:
            raise ValueError("seed is of an impairment, and there is none; leave it out")
        return data

    @model_validator(mode="after")
    def _in_order(self) -> Study:
        if self.cn0_to_dbhz < self.cn0_from_dbhz:
            raise ValueError(f"cn0_to_dbhz = {self.cn0_to_dbhz:g} is below cn0_from_dbhz; exchange them")
        if (self.cn0_to_dbhz - self.cn0_from_dbhz) / self.cn0_step_db > _MOST_CONDITIONS:
            raise ValueError(f"cn0_step_db = {self.cn0_step_db:g} makes too many conditions; 0.1 or 1 is usual")
        if self.bandwidths_hz is not None and "shares" in self.model_fields_set:
            raise ValueError("shares and bandwidths_hz are both given; give one of them")
        axes: dict[str, tuple[float, ...]] = {
            "shares": self.shares,
            "bandwidths_hz": self.bandwidths_hz or (),
            "flows": self.flows,
            "round_trip_s": _each(self.round_trip_s),
            "buffer_bdp": _each(self.buffer_bdp),
        }
        for name, values in axes.items():
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: a value is given twice; give each once")
        count = len(self.cn0_dbhz) * len(self.bandwidths_hz or self.shares) * len(self.flows) * len(self.paths)
        if count > _MOST_ROWS:
            raise ValueError(f"the table has {count:,} conditions, and at most {_MOST_ROWS:,} are tuned; give fewer values")
        return self

    @property
    def cn0_dbhz(self) -> list[float]:
        """The conditions, from the lowest up; sums of steps without the errors of decimal fractions."""
        count = math.floor((self.cn0_to_dbhz - self.cn0_from_dbhz) / self.cn0_step_db + 1e-9) + 1
        return [round(self.cn0_from_dbhz + at * self.cn0_step_db, 9) for at in range(count)]

    def shares_of(self, modem: Modem) -> list[float]:
        """Shares of the modem's carrier, ascending: `shares`, or those that `bandwidths_hz` are.

        Raises
        ------
        TuneError
            If a bandwidth is larger than the carrier's, or the modem has several symbol rates.
        """
        if self.bandwidths_hz is None:
            return sorted(self.shares)
        if len(modem.symbol_rates_hz) > 1:
            rates = ", ".join(f"{rate:g}" for rate in modem.symbol_rates_hz)
            raise TuneError(
                f"bandwidths_hz: the modem has several symbol rates: {rates}", "give shares, or a modem for each symbol rate"
            )
        (whole_hz,) = modem.symbol_rates_hz
        if max(self.bandwidths_hz) > whole_hz:
            raise TuneError(
                f"bandwidths_hz of {max(self.bandwidths_hz):g} are more than the carrier's {whole_hz:g} symbol/s",
                "give symbols per second, up to the carrier's",
            )
        return sorted(bandwidth / whole_hz for bandwidth in self.bandwidths_hz)

    @cached_property
    def over(self) -> Impairment | None:
        """Impairment of the link, or None.

        Raises
        ------
        TuneError
            If a scenario would refuse its table, or channels of its kind are not played.
        """
        return None if self.impairment is None else impairment(self.impairment, seed=self.seed, folder=self._folder)

    def in_folder(self, folder: Path) -> Study:
        """The same study; relative names of files in its impairment refer to a folder."""
        copied = self.model_copy()
        copied._folder = folder
        return copied

    def model_of(self, goodput: str | None = None) -> str:
        """The model of goodput: another than the study's if it is given.

        Raises
        ------
        TuneError
            If there is no such model, or it does not hold over the impairment.
        """
        name = goodput or self.goodput
        models.check(name)
        if self.over is not None:
            models.check_impaired(name, self.over.kind)
        return name

    @property
    def simulated(self) -> Precision:
        """How exactly engines find goodput."""
        return Precision(self.precision.ci, self.precision.level)

    @property
    def paths(self) -> list[NetworkPath]:
        """Paths of connections other than the link: each round trip with each buffer, ascending."""
        each = product(sorted(_each(self.round_trip_s)), sorted(_each(self.buffer_bdp)))
        return [NetworkPath(round_trip_s, buffer_bdp, self.segments_per_ack) for round_trip_s, buffer_bdp in each]

    @property
    def path(self) -> NetworkPath:
        """The path of pictures of one: the first round trip and buffer that are given."""
        return NetworkPath(_each(self.round_trip_s)[0], _each(self.buffer_bdp)[0], self.segments_per_ack)


def _each(value: float | tuple[float, ...]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def load(path: str | Path) -> tuple[Study, Modem]:
    """Read a study and the modem that it names.

    Parameters
    ----------
    path
        TOML file of the study.

    Raises
    ------
    TuneError
        If either cannot be read, or a key is missing, unknown or has a value that is not allowed.
    """
    path = Path(path)
    study = validated(Study, read_toml(path, what="study"), where=str(path)).in_folder(path.absolute().parent)
    try:
        study.model_of()
    except TuneError as error:
        raise TuneError(f"{path}: {error.message}", error.remedy) from error
    tuned = modems.load(path.parent / study.modem)
    try:
        study.shares_of(tuned)
    except TuneError as error:
        raise TuneError(f"{path}: {error.message}", error.remedy) from error
    for name in study.families or ():
        if name not in tuned.code:
            raise TuneError(f"{path}: families: the modem has no codes {name!r}", instead(name, list(tuned.code)))
    return study, tuned
