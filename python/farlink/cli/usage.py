"""Usage errors of a command, in the two lines of all errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from farlink.cli.messages import refused
from farlink.errors import FarlinkError
from farlink.near_names import instead, nearest

# Typer brings its own copy of click, or uses the one that is installed.
_USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[1]
_CLICK_ERROR: type[Any] = typer.BadParameter.__mro__[2]

# Message of a type for an invalid value -> the type in words.
_WANTED = (("valid int", "a whole number"), ("number", "a number"), ("float", "a number"))
# "99 is not in the range 1<=x<=60", "0 is not in the range x>=1"
_LEAST = re.compile(r"in the range (?:([\d.]+)<=?x|x>=?([\d.]+))")
_MOST = re.compile(r"in the range .*x<=?([\d.]+)")


class Group(TyperGroup):
    """The group of all commands."""

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command of `args`; a usage error is one line that says what is wrong and one that says what to do."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **extra)
        given = list(sys.argv[1:] if args is None else args)
        try:
            status = super().main(given, standalone_mode=False, **extra)
        except _CLICK_ERROR as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                refused(usage_error(error, given, self._named(given)))
            status = 2
        except typer.Abort:
            status = 130
        sys.exit(status if isinstance(status, int) else 0)

    def _named(self, given: Sequence[str]) -> str:
        """The command that the arguments begin with."""
        path: list[str] = ["farlink"]
        node: Any = self
        for text in given:
            node = getattr(node, "commands", {}).get(text)
            if node is None:
                break
            path.append(text)
        return " ".join(path)


def usage_error(error: Any, given: Sequence[str], command: str = "farlink") -> FarlinkError:
    """Click's usage error in farlink's words.

    Parameters
    ----------
    error
        An error of click.
    given
        The arguments.
    command
        The command that they begin with.

    Examples
    --------
    >>> usage_error(typer.BadParameter("no such thing"), []).message
    'invalid value: no such thing'
    """
    context = getattr(error, "ctx", None)
    command = command if context is None else context.command_path
    remedy = f"{command} --help tells what it takes"
    option = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    message = str(error.format_message()).rstrip(".")
    if option is not None and hasattr(error, "possibilities"):
        known = [] if context is None else [name for one in context.command.params for name in one.opts if name != "-"]
        near = nearest(option, known, likeness=0.6) or next(iter(error.possibilities or []), None)
        return FarlinkError(f"{command} has no option {option}", f"did you mean {near}? {remedy}" if near else remedy)
    if option is not None and "requires an argument" in message:
        return FarlinkError(f"{option} is given without its value", f"write it behind: {option} VALUE; {remedy}")
    if type(error).__name__ == "MissingParameter" and parameter is not None:
        return _missing(parameter, command, remedy)
    if parameter is not None:
        return _bad_value(parameter, message, given, remedy)
    if message.startswith("No such command"):
        name = message.split("'")[1]
        known = list(getattr(context.command, "commands", {})) if context is not None else []
        return FarlinkError(f"{command} has no command {name}", instead(name, known, likeness=0.6))
    if message.startswith("Got unexpected extra argument"):
        more = message.rpartition(" (")[2].removesuffix(")")
        return FarlinkError(f"{command} does not know what to do with: {more}", remedy)
    return FarlinkError(message[:1].lower() + message[1:], remedy)


def _missing(parameter: Any, command: str, remedy: str) -> FarlinkError:
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.human_readable_name).strip("[]{}.").upper()
        return FarlinkError(f"{command} needs {name}, and it is not given", remedy)
    return FarlinkError(f"{command} needs {parameter.opts[0]}, and it is not given", remedy)


def _bad_value(parameter: Any, message: str, given: Sequence[str], remedy: str) -> FarlinkError:
    """A value that does not have the type of its option."""
    is_option = parameter.param_type_name == "option"
    name = parameter.opts[0] if is_option else parameter.human_readable_name.upper()
    value = _value(parameter.opts, given) if is_option else None
    if value is not None:
        name = f"{name} {value}"
    said = message.rpartition(": ")[2]
    bound = _passed_bound(said)
    if bound is not None:
        return FarlinkError(f"{name}: not {bound}", remedy)
    wanted = next((words for mark, words in _WANTED if mark in said), None)
    return FarlinkError(f"{name}: not {wanted}" if wanted else f"{name}: {said[:1].lower()}{said[1:]}", remedy)


def _passed_bound(said: str) -> str | None:
    """The bound that a number passes, from what is said of it; None if that speaks of no range."""
    least, most = _LEAST.search(said), _MOST.search(said)
    try:
        value = float(said.split()[0])
    except ValueError:
        return None
    if most is not None and value >= float(most[1]):
        return f"at most {most[1]}"
    return f"at least {least[1] or least[2]}" if least is not None else None


def _value(names: Sequence[str], given: Sequence[str]) -> str | None:
    """The value that an option was given last."""
    found = None
    for at, text in enumerate(given):
        head, equals, value = text.partition("=")
        if equals and head in names:
            found = value
        elif text in names and at + 1 < len(given):
            found = given[at + 1]
    return found
