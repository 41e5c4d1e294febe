"""Parameters of a trace that is made: meaning, default and rule of each, and how a value is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from farlink.errors import TraceError
from farlink.near_names import instead

Value = float | int | str


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Parameters
    ----------
    default
        Value unless a preset gives one; its type is that of every value. NaN if there is none.
    meaning
        Description in one line.
    low, high
        Smallest and largest value.
    choices
        Allowed words.
    """

    default: Value
    meaning: str
    low: float = 0.0
    high: float = math.inf
    choices: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if isinstance(self.default, str):
            return "text"
        what = "a whole number" if isinstance(self.default, int) else "a number"
        if math.isinf(self.high):
            return f"{what} from {self.low:g} up"
        return f"{what} from {self.low:g} to {self.high:g}"


def read_value(name: str, value: object, table: Mapping[str, Parameter], what: str) -> Value:
    """Read and check one value.

    Parameters
    ----------
    name
        Parameter; an unknown one is refused with the nearest known.
    value
        Number, word, or the text of either.
    table
        The parameters there are.
    what
        Name of their owner, for messages.

    Raises
    ------
    TraceError
        With name, value and rule.

    Examples
    --------
    >>> read_value("tau_s", "6e-3", {"tau_s": Parameter(1.0, "time")}, "fading")
    0.006
    """
    if name not in table:
        raise TraceError(f"{name!r} is no parameter of {what}", instead(name, table))
    known = table[name]
    if isinstance(known.default, str):
        if known.choices and value not in known.choices:
            raise TraceError(f"{name}: {value!r} is not {known.rule}", instead(str(value), known.choices))
        return str(value)
    try:
        # True is no number here.
        number = float(str(value) if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        example = "" if math.isnan(known.default) else f", for example {known.default:g}"
        raise TraceError(f"{name}: {value!r} is not {known.rule}", f"give {known.meaning}{example}") from None
    is_whole = isinstance(known.default, int)
    # A comparison with NaN is false.
    if not known.low <= number <= known.high or math.isinf(number) or (is_whole and number != int(number)):
        raise TraceError(f"{name}: {number:g} is not {known.rule}", f"it is {known.meaning}")
    return int(number) if is_whole else number
