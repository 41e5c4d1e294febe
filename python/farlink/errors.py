"""Errors that a user can correct: each says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class FarlinkError(Exception):
    """Something is wrong with the input.

    Parameters
    ----------
    message
        What is wrong, with the offending value, in one line.
    remedy
        How to correct it, in one line.

    Examples
    --------
    >>> error = FarlinkError("link.rate_bps: -1 is not above 0", "give the rate in bit/s, for example 1e6")
    >>> print(error)
    link.rate_bps: -1 is not above 0
    >>> error.remedy
    'give the rate in bit/s, for example 1e6'
    """

    exit_code = 2
    """Exit code of a command: 2 when someone has to change something first, 1 when the network failed."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[FarlinkError], tuple[str, str]]:
        return type(self), (self.message, self.remedy)


class ArgumentError(FarlinkError, ValueError):
    """An argument of a function has an invalid value, such as an unknown name."""


class ScenarioError(FarlinkError):
    """The scenario, or an override of it, cannot be run."""


class TraceError(FarlinkError):
    """A trace file is missing or cannot be read."""


class JournalError(FarlinkError):
    """A log of calls is missing, cannot be read, contradicts itself or says too little."""


class CaptureError(FarlinkError):
    """A capture of packets is missing, cannot be read or holds nothing of use."""


class TuneError(FarlinkError):
    """A modem, a study of its settings or a look-up table cannot be used."""


class StudyError(FarlinkError):
    """The folder of a study cannot be used, or a unit of it cannot be done."""


class OperatorError(FarlinkError):
    """A modem's profile, a bank of modems or a bundle that is operated cannot be used as it is described."""


class OutputError(FarlinkError):
    """A result cannot be written to the requested place."""


class MissingExtraError(FarlinkError):
    """An optional dependency of farlink is not installed."""


class TransferError(FarlinkError):
    """Files cannot be sent or received, or a connection fails; `exit_code` is 1 if the network failed."""

    def __init__(self, message: str, remedy: str, exit_code: int = 2) -> None:
        super().__init__(message, remedy)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[type[FarlinkError], tuple[str, str, int]]:  # type: ignore[override]
        return type(self), (self.message, self.remedy, self.exit_code)


@contextmanager
def core_errors(words: Callable[[str], str] = str) -> Iterator[None]:
    """Turn the extension's errors into `FarlinkError`, refusals into `ScenarioError`: the one place where they are mapped.

    Parameters
    ----------
    words
        Changes the words of a refusal, such as the names of files.
    """
    from farlink import _core

    try:
        yield
    except _core.ScenarioError as error:
        raise ScenarioError(_one_line(words(error.message)), _one_line(words(error.remedy))) from error
    except _core.NetError as error:
        raise TransferError(_one_line(error.message), _one_line(error.remedy), error.exit_code) from error
    except _core.EngineError as error:
        raise FarlinkError(_one_line(str(error)), "give fewer threads, or try again later") from error


def _one_line(text: str) -> str:
    return " ".join(text.split())
