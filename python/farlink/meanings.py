"""Meanings and ranges of parameters: said once, for the check and for the docstrings of all functions.

An annotation carries both: ``RoundTripTime = Annotated[ArrayLike, Meaning("Round-trip time, in s", POSITIVE)]``. A function of
`farlink.arguments.checked_arguments` whose parameter is a `RoundTripTime` refuses what is not positive, and its docstring has
the entry without being told.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Sections of a docstring, in the order of numpydoc, before which the parameters and what is raised stand.
_BEHIND_PARAMETERS = ("Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
_BEHIND_RAISES = _BEHIND_PARAMETERS[3:]
_RAISES = "Raises\n------\nValueError\n    If an argument is of another kind than stated, or outside its range."


@dataclass(frozen=True)
class Range:
    """Numbers that a parameter may be.

    Parameters
    ----------
    words
        As a docstring says it: "in [0, 1)".
    rules
        In the order in which they are tried: as a refusal says it behind "must", and which elements of an array keep it.
    """

    words: str
    rules: tuple[tuple[str, Callable[[NDArray[np.float64]], NDArray[np.bool_]]], ...]

    def broken_rule(self, value: ArrayLike) -> str | None:
        """The first rule that an element does not keep."""
        array = np.asarray(value, dtype=np.float64)
        for rule, keeps in self.rules:
            if not keeps(array).all():
                return rule
        return None


@dataclass(frozen=True)
class Meaning:
    """Meaning of a parameter.

    Parameters
    ----------
    words
        What it is, with symbol and unit, as a docstring says it but for its range and its shape.
    range
        Which numbers it may be; it is checked.
    """

    words: str
    range: Range | None = None

    @property
    def text(self) -> str:
        """The words with the range."""
        return self.words if self.range is None else f"{self.words}, {self.range.words}"


def meanings_of(function: Callable[..., Any]) -> dict[str, Meaning]:
    """The parameters, and ``return``, whose annotation, or the name that stands for it, carries a meaning.

    Parameters
    ----------
    function
        With annotations.

    Examples
    --------
    >>> from typing import Annotated
    >>> Length = Annotated[float, Meaning("Length, in m")]
    >>> def double(length_m: Length) -> float: ...
    >>> meanings_of(double)["length_m"].text
    'Length, in m'
    """
    return {
        name: one
        for name, hint in _annotations(function).items()
        for one in getattr(hint, "__metadata__", ())
        if isinstance(one, Meaning)
    }


def complete_docstring(function: Callable[..., Any], meanings: Mapping[str, Meaning]) -> str | None:
    """A numpydoc docstring with the entries of `meanings` that it has not, and with what checked arguments raise.

    Parameters
    ----------
    function
        With annotations. The docstring of one without a section is left as it is.
    meanings
        Of its parameters and of the array that it returns; what is written out goes first.
    """
    if not function.__doc__ or not re.search(r"\n *-{3,}\n", function.__doc__):
        return function.__doc__
    text, *rest = re.split(r"\n\n(?=[A-Z][\w ]*\n-{3,}\n)", inspect.cleandoc(function.__doc__))
    sections = {one.partition("\n")[0]: one for one in rest}
    written = sections.get("Parameters", "").partition("\n")[2].partition("\n")[2]
    entries = {entry.partition("\n")[0]: entry for entry in re.split(r"\n(?=\S)", written) if entry}
    known = [name for heading in entries for name in heading.split(", ")]
    parameters = list(inspect.signature(function).parameters)
    for name, shape in _shapes(function, meanings).items():
        if name in parameters and name not in known:
            entries[name] = f"{name}\n    {meanings[name].text}{shape}"
    if entries:
        in_order = sorted(entries, key=lambda heading: parameters.index(heading.split(", ")[0]))
        section = "\n".join(["Parameters\n----------", *(entries[heading] for heading in in_order)])
        sections = _with(sections, "Parameters", section, _BEHIND_PARAMETERS)
        if "Raises" not in sections:
            sections = _with(sections, "Raises", _RAISES, _BEHIND_RAISES)
    if "return" in meanings and "Returns" not in sections:
        section = f"Returns\n-------\nndarray\n    {meanings['return'].text}."
        sections = _with(sections, "Returns", section, _BEHIND_PARAMETERS[1:])
    return "\n\n".join([text, *sections.values()])


def _shapes(function: Callable[..., Any], meanings: Mapping[str, Meaning]) -> dict[str, str]:
    """How the sentence of each meaning ends: with the shape, at the first two of the parameters that may be arrays."""
    hints = {name: hint for name, hint in _annotations(function).items() if name != "return"}
    arrays = [name for name, hint in hints.items() if ArrayLike in (hint, getattr(hint, "__origin__", None))]
    shapes = dict.fromkeys(meanings, ".")
    for name in {*meanings} & {*arrays[:1]}:
        shapes[name] = ". Any shape."
    for name in {*meanings} & {*arrays[1:2]}:
        others = f"broadcast against `{arrays[0]}`" if len(arrays) == 2 else "all parameters are broadcast against each other"
        shapes[name] = f"; {others}."
    return shapes


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations as they are, or what their names stand for where they are names of the module, or else their text."""
    known = function.__globals__
    return {name: known.get(hint, hint) if isinstance(hint, str) else hint for name, hint in function.__annotations__.items()}


def _with(sections: Mapping[str, str], name: str, section: str, behind: tuple[str, ...]) -> dict[str, str]:
    """Sections with another one, before those that stand behind it."""
    before = {key: one for key, one in sections.items() if key not in behind and key != name}
    return {**before, name: section, **{key: one for key, one in sections.items() if key in behind}}
