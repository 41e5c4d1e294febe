"""The log of a process that carries calls, without secrets and of bounded size."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_MOST_BYTES = 1 << 20


def keep(log: Path, line: str, secrets: Iterable[str]) -> None:
    """Append a message to a log, of which the last part is kept; a full disk is no reason to stop.

    Parameters
    ----------
    log
        The file. What is beyond a MiB goes to a file beside it, `.log.1`, in place of what is there.
    line
        The message.
    secrets
        Texts that are replaced by asterisks.
    """
    for secret in secrets:
        line = line.replace(secret, "***")
    with suppress(OSError):
        if log.exists() and log.stat().st_size > _MOST_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
