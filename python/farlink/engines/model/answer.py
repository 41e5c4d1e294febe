"""A closed form's answer for one flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """Quantities of one flow, and where they come from.

    Attributes
    ----------
    values
        Columns of the result; what is missing is unknown.
    form
        The equation, with its source.
    validity
        Where it holds, and what it leaves out.
    """

    values: Mapping[str, float]
    form: str
    validity: str
