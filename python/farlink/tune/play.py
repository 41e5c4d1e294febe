"""A modem over a series of C/N0: which setting it uses when, as a rate and an error rate that links replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from farlink.channels.trace import Trace
from farlink.errors import TuneError
from farlink.near_names import instead
from farlink.tune import goodput as models
from farlink.tune.curves import MOST_BER, Floats, Whole, curves
from farlink.tune.instants import instants
from farlink.tune.modem import Modem, Setting
from farlink.tune.offered import Path, Progress
from farlink.tune.policies import POLICIES, SILENT, Condition, name, named, number_of
from farlink.tune.reader import LookUp
from farlink.tune.row import OK

# Digits that an error rate is kept with: traces of few different values take little room.
_DIGITS = 4


@dataclass(frozen=True)
class Played:
    """A modem over a series of C/N0, instant by instant.

    Attributes
    ----------
    policy
        How the setting was chosen; a key of `farlink.tune.policies.POLICIES`.
    settings
        What the modem could be set to.
    step_s
        From instant to instant.
    cn0_dbhz
        C/N0; ``-inf`` is no signal. Shape ``(n,)``, as all below.
    setting
        Number of the setting in use, -1 where nothing is sent.
    rate_bps
        Bits of segments, headers included, that are sent.
    ber
        Equivalent bit error rate of the setting in use at the C/N0 of the instant (see `farlink.tune.curves.ber_of`); 0.5 where
        nothing is sent, so that a frame which a silence cuts is lost.
    loss
        Probability that a segment is lost; 1 where nothing is sent.
    goodput_bps
        Data that all connections together would deliver if the instant lasted, by the table's model.
    usable_loss
        Losses above this count as an outage.
    warnings
        What was outside the table, a sentence each.
    meta
        Of the traces.
    """

    policy: str
    settings: tuple[Setting, ...]
    step_s: float
    cn0_dbhz: Floats
    setting: Whole
    rate_bps: Floats
    ber: Floats
    loss: Floats
    goodput_bps: Floats
    usable_loss: float
    warnings: tuple[str, ...]
    meta: dict[str, Any]

    @property
    def duration_s(self) -> float:
        """How long the series lasts."""
        return float(self.step_s * self.setting.size)

    @property
    def silence(self) -> float:
        """Share of the time in which nothing is sent."""
        return float(np.mean(self.setting == SILENT))

    @property
    def outage(self) -> float:
        """Share of the time in which nothing is sent, or more than `usable_loss` of the segments are lost."""
        return float(np.mean(self.loss > self.usable_loss))

    @property
    def switches_per_hour(self) -> float:
        """How often the setting changes, to and from silence too."""
        return float(np.count_nonzero(np.diff(self.setting)) * 3600 / self.duration_s)

    @property
    def information_bps(self) -> float:
        """Mean of the rate."""
        return float(self.rate_bps.mean())

    @property
    def mean_goodput_bps(self) -> float:
        """Mean of the goodput."""
        return float(self.goodput_bps.mean())

    @cached_property
    def time_in(self) -> dict[str, float]:
        """Share of the time in each setting that is used, by its name; the longest first."""
        numbers, counts = np.unique(self.setting, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        shares = counts / self.setting.size
        return {
            "no transmission" if numbers[at] == SILENT else name(self.settings[numbers[at]]): float(shares[at]) for at in order
        }

    def rate_trace(self) -> Trace:
        """The rate over time, for ``rate_bps = { kind = "rate-trace", file = ... }``.

        Raises
        ------
        TraceError
            If nothing is ever sent.
        """
        begins = np.flatnonzero(np.concatenate(([True], np.diff(self.rate_bps) != 0)))
        arrays = {"time_s": self.step_s * begins, "rate_bps": self.rate_bps[begins]}
        return Trace("rate", arrays, self._meta("information rate"))

    def ber_trace(self) -> Trace:
        """The error rate over time, for ``channel = { kind = "ber-trace", file = ... }``."""
        return Trace("ber", {"ber": self.ber}, self._meta("bit error rate"))

    def _meta(self, what: str) -> dict[str, Any]:
        return {**self.meta, "title": f"{what}, {self.meta['title']}", "duration_s": self.duration_s}


def play(
    trace: Trace,
    lookup: LookUp,
    modem: Modem,
    *,
    share: float = 1.0,
    flows: int = 1,
    policy: str = "adaptive",
    setting: str | None = None,
    detection_s: float = 0.0,
    step_s: float | None = None,
    goodput: str = "relation",
    path: Path | None = None,
    usable_loss: float = 0.3,
    progress: Progress | None = None,
) -> Played:
    """A modem's settings over a series of C/N0.

    Parameters
    ----------
    trace
        Of kind ``cn0``.
    lookup
        A table of this modem. Its settings for the share and the connections are those to choose among.
    modem
        What is set.
    share
        Share of the carrier, in (0, 1].
    flows
        TCP connections on it.
    policy
        ``"adaptive"``: the table's setting at the C/N0 of `detection_s` ago, with its hysteresis. ``"ideal"``: the setting of
        the highest goodput at every instant. ``"fixed"``: one setting.
    setting
        Which setting is fixed, "MODULATION, CODE"; unless given the one of the highest mean goodput over the series.
    detection_s
        How old a C/N0 is when the modem acts on it.
    step_s
        From instant to instant; unless given the longest that meets all times of the series and the detection.
    goodput, path
        Model of goodput and path of the connections: those of the study of the table.
    usable_loss
        Losses above this count as an outage.
    progress
        Called with the settings done and planned.

    Returns
    -------
    Played
        Error rates are equivalent ones: bits that are wrong independently of each other lose as many segments as the modem
        does, whose wrong bits come in bursts. So they hold for segments of the modem's length only.

    Raises
    ------
    TuneError
        If it is a trace of another kind, the table is of another modem, or a name or value is not allowed.
    """
    _check(trace, policy, setting, share=share, flows=flows, detection_s=detection_s, usable_loss=usable_loss)
    models.check(goodput)
    step_s, cn0 = instants(trace, detection_s if policy == "adaptive" else 0.0, step_s)
    settings = _settings(lookup, modem, share, flows, setting)
    found = curves(modem, settings, cn0, share=share, flows=flows, goodput=goodput, path=path or Path(), progress=progress)
    late = detection_s if policy == "adaptive" else 0.0
    chosen, said = POLICIES[policy](Condition(cn0, step_s, late, share, flows, lookup, found, setting))
    rate, ber = np.zeros(cn0.size), np.full(cn0.size, MOST_BER)
    loss, delivered = np.ones(cn0.size), np.zeros(cn0.size)
    for number in np.unique(chosen[chosen != SILENT]):
        here = chosen == number
        rate[here] = found.information_bps[number]
        ber[here] = rounded(found.ber(number, cn0[here]))
        loss[here] = found.loss(number, cn0[here])
        delivered[here] = found.goodput(number, cn0[here])
    said = [*said, *_beyond(modem, settings, share, chosen, cn0)]
    meta = _meta(trace, policy, share=share, flows=flows, detection_s=late, modem=modem.title)
    if policy == "fixed":
        meta["setting"] = name(settings[chosen[0]])
    return Played(policy, tuple(settings), step_s, cn0, chosen, rate, ber, loss, delivered, usable_loss, tuple(said), meta)


def rounded(ber: Floats) -> Floats:
    """Error rates of four digits.

    Examples
    --------
    >>> rounded(np.array([1.23456e-6, 0.0, 0.5]))
    array([1.235e-06, 0.000e+00, 5.000e-01])
    """
    exponent = np.floor(np.log10(np.where(ber > 0, ber, 1.0))).astype(np.int64)
    distinct, where = np.unique(
        np.stack([np.round(ber / 10.0 ** (exponent - _DIGITS + 1)), exponent]), axis=1, return_inverse=True
    )
    # As a text has them, so that equal values are equal bytes.
    values = [float(f"{int(digits)}e{int(power) - _DIGITS + 1}") for digits, power in distinct.T]
    return np.array(values)[where.reshape(-1)]


def _check(trace: Trace, policy: str, setting: str | None, **values: float) -> None:
    if trace.kind != "cn0":
        raise TuneError(f"a {trace.kind} trace, where C/N0 is wanted", "import one, or draw one: farlink trace synthesize rain")
    if policy not in POLICIES:
        raise TuneError(f"policy: there is none called {policy!r}", instead(policy, list(POLICIES)))
    if setting is not None and policy != "fixed":
        raise TuneError(f"a setting is given, but the policy is {policy}", "choose the policy fixed, or give no setting")
    rules = {
        "share": (0 < values["share"] <= 1, "above 0 and at most 1"),
        "flows": (1 <= values["flows"] < np.inf, "at least 1"),
        "detection_s": (0 <= values["detection_s"] < np.inf, "a number of seconds, at least 0"),
        "usable_loss": (0 <= values["usable_loss"] <= 1, "from 0 to 1"),
    }
    for key, (is_right, rule) in rules.items():
        if not is_right:
            raise TuneError(f"{key} is {values[key]:g}", f"it is {rule}")


def _settings(lookup: LookUp, modem: Modem, share: float, flows: int, setting: str | None) -> list[Setting]:
    """The table's settings for a share and a number of connections, and the requested one."""
    every = tuple(modem.settings())
    used = sorted({number_of(row, every) for row in lookup.rows(share=share, flows=flows) if row.status == OK})
    if not used:
        raise TuneError(
            f"share {share:g}, {flows} flows: the table has no setting at any C/N0", "make a table up to a higher C/N0"
        )
    if setting is not None and (asked := named(setting, every)) not in used:
        used.append(asked)
    return [every[at] for at in used]


def _beyond(modem: Modem, settings: Sequence[Setting], share: float, chosen: Whole, cn0_dbhz: Floats) -> list[str]:
    """How much of the time a setting is used above what was measured of it."""
    found = []
    for number in np.unique(chosen[chosen != SILENT]):
        end = modem.known_to_dbhz(settings[number], share=share)
        above = float(np.mean((chosen == number) & (cn0_dbhz > end + 1e-6)))
        if above > 0:
            words = f"{name(settings[number])} was measured up to {end:.6g} dBHz only; its error rate there is used above"
            found.append(f"{words}, {100 * above:.3g} % of the time")
    return found


def _meta(trace: Trace, policy: str, **values: Any) -> dict[str, Any]:
    given = {key: value for key, value in trace.meta.items() if key in ("synthetic", "seed", "licence", "gaps_s", "parameters")}
    late = f" {values['detection_s']:g} s after a change" if policy == "adaptive" else ""
    notes = (
        str(trace.meta.get("notes", "")),
        f"Modem: {values['modem']}, share {values['share']:g}. Bit error rates are those at which bits that are wrong",
        "independently lose as many segments as the modem's bursts do.",
    )
    return {
        **given,
        "title": f"{policy}{late}: {trace.title}",
        "source": str(trace.meta.get("source", trace.title)),
        "notes": " ".join(part for part in notes if part),
        "policy": policy,
    }
