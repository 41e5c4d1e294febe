"""Tables of TOML files that the operator reads: every mistake is found, and named with the nearest name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.near_names import instead
from farlink.untrusted import printable, read_text, toml_tables


@dataclass(frozen=True)
class Mistake:
    """The fault of a value, and the remedy.

    Attributes
    ----------
    message, remedy
        As in `FarlinkError`.
    key
        Whose value is wrong, for who knows where keys stand; empty if none is.
    """

    message: str
    remedy: str
    key: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True)
class Key:
    """A key of a table.

    Attributes
    ----------
    is_allowed
        Whether a value may be given.
    rule
        Which values may be, in words: "a number from 0 to 1".
    is_needed
        Whether it must be given.
    names
        The values there are, if they are names; an unknown one is named with the nearest.
    """

    is_allowed: Callable[[Any], bool]
    rule: str
    is_needed: bool = False
    names: tuple[str, ...] = ()


def number(least: float, most: float, *, is_needed: bool = False) -> Key:
    """A key whose value is a number from `least` to `most`."""

    def is_allowed(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and least <= value <= most

    return Key(is_allowed, f"a number from {least:g} to {most:g}", is_needed)


def whole(least: int, most: int, *, is_needed: bool = False) -> Key:
    """A key whose value is a whole number from `least` to `most`."""

    def is_allowed(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Key(is_allowed, f"a whole number from {least} to {most}", is_needed)


def text(is_allowed: Callable[[str], bool], rule: str, *, is_needed: bool = False) -> Key:
    """A key whose value is a text that `is_allowed` accepts."""
    return Key(lambda value: isinstance(value, str) and is_allowed(value), rule, is_needed)


def name_of(names: Iterable[str], *, is_needed: bool = False) -> Key:
    """A key whose value is one of some names."""
    known = tuple(names)
    return Key(lambda value: isinstance(value, str) and value in known, f"one of {', '.join(known)}", is_needed, known)


def switch() -> Key:
    """A key that is true or false."""
    return Key(lambda value: isinstance(value, bool), "true or false")


def mistakes_of(table: Mapping[str, Any], keys: Mapping[str, Key], *, inside: str = "") -> list[Mistake]:
    """Every mistake of a table.

    Parameters
    ----------
    table
        What was read.
    keys
        What there may be.
    inside
        Goes before each key in a message: ``"modem[0]."``.

    Examples
    --------
    >>> mistakes_of({"rate_bp": 1}, {"rate_bps": number(1, 1e9)})
    [Mistake(message='rate_bp: there is no such key', remedy="did you mean 'rate_bps'?")]
    """
    found = []
    for key, value in table.items():
        place = printable(f"{inside}{key}", 60)
        if key not in keys:
            found.append(Mistake(f"{place}: there is no such key", instead(key, keys), key))
        elif not keys[key].is_allowed(value):
            rule = keys[key]
            remedy = instead(str(value), rule.names) if rule.names else f"give {rule.rule}"
            found.append(Mistake(f"{place}: {printable(repr(value), 60)} is not {rule.rule}", remedy, key))
    for key, rule in keys.items():
        if rule.is_needed and key not in table:
            found.append(Mistake(f"{inside}{key} is missing", f"give {rule.rule}"))
    return found


def refuse(found: list[Mistake], where: str) -> None:
    """Refuse a file with mistakes; all of them are in the message.

    Raises
    ------
    OperatorError
        If there are any.
    """
    if found:
        shown = found[:20]
        more = [f"{len(found) - 20} more"] if len(found) > 20 else []
        remedies = dict.fromkeys(one.remedy for one in shown)
        raise OperatorError(f"{where}: " + "; ".join([one.message for one in shown] + more), "; ".join(remedies))


def read_tables(path: Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file.

    Parameters
    ----------
    path
        The file.
    what
        What it describes, for messages: "a profile".

    Raises
    ------
    OperatorError
        If it cannot be read or is not TOML.
    """
    try:
        return toml_tables(read_text(path, OperatorError))
    except OSError as error:
        raise OperatorError(f"cannot read {what}, {path}: {error.strerror}", "give the path of a TOML file") from error
    except UnicodeDecodeError as error:
        raise OperatorError(f"{path} is not a text file in UTF-8", f"{what} is a TOML file; save it as UTF-8") from error
    except ValueError as error:
        remedy = "correct that line; strings need quotes, keys need '='"
        raise OperatorError(f"{path} is not valid TOML: {error}", remedy) from error
