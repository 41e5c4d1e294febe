"""Parameters whose annotation says what they mean: checked, and in the docstring of every function that has them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from typing import Annotated

import pytest
from numpy.typing import ArrayLike

from farlink import models
from farlink.arguments import checked_arguments
from farlink.errors import ArgumentError
from farlink.meanings import Meaning
from farlink.models.ranges import POSITIVE, Floats, floats, whole_from

Length = Annotated[ArrayLike, Meaning("Length, in m", POSITIVE)]
Count = Annotated[ArrayLike, Meaning("Pieces", whole_from(1))]
Pieces = Annotated[Floats, Meaning("In m, of the broadcast shape")]


@checked_arguments
def cut_m(length_m: Length, margin_m: ArrayLike, *, pieces: Count = 1) -> Pieces:
    """Length of a piece.

    Parameters
    ----------
    margin_m
        What is cut off, in m.

    Examples
    --------
    >>> float(cut_m(2.0, 0.0))
    2.0
    """
    return (floats(length_m) - floats(margin_m)) / pieces


def test_entries_and_what_is_raised_are_added_in_order():
    assert cut_m.__doc__ == inspect.cleandoc(
        """Length of a piece.

        Parameters
        ----------
        length_m
            Length, in m, positive. Any shape.
        margin_m
            What is cut off, in m.
        pieces
            Pieces, whole, at least 1.

        Returns
        -------
        ndarray
            In m, of the broadcast shape.

        Raises
        ------
        ValueError
            If an argument is of another kind than stated, or outside its range.

        Examples
        --------
        >>> float(cut_m(2.0, 0.0))
        2.0
        """
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length_m": [1, 0]}, "length_m must be positive, not [1, 0]"),
        ({"pieces": 0.5}, "pieces must be a whole number of at least 1, not 0.5"),
        ({"pieces": 1e300}, "pieces must be at most 9.0072e+15, not 1e+300"),
        ({"length_m": "1"}, "length_m must be a number or an array of numbers, not '1'"),
    ],
)
def test_a_value_outside_the_range_is_refused_by_name(arguments, message):
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        cut_m(**{"length_m": 1.0, "margin_m": 0.0, **arguments})


def documented_functions():
    for found in pkgutil.walk_packages(models.__path__, "farlink.models."):
        module = importlib.import_module(found.name)
        for name, function in vars(module).items():
            if (
                inspect.isfunction(function)
                and function.__module__ == found.name
                and "Examples\n---" in (function.__doc__ or "")
            ):
                yield pytest.param(function, id=f"{found.name}.{name}")


@pytest.mark.parametrize("function", list(documented_functions()))
def test_every_parameter_of_a_closed_form_is_documented_once_and_in_order(function):
    section = function.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0]
    names = ", ".join(line for line in section.splitlines() if not line.startswith(" ")).split(", ")

    assert sorted(names) == sorted(inspect.signature(function).parameters)
    assert "\nReturns\n-------\n" in function.__doc__
    assert "\nRaises\n------\n" in function.__doc__
