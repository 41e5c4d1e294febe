"""Description of a kind of lines, by which alone the operator knows it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from farlink.operator.config.broken import Broken
from farlink.operator.config.bundle import Bundle
from farlink.operator.config.bundle import Line as LineConfig
from farlink.operator.tables import Key

if TYPE_CHECKING:
    from farlink.operator.backend import BackEnd
    from farlink.operator.lines import Line, Pins, Report


@dataclass(frozen=True)
class Row:
    """A table ``[[line]]`` that is looked through.

    Attributes
    ----------
    at
        Its index.
    valid
        Its valid values.
    given
        All of its values.
    folder
        That of ``bundle.toml``.
    needs_ports
        Whether what it names on this machine must be there.
    """

    at: int
    valid: Mapping[str, Any]
    given: Mapping[str, Any]
    folder: Path
    needs_ports: bool = True

    def broken(self, key: str, message: str, remedy: str) -> Broken:
        """A rule that a value breaks; of the whole table if `key` is empty. The message is behind ``line[AT].KEY``."""
        if not key:
            return Broken(("line", self.at), f"line[{self.at}]{message}", remedy)
        return Broken(("line", self.at, key), f"line[{self.at}].{key}: {message}", remedy)


@dataclass(frozen=True)
class Traits:
    """A line, as dialler and recorder know it.

    Attributes
    ----------
    dial_limit_s
        A dial without a result is over after so long.
    link_limit_s
        So long may a link take from ``carrier`` to ``link-up``.
    most_signal
        The top of the scale of its signal, which begins at 0; None if the line tells no signal.
    least_signal
        Below it the line is not dialled; None if the line tells no signal.
    late_signal_s
        A signal that took longer to tell is recorded as a handover.
    """

    dial_limit_s: float
    link_limit_s: float
    most_signal: int | None = None
    least_signal: int | None = None
    late_signal_s: float = math.inf


@dataclass(frozen=True)
class Parts:
    """Services of the operator for a line.

    Attributes
    ----------
    bundle, folder
        The bundle, and the folder of its ``bundle.toml``.
    back_end
        Carries PPP, for kinds with `has_ppp`.
    report
        Gets what is observed. It may give orders at once.
    pins, pin
        Which PINs may be tried, and that of this line; None if there is none.
    apn_password
        For the authentication of a mobile network; empty if there is none.
    """

    bundle: Bundle
    folder: Path
    back_end: BackEnd
    report: Callable[[Report], None]
    pins: Pins
    pin: str | None = None
    apn_password: str = field(default="", repr=False)


class Kind(ABC):
    """A kind of lines.

    Attributes
    ----------
    keys
        Of a table ``[[line]]``, beside those that every kind has (`LINE_KEYS`).
    unique
        Keys whose value only one line may have -> the remedy.
    has_ppp
        Whether the back end carries the packets of its calls; other kinds bring a link of their own.
    has_pin
        Whether the secrets may have a PIN for a line of it.
    extra
        Module that it needs, and for what, if that is an extra of farlink.
    """

    keys: ClassVar[Mapping[str, Key]]
    unique: ClassVar[Mapping[str, str]]
    has_ppp = False
    has_pin = False
    extra: tuple[str, str] | None = None

    @abstractmethod
    def rules(self, row: Row) -> Iterator[Broken]:
        """Faults of a table: values that exclude each other, and needs that this machine lacks."""

    def rules_together(self, rows: Sequence[Row]) -> Iterator[Broken]:  # noqa: ARG002
        """The same of all tables of this kind."""
        return iter(())

    def settings(self, valid: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of `Line` from the keys of a table without mistakes."""
        return dict(valid)

    @abstractmethod
    def device(self, line: LineConfig) -> str:
        """The device of this machine that a line uses: a tty, an interface, a modem."""

    @abstractmethod
    def traits(self, line: LineConfig, bundle: Bundle, folder: Path) -> Traits:
        """A line, as dialler and recorder know it."""

    def notes(self, line: LineConfig) -> Iterator[str]:  # noqa: ARG002
        """Findings of `check` for a line without mistakes: what this machine or this user lacks, with its remedy."""
        return iter(())

    @abstractmethod
    def make(self, line: LineConfig, parts: Parts) -> Line:
        """A line. It does nothing before it runs."""
