"""The one place that knows Dask: its scheduler behind the interface of `concurrent.futures`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from farlink.errors import StudyError
from farlink.extras import require

# A scheduler that does not answer in this time is not there, in s.
_PATIENCE_S = 10
_ADDRESS = re.compile(r"(tcp|tls|ws|wss)://.+")


@contextmanager
def connected(address: str) -> Iterator[tuple[Executor, int]]:
    """An executor over the workers of a scheduler, and how many units it should have at hand.

    Parameters
    ----------
    address
        Such as ``tcp://host:8786``.

    Raises
    ------
    StudyError
        If there is no scheduler within ten seconds.
    MissingExtraError
        If Dask is not installed.
    """
    if not _ADDRESS.fullmatch(address):
        raise StudyError(f"--executor {address}: not the address of a scheduler", "for example tcp://host:8786")
    distributed: Any = require("distributed", "--executor")
    try:
        client = distributed.Client(address, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, TimeoutError) as error:
        message = f"there is no scheduler at {address}: it did not answer within {_PATIENCE_S} s"
        raise StudyError(message, "start one: dask scheduler; and workers: dask worker ADDRESS --nthreads 1") from error
    try:
        threads = sum(client.nthreads().values())
        # The folder and not Dask knows what is done. A worker that dies with a unit is told as the failure of that unit.
        yield client.get_executor(pure=False, retries=0), max(1, threads)
    finally:
        client.close(timeout=_PATIENCE_S)
