"""Arguments of public functions: of the kind that their annotations say, or refused by name."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from farlink.errors import ArgumentError, FarlinkError
from farlink.meanings import Range, complete_docstring, meanings_of

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Rule = Callable[[str, Any], Any]
# Beyond, a whole number has no neighbours among the numbers that NumPy computes with.
_MOST_WHOLE = 2**53
# Below, reciprocals and products of two numbers are out of the range of numbers.
_LEAST = 1e-150
_NUMBERS = int | float | Decimal | Fraction | np.number


def checked_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that refuses arguments of another kind than their annotations say, by name.

    Numbers of any kind, NumPy's and `decimal.Decimal` among them, are taken where a number is asked for; text is not, nor is
    what does not fit into a floating-point number. A range is checked where the annotation has one (`farlink.meanings`), and is
    otherwise the function's own business; but where a result is not a number, an argument above 2^53 or below 1e-150 is
    refused.

    Parameters
    ----------
    function
        With annotations. Its docstring gets the entries that they stand for, and what is raised.

    Examples
    --------
    >>> @checked_arguments
    ... def doubled(value: float) -> float:
    ...     return 2 * value
    >>> doubled("3")
    Traceback (most recent call last):
    farlink.errors.ArgumentError: value must be a number, not '3'
    """
    rules: dict[str, _Rule] = {}
    arrays: list[str] = []
    meanings = meanings_of(function)
    function.__doc__ = complete_docstring(function, meanings)
    signature = inspect.signature(function)
    parameters = signature.parameters
    in_order = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]

    def prepare() -> None:
        hints = typing.get_type_hints(function)
        rules.update({name: _rule(hints[name]) for name in parameters if name in hints})
        arrays.extend(name for name, rule in rules.items() if rule in (numbers, _array, _numbers_or_none))
        for name, meaning in meanings.items():
            if meaning.range is not None:
                rules[name] = _within(rules[name], meaning.range)
        if "seed" in rules:
            rules["seed"] = _seed
        rules.setdefault("return", _anything)

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not rules:
            prepare()
        given = [rules[name](name, value) if name in rules else value for name, value in zip(in_order, args, strict=False)]
        named = {name: rules[name](name, value) if name in rules else value for name, value in kwargs.items()}
        try:
            result = function(*given, *args[len(given) :], **named)  # type: ignore[arg-type]
        except FarlinkError:
            raise
        except (ValueError, TypeError, IndexError, OverflowError, MemoryError, ZeroDivisionError) as error:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                raise error from None  # a name that is unknown or missing
            arguments = {**dict(zip(in_order, given, strict=False)), **named}
            named_cause = _cause(arguments, arrays)
            if named_cause is None:
                raise
            raise named_cause from error
        for name, value in (*zip(in_order, given, strict=False), *named.items()):
            if type(value) is float and not _LEAST <= abs(value) <= _MOST_WHOLE and value != 0 and _has_nan(result):
                raise refused(name, "be smaller" if abs(value) > 1 else "be larger", value)
        return result

    return checked


def _has_nan(result: object) -> bool:
    """Whether a number of a result could not be computed."""
    if isinstance(result, float | np.floating):
        return bool(result != result)
    if isinstance(result, np.ndarray):
        return result.dtype.kind == "f" and bool(np.isnan(result).any())
    return isinstance(result, tuple | list) and any(_has_nan(one) for one in result)


def _cause(arguments: dict[str, Any], arrays: Sequence[str]) -> ArgumentError | None:
    """Causes of a failure that lie in the arguments: a number that is too large, an empty array, shapes.

    `arrays` names the arguments that may be arrays.
    """
    for name, value in arguments.items():
        if isinstance(value, int | float | np.floating | np.integer) and not abs(float(value)) < _MOST_WHOLE:
            return refused(name, "be smaller", value)
    shapes = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray | list | tuple):
            try:
                shapes[name] = np.shape(value)
            except ValueError:
                return refused(name, "have rows of one length", value)
    for name, shape in shapes.items():
        if 0 in shape:
            return ArgumentError(f"{name} holds no number: its shape is {shape}", f"give {name} at least one number")
    for name in arrays:
        if name in arguments and arguments[name] is not None and np.ndim(arguments[name]) == 0:
            return refused(name, "be an array of numbers", arguments[name])
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        message = f"{' and '.join(shapes)} must be of shapes that go together, not {text}"
        return ArgumentError(message, "give single numbers, or arrays of one shape")
    for name, shape in shapes.items():
        if shape:
            message = f"{name} must be of a shape that this function takes, not {shape}"
            return ArgumentError(message, f"give {name} one number after the other")
    return None


def _rule(hint: Any) -> _Rule:
    """How a value of such an annotation is read."""
    if hint == ArrayLike or typing.get_origin(hint) is np.ndarray:
        return numbers if hint == ArrayLike else _array
    if hint in _SINGLE:
        return _SINGLE[hint]
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType) and {*typing.get_args(ArrayLike)} <= {*typing.get_args(hint)}:
        return _numbers_or_none
    if origin is typing.Literal:
        return _one_of(typing.get_args(hint))
    if origin in (typing.Union, types.UnionType):
        return _union(typing.get_args(hint))
    if origin is not None and inspect.isclass(origin):
        members = typing.get_args(hint)
        if issubclass(list, origin) and members and inspect.isclass(members[0]) and members[0] not in (*_SINGLE, object):
            return _members(origin, members[0])
        return _instance(origin)
    if inspect.isclass(hint):
        return _like(hint) if getattr(hint, "_is_protocol", False) else _instance(hint)
    return _anything


def numbers(name: str, value: Any) -> Any:
    """A number or an array of numbers; NumPy makes NaN of None and a number of text."""
    if type(value) is float or (type(value) is int and -_MOST_WHOLE <= value <= _MOST_WHOLE):
        return value
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind in "biuf":
        return value
    try:
        if array.dtype.kind != "O" or not all(
            isinstance(one, int | float | Decimal | Fraction | np.number) for one in array.flat
        ):
            raise ValueError
        return array.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        raise refused(name, "be a number or an array of numbers", value) from None


def _numbers_or_none(name: str, value: Any) -> Any:
    return None if value is None else numbers(name, value)


def _array(name: str, value: Any) -> Any:
    return np.asarray(numbers(name, value))


def _number(name: str, value: Any) -> Any:
    if type(value) is float and value == value:
        return value
    # Whole numbers stay whole numbers, as which they are printed.
    if type(value) is int and -_MOST_WHOLE <= value <= _MOST_WHOLE:
        return value
    try:
        read = numbers(name, value)
    except ArgumentError:
        raise refused(name, "be a number", value) from None
    if np.ndim(read) > 0 or np.isnan(read):
        raise refused(name, "be a number", value)
    return float(read)


def _whole(name: str, value: Any) -> Any:
    if type(value) is not int:
        value = _number(name, value)
        if not float(value).is_integer():
            raise refused(name, "be a whole number", value)
    if abs(value) > _MOST_WHOLE:
        raise refused(name, "be a whole number of at most 2^53", value)
    return int(value)


def _seed(name: str, value: Any) -> Any:
    """A seed may be longer than other whole numbers, because nothing is computed with it."""
    return value if type(value) is int and 0 <= value < 2**64 else _whole(name, value)


def _switch(name: str, value: Any) -> Any:
    if not isinstance(value, bool | np.bool_):
        raise refused(name, "be True or False", value)
    return bool(value)


def _text(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise refused(name, "be a text", value)
    return value


def _anything(_name: str, value: Any) -> Any:
    return value


_SINGLE: dict[Any, _Rule] = {float: _number, int: _whole, bool: _switch, str: _text}


def _one_of(known: tuple[Any, ...]) -> _Rule:
    def rule(name: str, value: Any) -> Any:
        if not any(type(value) is type(one) and value == one for one in known):
            texts = [f'"{one}"' if isinstance(one, str) else str(one) for one in known]
            listed = " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
            raise refused(name, f"be {listed}", value)
        return value

    return rule


def _union(members: tuple[Any, ...]) -> _Rule:
    """Of several kinds the first that takes the value."""
    allowed = [member for member in members if member is not type(None)]
    has_none = len(allowed) < len(members)
    rules = [_rule(member) for member in allowed]

    def rule(name: str, value: Any) -> Any:
        if value is None and has_none:
            return None
        for one in rules[:-1]:
            try:
                return one(name, value)
            except ArgumentError:
                continue
        return rules[-1](name, value)

    return rule


def _within(kind: _Rule, allowed: Range) -> _Rule:
    """Of a kind, and in a range unless it is none."""

    def rule(name: str, value: Any) -> Any:
        read = kind(name, value)
        broken = None if read is None else allowed.broken_rule(read)
        if broken is not None:
            raise refused(name, broken, value)
        return read

    return rule


def _instance(kind: type) -> _Rule:
    def rule(name: str, value: Any) -> Any:
        # An array is as good as a sequence.
        is_array = isinstance(value, np.ndarray) and value.ndim > 0 and issubclass(list, kind)
        if not (isinstance(value, kind) or is_array) or (isinstance(value, str | bytes) and issubclass(list, kind)):
            raise refused(name, f"be of the kind {kind.__name__}", value)
        return value

    return rule


def _like(protocol: type) -> _Rule:
    """Something with the methods and attributes of a protocol."""
    needed = [name for name in (*vars(protocol), *getattr(protocol, "__annotations__", {})) if not name.startswith("_")]

    def rule(name: str, value: Any) -> Any:
        if not all(hasattr(value, one) for one in needed):
            raise refused(name, f"be of the kind {protocol.__name__}", value)
        return value

    return rule


def _members(kind: type, member: type) -> _Rule:
    """Records in a list or another collection that can be iterated more than once."""
    whole = _instance(kind)

    def rule(name: str, value: Any) -> Any:
        value = whole(name, value)
        if isinstance(value, list | tuple | np.ndarray | dict):
            for one in value:
                if not isinstance(one, member):
                    raise refused(name, f"hold entries of the kind {member.__name__} only", one)
        return value

    return rule


def check_range(holds: bool, name: str, rule: str, value: object) -> None:
    """Refuse a value outside its range.

    Parameters
    ----------
    holds
        Whether the rule holds.
    name, rule, value
        As of `refused`.

    Raises
    ------
    ArgumentError
        If it does not hold.

    Examples
    --------
    >>> check_range(3 > 0, "count", "be above 0", 3)
    """
    if not holds:
        raise refused(name, rule, value)


def refused(name: str, rule: str, value: object) -> ArgumentError:
    """The error of a value outside its range, as "name must <rule>, not <value>".

    Parameters
    ----------
    name
        Of the argument.
    rule
        What holds of every value that is taken.
    value
        As it was given.

    Examples
    --------
    >>> print(refused("loss_rate", "be from 0 to 1", 3))
    loss_rate must be from 0 to 1, not 3
    """
    shown = " ".join(repr(value).split())
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return ArgumentError(f"{name} must {rule}, not {shown}", f"change {name}: it must {rule}")
