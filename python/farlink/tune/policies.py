"""How a modem chooses its setting over time. A new way is a function here and a line in `POLICIES`.

A choice is a number for each instant: that of a setting, or `SILENT`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from farlink.errors import TuneError
from farlink.near_names import instead
from farlink.tune.curves import Curves, Floats, Whole
from farlink.tune.modem import Setting
from farlink.tune.reader import LookUp, Pick
from farlink.tune.row import OK, Row

SILENT = -1


@dataclass(frozen=True)
class Condition:
    """Inputs of a modem's choice of settings.

    Attributes
    ----------
    cn0_dbhz
        Of each instant. Shape ``(n,)``.
    step_s
        From instant to instant.
    detection_s
        Age of a C/N0 when the modem acts on it.
    share, flows
        Share of the carrier, and connections on it.
    lookup
        Table to choose from.
    curves
        Settings to choose among.
    setting
        Which setting is fixed; None for the best.
    """

    cn0_dbhz: Floats
    step_s: float
    detection_s: float
    share: float
    flows: int
    lookup: LookUp
    curves: Curves
    setting: str | None = None


# The choice, and a remark on it.
Chosen = tuple[Whole, list[str]]


def adaptive(condition: Condition) -> Chosen:
    """The table's setting at the C/N0 of `detection_s` ago, with its hysteresis; before the series its first value holds."""
    late = round(condition.detection_s / condition.step_s)
    cn0 = condition.cn0_dbhz
    known = np.concatenate((np.full(min(late, cn0.size), cn0[0]), cn0[: max(0, cn0.size - late)]))
    chosen = np.empty(cn0.size, dtype=np.int64)
    # The pick depends on C/N0 and the previous pick, and repeating it changes nothing, so only changes of C/N0 matter.
    begins = np.flatnonzero(np.concatenate(([True], known[1:] != known[:-1])))
    current: Pick | None = None
    said: dict[str, None] = {}
    numbers: dict[int, int] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for begin, end in zip(begins, [*begins[1:], cn0.size], strict=True):
            current = condition.lookup.pick(float(known[begin]), share=condition.share, flows=condition.flows, current=current)
            said.update(dict.fromkeys(one for one in current.warnings if not one.startswith("C/N0")))
            step = current.row.step
            if step not in numbers:
                numbers[step] = number_of(current.row, condition.curves.settings)
            chosen[begin:end] = numbers[step]
    return chosen, list(said)


def ideal(condition: Condition) -> Chosen:
    """The setting of the highest goodput at every instant, known without delay and changed without hysteresis."""
    goodput = np.stack([condition.curves.goodput(at, condition.cn0_dbhz) for at in range(len(condition.curves.settings))])
    best = np.argmax(goodput, axis=0)
    return np.where(goodput.max(axis=0) > 0, best, SILENT), []


def fixed(condition: Condition) -> Chosen:
    """One setting for any C/N0: the requested one, or the one with the highest goodput over the series."""
    settings = condition.curves.settings
    if condition.setting is not None:
        at = named(condition.setting, settings)
    else:
        at = int(np.argmax([condition.curves.goodput(one, condition.cn0_dbhz).mean() for one in range(len(settings))]))
    return np.full(condition.cn0_dbhz.size, at, dtype=np.int64), []


POLICIES: dict[str, Callable[[Condition], Chosen]] = {"adaptive": adaptive, "ideal": ideal, "fixed": fixed}


def name(setting: Setting) -> str:
    """A setting in a few words, as `farlink.tune.row.Row.name` has it."""
    return f"{setting.modulation} {setting.code_name}, {setting.segment_bytes} bytes"


def number_of(row: Row, settings: tuple[Setting, ...]) -> int:
    """Which of the settings a row is set to.

    Raises
    ------
    TuneError
        If to none of them.
    """
    if row.status != OK:
        return SILENT
    for at, setting in enumerate(settings):
        if row.is_set_as(setting):
            return at
    raise TuneError(f"the modem has no setting {row.name!r} of the table", "give the modem that the table was made for")


def named(text: str, settings: tuple[Setting, ...]) -> int:
    """Which setting a user means: "MODULATION, CODE", or where that is several also ", 512 bytes" and ", 1e+06 symbol/s".

    Raises
    ------
    TuneError
        If there is none, or several; it names the nearest.
    """
    wanted = _plain(text)
    forms = [[_plain(form) for form in _forms(one)] for one in settings]
    found = [at for at, names in enumerate(forms) if wanted in names]
    if not found:
        raise TuneError(f"the modem has no setting {text!r}", instead(wanted, sorted({names[0] for names in forms})))
    if len(found) > 1:
        several = "; ".join(_forms(settings[at])[-1] for at in found)
        raise TuneError(f"setting {text!r} is one of several", f"give one of {several}")
    return found[0]


def _forms(setting: Setting) -> tuple[str, str, str]:
    full = name(setting)
    return f"{setting.modulation} {setting.code_name}", full, f"{full}, {setting.symbol_rate_hz:g} symbol/s"


def _plain(text: str) -> str:
    return " ".join(re.sub(r",\s+", " ", text.lower()).split())
