"""An impairment of the link on top of the modem's noise: a channel of a scenario, under `[impairment]` of a tuning study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink import scenario
from farlink.arguments import checked_arguments
from farlink.errors import FarlinkError, TuneError

# Kinds of channel -> how they are played; see `farlink.tune.impaired.play`.
KINDS = ("gilbert-elliott", "outage", "fading", "ber-trace")
_WHY = {
    "none": "it impairs nothing",
    "ber": "its errors are independent, as those of noise are",
    "loss": "its losses are independent, and no code sees them",
    "coded": "it is a modem of its own, and the study has one",
}
_LINK_BPS = 1e6


@dataclass(frozen=True)
class Impairment:
    """Impairment of a link.

    Attributes
    ----------
    kind
        Of the channel.
    text
        Its table as JSON, with the defaults of a scenario and with the paths of files.
    seed
        Of all that is random: bursts, outages, TCP's start.
    """

    kind: str
    text: str
    seed: int

    @property
    def table(self) -> dict[str, Any]:
        """The table of the channel."""
        found: dict[str, Any] = json.loads(self.text)
        return found


@checked_arguments
def words(table: Mapping[str, Any]) -> str:
    """An impairment for people: its kind and its keys.

    Examples
    --------
    >>> words({"kind": "outage", "rate_per_s": 0.1, "down_s": 0.005})
    'outage, rate_per_s 0.1, down_s 0.005'
    """
    return ", ".join(
        [str(table.get("kind", "no kind")), *(f"{key} {_shown(value)}" for key, value in table.items() if key != "kind")]
    )


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if len(str(value)) <= 40 else f"{str(value)[:36]} ..."


@checked_arguments
def impairment(table: Mapping[str, Any], *, seed: int = 1, folder: Path | None = None) -> Impairment:
    """An impairment from the table of a scenario's channel, which the scenario's rules check.

    Parameters
    ----------
    table
        As `[link.channel]` of a scenario.
    seed
        Of all that is random.
    folder
        That relative names of files refer to; the present one unless given.

    Raises
    ------
    TuneError
        If a scenario would refuse the table, or channels of its kind cannot be played through the decoders of a modem.

    Examples
    --------
    >>> impairment({"kind": "outage", "rate_per_s": 0.1, "down_s": 0.005}).table
    {'down_s': 0.005, 'kind': 'outage', 'rate_per_s': 0.1}
    """
    trial = {
        "duration_s": 1.0,
        "link": {"rate_bps": _LINK_BPS, "delay_s": 0.1, "channel": dict(table)},
        "transport": {"reno": {"kind": "tcp"}},
        "flow": {"bulk": {"transport": "reno", "traffic": {"kind": "bulk"}}},
    }
    try:
        read = scenario.from_data(trial, base=folder)
        read.points()
        channel = json.loads(read.to_json())["link"]["channel"]
        filled = read.normalised()["link"]["channel"]
    except FarlinkError as error:
        raise TuneError(error.message.replace("link.channel", "impairment", 1), error.remedy) from error
    kind = str(filled["kind"])
    if kind not in KINDS:
        why = _WHY.get(kind, "it is not played through the decoders of a modem")
        raise TuneError(f"impairment.kind: {kind!r} is none: {why}", f"give one of {', '.join(KINDS)}")
    if "file" in filled:
        filled["file"] = channel["file"]
    return Impairment(kind, json.dumps(filled, sort_keys=True), seed)
