"""Configuration of a bank: its modems, the line between them, how calls drop, and scheduled events."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.near_names import instead
from farlink.operator.at.profiles import SCALES, Profile, load
from farlink.operator.bank.drops import recorded
from farlink.operator.tables import Key, Mistake, mistakes_of, name_of, number, read_tables, refuse, switch, text, whole

MOST_MODEMS = 64
# Of a direction of a call.
_MOST_FLYING_BYTES = 1e7
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_NUMBER = re.compile(r"[0-9]{1,20}")
_FIRST_NUMBER = 881_600_005_001

ACTIONS = {
    "drop": "its call is lost",
    "busy": "whoever calls it hears BUSY",
    "silent": "it answers nothing, neither AT nor calls",
    "deaf": "its calls stay up and carry nothing",
    "normal": "neither busy nor silent nor deaf",
    "signal": "its signal is `level` from now on; 0 loses its call",
}


@dataclass(frozen=True)
class ModemConfig:
    """One modem: name, number, profile, signal at the start (the best if -1), PIN of its SIM, how calls that it dials drop.

    Whoever is called by a modem that hides its number is not told it.
    """

    name: str
    number: str
    profile: Profile
    signal: int = -1
    pin: str = ""
    mean_up_s: float = math.inf
    recorded_s: tuple[float, ...] = ()
    hides_number: bool = False


@dataclass(frozen=True)
class Scripted:
    """Something that is done to a modem so many seconds after the start: one of `ACTIONS`."""

    at_s: float
    modem: str
    action: str
    level: int = 0


@dataclass(frozen=True)
class BankConfig:
    """A bank of modems.

    Attributes
    ----------
    modems
        In the order of their ports.
    rate_bps, delay_s
        Of each call, both ways.
    set_up_s
        From the answer of the called modem, or from a dial that fails, to the result.
    ring_limit_s
        After so long without an answer the caller gets NO ANSWER.
    buffer_bytes
        Most bytes of a call that wait to be sent; then the terminal is not read.
    seed
        Of the drops.
    events
        What happens when.
    """

    modems: tuple[ModemConfig, ...]
    rate_bps: float = 2400.0
    delay_s: float = 0.7
    set_up_s: float = 2.0
    ring_limit_s: float = 60.0
    buffer_bytes: int = 4096
    seed: int = 1
    events: tuple[Scripted, ...] = field(default=())


_LINE_KEYS: Mapping[str, Key] = {
    "rate_bps": number(50, 1e8),
    "delay_s": number(0, 60),
    "set_up_s": number(0, 600),
    "ring_limit_s": number(0.1, 600),
    "buffer_bytes": whole(64, 1 << 20),
}
_DROP_KEYS: Mapping[str, Key] = {
    "mean_up_s": number(0.1, 1e9),
    "log": text(bool, "the path of a log of calls"),
    "link": text(bool, "the name of a link of the log"),
}
_KIND_KEYS: Mapping[str, Key] = {
    "profile": text(bool, "the name of a profile, or a TOML file"),
    "pin": text(str.isdigit, "digits"),
}
_MODEM_KEYS: Mapping[str, Key] = {
    "name": text(lambda name: bool(_NAME.fullmatch(name)), "a name of letters, digits, dots and dashes", is_needed=True),
    "number": text(lambda digits: bool(_NUMBER.fullmatch(digits)), "a text of 1 to 20 digits"),
    "signal": whole(0, 31),
    "hides_number": switch(),
    **_KIND_KEYS,
    **_DROP_KEYS,
}
_EVENT_KEYS: Mapping[str, Key] = {
    "at_s": number(0, 1e9, is_needed=True),
    "modem": text(bool, "the name of a modem", is_needed=True),
    "do": name_of(ACTIONS, is_needed=True),
    "level": whole(0, 31),
}


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


_KEYS: Mapping[str, Key] = {
    "modems": whole(1, MOST_MODEMS),
    "seed": whole(0, 10**15),
    "modem": Key(_are_tables, "a list of tables, [[modem]]"),
    "event": Key(_are_tables, "a list of tables, [[event]]"),
    **_LINE_KEYS,
    **_KIND_KEYS,
    **_DROP_KEYS,
}


def read(path: Path, **given: Any) -> BankConfig:
    """A bank from its TOML file, or JSON file with the same keys.

    Parameters
    ----------
    path
        The file.
    given
        Keys that take the place of those of the file; those that are None are left out.

    Raises
    ------
    OperatorError
        If it has mistakes: all of them are named.
    """
    table = _json(path) if path.suffix == ".json" else read_tables(path, "a bank of modems")
    return config_of({**table, **_without_none(given)}, where=str(path))


def of_options(**given: Any) -> BankConfig:
    """A bank from the values of options; those that are None are left out.

    Examples
    --------
    >>> [modem.name for modem in of_options(modems=2, profile="hayes").modems]
    ['modem-1', 'modem-2']
    """
    return config_of(_without_none(given), where="farlink bundle bank")


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}


def config_of(table: Mapping[str, Any], *, where: str) -> BankConfig:
    """A bank from the tables of its file.

    Parameters
    ----------
    table
        What was read.
    where
        The file, for messages.

    Raises
    ------
    OperatorError
        If there are mistakes.
    """
    found = mistakes_of(table, _KEYS)
    refuse(found, where)
    rows = list(table.get("modem", ()))
    for at in range(len(rows), table.get("modems", 0 if rows else 2)):
        rows.append({"name": f"modem-{at + 1}"})
    for at, row in enumerate(rows):
        found += mistakes_of(row, _MODEM_KEYS, inside=f"modem[{at}].")
    events = table.get("event", ())
    for at, row in enumerate(events):
        found += mistakes_of(row, _EVENT_KEYS, inside=f"event[{at}].")
    if len(rows) > MOST_MODEMS:
        found.append(Mistake(f"{len(rows)} modems", f"give at most {MOST_MODEMS}"))
    refuse(found, where)
    flying_bytes = table.get("rate_bps", 0) * table.get("delay_s", 0) / 8
    if flying_bytes > _MOST_FLYING_BYTES:
        message = f"rate_bps and delay_s: {flying_bytes:.3g} bytes would be under way in each direction"
        found.append(Mistake(message, f"give less than {_MOST_FLYING_BYTES:.3g} bytes"))
    modems = _modems(table, rows, found)
    _check_events(events, modems, found)
    refuse(found, where)
    scripted = [Scripted(row["at_s"], row["modem"], row["do"], row.get("level", 0)) for row in events]
    return BankConfig(
        modems=tuple(modems),
        **{key: table[key] for key in (*_LINE_KEYS, "seed") if key in table},
        events=tuple(sorted(scripted, key=lambda one: one.at_s)),
    )


def _modems(table: Mapping[str, Any], rows: list[dict[str, Any]], found: list[Mistake]) -> list[ModemConfig]:
    modems: list[ModemConfig] = []
    numbers: set[str] = set()
    logs: dict[tuple[str, str | None], list[tuple[float, ...]]] = {}
    for at, row in enumerate(rows):
        # A modem's own way to drop takes the place of that of all modems.
        common = {key: value for key, value in table.items() if key not in _DROP_KEYS or not _DROP_KEYS.keys() & row.keys()}
        own = {**common, **row}
        try:
            profile = load(own.get("profile", "iridium-9522b"))
        except OperatorError as error:
            found.append(Mistake(f"modem[{at}].profile: {error.message}", error.remedy))
            continue
        if row.get("signal", 0) > max(SCALES[profile.signal], 1):
            message = f"modem[{at}].signal: {row['signal']} is above the scale of {profile.name}"
            found.append(Mistake(message, f"give 0 to {max(SCALES[profile.signal], 1)}"))
        recorded_s: tuple[float, ...] = ()
        if "log" in own and "mean_up_s" in own:
            found.append(Mistake(f"modem[{at}]: log and mean_up_s both say how calls drop", "give one of them"))
        elif "log" in own:
            key = own["log"], own.get("link")
            if key not in logs:
                logs[key] = list(recorded(Path(key[0]), key[1]).values())
            recorded_s = logs[key][at % len(logs[key])]
        elif "link" in own:
            found.append(Mistake(f"modem[{at}]: link is given without log", "give the log that it is a link of"))
        digits = str(row.get("number", _FIRST_NUMBER + at))
        if digits in numbers:
            found.append(
                Mistake(f"modem[{at}].number: {digits} is that of another modem", "give each modem a number of its own")
            )
        numbers.add(digits)
        if any(modem.name == row["name"] for modem in modems):
            found.append(Mistake(f"modem[{at}].name: {row['name']!r} is that of another modem", "give each modem a name"))
        modems.append(
            ModemConfig(
                row["name"],
                digits,
                profile,
                row.get("signal", -1),
                own.get("pin", ""),
                own.get("mean_up_s", math.inf),
                recorded_s,
                row.get("hides_number", False),
            )
        )
    return modems


def _check_events(events: Any, modems: list[ModemConfig], found: list[Mistake]) -> None:
    names = [modem.name for modem in modems]
    for at, row in enumerate(events):
        if row["modem"] not in names:
            found.append(Mistake(f"event[{at}].modem: there is no modem {row['modem']!r}", instead(row["modem"], names)))
        if (row["do"] == "signal") != ("level" in row):
            found.append(Mistake(f"event[{at}]: level belongs to do = 'signal', and only to that", "give both or neither"))


def _json(path: Path) -> dict[str, Any]:
    import json

    from farlink.untrusted import read_text

    try:
        table = json.loads(read_text(path, OperatorError))
    except OSError as error:
        raise OperatorError(f"cannot read a bank of modems, {path}: {error.strerror}", "give the path of a file") from error
    except (ValueError, RecursionError) as error:
        raise OperatorError(f"{path} is not valid JSON: {error}", "correct it") from error
    if not isinstance(table, dict):
        raise OperatorError(f"{path} is no JSON object", "give the keys that a TOML file of a bank has")
    return table
