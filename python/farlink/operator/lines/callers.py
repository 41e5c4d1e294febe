"""Whose calls a line answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"\+?[0-9*#]+")


def is_listed(callers: Iterable[str], number: str, name: str) -> bool:
    """Whether a caller is one of those listed, by number or by name. Nobody is who tells neither.

    Parameters
    ----------
    callers
        Numbers and names. Numbers are the same with and without the prefix of international calls, ``+`` or ``00``.
    number, name
        Of who calls; empty if they are not told.

    Examples
    --------
    >>> is_listed(["00881600005001"], "+881600005001", ""), is_listed(["glacier"], "", "glacier"), is_listed(["", "1"], "", "")
    (True, True, False)
    """
    return any(one and (_plain(one) == _plain(number) if _NUMBER.fullmatch(one) else one == name) for one in callers)


def shown(number: str, name: str) -> str:
    """The caller, in words; empty if it is not known.

    Examples
    --------
    >>> shown("881600005001", "glacier"), shown("", "glacier"), shown("", "")
    ('881600005001 (glacier)', 'glacier', '')
    """
    return f"{number} ({name})" if number and name else number or name


def _plain(number: str) -> str:
    return number.removeprefix("+") if number.startswith("+") else number.removeprefix("00")
