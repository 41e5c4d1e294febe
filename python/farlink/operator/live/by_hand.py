"""Orders of people that come to nothing, and why: who gives one is to hear of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from farlink.errors import OperatorError
from farlink.operator.config import Secrets
from farlink.operator.config.bundle import Bundle
from farlink.operator.config.secrets_file import read


def in_vain(what: str, line: Mapping[str, Any]) -> str:
    """Why an order does nothing to a line in this state; empty if it does something.

    Examples
    --------
    >>> in_vain("redial", {"state": "held"}), in_vain("release", {"state": "held"})
    ('is held', '')
    """
    state = line["state"]
    if what == "redial" and state == "held":
        return "is held"
    if what == "release" and state != "held":
        return "is not held"
    if what == "inject" and state not in ("connected", "silent"):
        return "is not up"
    return ""


def still_waits(what: str, lines: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Lines that were to be dialled and wait all the same: why, and what ends it."""
    waiting = [line for line in lines if what == "redial" and (line["state"], line["role"]) == ("waiting", "dial")]
    return {line["line"]: f"{line['reason']}; until {line['ends']}" for line in waiting}


def answer(what: str, names: Iterable[str], left: Mapping[str, str]) -> dict[str, Any]:
    """The lines to which something was done, and why to the others nothing.

    Raises
    ------
    OperatorError
        If nothing was done at all.
    """
    done = [name for name in names if name not in left]
    if not done:
        said = ", ".join(f"{name} {why}" for name, why in left.items())
        raise OperatorError(f"{what}: {said}", "`farlink bundle status` says what ends that")
    return {"lines": done, "left": dict(left)}


def is_not_kept(what: str, names: Iterable[str], refusal: str) -> str:
    """That an order is carried out, but would be forgotten by the next start; empty if there are no such lines."""
    if not (shown := ", ".join(names)):
        return ""
    return f"{what} of {shown} is not in the journal, which cannot be written ({refusal}): a start before it can be forgets it"


def check_pins(bundle: Bundle, known: Secrets, names: Iterable[str] | None) -> None:
    """Whether the PINs of some lines may be tried once more, as a person asks.

    Raises
    ------
    OperatorError
        If no line is named, a line has no PIN, or its PIN is another one than the operator knows: the old one would be sent.
    """
    if not names:
        raise OperatorError("--try-pin without a line", "name the line whose PIN is to be tried: three wrong ones lock a SIM")
    read_now = (Secrets(), []) if bundle.secrets is None else read(bundle.secrets, [line.name for line in bundle.lines])
    given, mistakes = read_now
    for name in names:
        if name not in known.pins and name not in given.pins:
            raise OperatorError(f"{name} has no PIN", "write it below [pin] into the file that `secrets` names")
        if mistakes or given.pins.get(name) != known.pins.get(name):
            message = f"the PIN of {name} in {bundle.secrets} is not the one that the operator has read"
            raise OperatorError(message, "start the operator anew (`farlink bundle down`, `up`), then try the PIN")
