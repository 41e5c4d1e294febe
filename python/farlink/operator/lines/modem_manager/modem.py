"""A modem as ModemManager describes it, and the one that a line means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from farlink.operator.config.modem_manager import MOST_SIGNAL
from farlink.operator.lines.modem_manager import values
from farlink.operator.lines.modem_manager.bus import SERVICE
from farlink.operator.lines.modem_manager.words import FAILURES, LOCKS, REGISTRATIONS, State, technologies

MODEM = f"{SERVICE}.Modem"
MODEM_3GPP = f"{MODEM}.Modem3gpp"
SIMPLE = f"{MODEM}.Simple"
SIGNAL = f"{MODEM}.Signal"
LOCATION = f"{MODEM}.Location"
SIM = f"{SERVICE}.Sim"

# `MM_UNLOCK_RETRIES_UNKNOWN`
_UNKNOWN_RETRIES = 999
_DBM_OF = ("Nr5g", "Lte", "Umts", "Gsm")


@dataclass(frozen=True)
class Modem:
    """State of a modem.

    Attributes
    ----------
    path
        Of its object; another one each time that it is plugged in.
    names
        By which a bundle may name it: ``DeviceIdentifier``, IMEI, ``Device``, ``Physdev`` and the number of its SIM.
    model
        Maker and model.
    state, failure
        Of the modem, and why it has failed.
    lock, tries
        What has to be unlocked (`words.LOCKS`), and how often that may still be tried; None if it does not say.
    sim
        Path of its SIM.
    signal
        In percent; None if it does not say.
    """

    path: str
    names: tuple[str, ...]
    model: str
    state: State
    failure: str
    lock: int
    tries: int | None
    sim: str
    signal: int | None

    @classmethod
    def of(cls, path: str, interfaces: Mapping[str, Any], iccid: str = "") -> Modem:
        """The modem of an object, whatever its properties are."""
        own = interfaces.get(MODEM)
        state = values.whole(own, "State")
        lock = values.whole(own, "UnlockRequired") or 0
        names = (
            *(values.text(own, key, 400) for key in ("DeviceIdentifier", "EquipmentIdentifier", "Device", "Physdev")),
            values.text(interfaces.get(MODEM_3GPP), "Imei"),
            iccid,
        )
        return cls(
            path,
            tuple(dict.fromkeys(name for name in names if name)),
            " ".join(filter(None, (values.text(own, "Manufacturer", 60), values.text(own, "Model", 60)))) or "modem",
            State(state) if state in tuple(State) else State.UNKNOWN,
            FAILURES.get(values.whole(own, "StateFailedReason") or 0, "it does not say why"),
            lock,
            _tries(own, lock),
            values.path(own, "Sim"),
            _signal(own),
        )

    @property
    def lock_words(self) -> str:
        """The lock that has to be opened."""
        return LOCKS.get(self.lock, f"lock {self.lock}")


def _tries(own: Any, lock: int) -> int | None:
    tries = values.whole(own.get("UnlockRetries"), lock) if isinstance(own, Mapping) else None
    return tries if tries is not None and 0 <= tries < _UNKNOWN_RETRIES else None


def _signal(own: Any) -> int | None:
    pair = own.get("SignalQuality") if isinstance(own, Mapping) else None
    level = pair[0] if isinstance(pair, list | tuple) and pair else None
    is_level = isinstance(level, int) and not isinstance(level, bool) and 0 <= level <= MOST_SIGNAL
    return level if is_level else None


def meant(name: str, modems: Iterable[Modem]) -> list[Modem]:
    """The modems of a name: one, if it is a good name."""
    return [one for one in modems if name in one.names]


def listed(modems: Iterable[Modem]) -> str:
    """Modems in words, with what a bundle may call them; numbers of people's devices and SIMs are not shown whole.

    Examples
    --------
    >>> listed([Modem.of("/m/1", {MODEM: {"Model": "E1750", "Device": "/sys/usb1", "EquipmentIdentifier": "357000000001234"}})])
    'E1750 (357...1234, /sys/usb1)'
    """
    return "; ".join(f"{one.model} ({', '.join(map(_shown, one.names)) or 'without a name'})" for one in modems)


def _shown(name: str) -> str:
    return f"{name[:3]}...{name[-4:]}" if name.isdigit() and len(name) > 10 else name


def observed(interfaces: Mapping[str, Any]) -> dict[str, Any]:
    """A modem's report on its network, for people; None for what it does not say."""
    own, network, signal = (interfaces.get(name) for name in (MODEM, MODEM_3GPP, SIGNAL))
    registration = values.whole(network, "RegistrationState")
    found: dict[str, Any] = {
        "registration": None if registration is None else REGISTRATIONS.get(registration, f"state {registration}"),
        "operator": values.text(network, "OperatorName", 60) or None,
        "operator_code": values.text(network, "OperatorCode", 10) or None,
        "technology": technologies(values.whole(own, "AccessTechnologies") or 0) or None,
        "rsrp_dbm": None,
        "rssi_dbm": None,
        "snr_db": None,
    }
    for key in _DBM_OF:
        table = signal.get(key) if isinstance(signal, Mapping) else None
        level = values.number(table, "rsrp" if key in ("Nr5g", "Lte") else "rssi")
        if level is not None and -200.0 <= level <= 0.0:
            found["rsrp_dbm" if key in ("Nr5g", "Lte") else "rssi_dbm"] = level
            found["snr_db"] = values.number(table, "snr")
            break
    return found


def network_words(seen: Mapping[str, Any], cell: str = "") -> str:
    """The network in a sentence.

    Examples
    --------
    >>> network_words({"registration": "registered, home", "operator": "Telia", "operator_code": "24001", "technology": "LTE"})
    'registered, home: Telia, 24001, LTE'
    """
    parts = [seen.get("operator"), seen.get("operator_code"), seen.get("technology"), cell and f"cell {cell}"]
    where = ", ".join(str(one) for one in parts if one)
    return f"{seen.get('registration') or 'registration unknown'}{f': {where}' if where else ''}"


def power_words(seen: Mapping[str, Any]) -> str:
    """The received power in words; empty if the modem does not tell.

    Examples
    --------
    >>> power_words({"rsrp_dbm": -91.0, "snr_db": 12.0})
    'RSRP -91 dBm, SNR 12 dB'
    """
    kinds = (("RSRP", "rsrp_dbm", "dBm"), ("RSSI", "rssi_dbm", "dBm"), ("SNR", "snr_db", "dB"))
    return ", ".join(f"{name} {seen[key]:g} {unit}" for name, key, unit in kinds if seen.get(key) is not None)


def cell_of(answer: Any) -> str:
    """The cell in an answer of ``GetLocation``: area, cell and tracking area in hexadecimal; empty if there is none.

    Examples
    --------
    >>> cell_of({1: "240,01,FFFE,00A1B2C3,1A2B"})
    'FFFE/00A1B2C3/1A2B'
    """
    parts = values.text(answer, 1, 60).split(",")
    return "/".join(parts[2:5]) if len(parts) == 5 and any(part.strip("0") for part in parts[2:5]) else ""
