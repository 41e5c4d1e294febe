"""Threads for what may block for ever: operations of a dead USB port are in the kernel until its driver gives up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class OneThreadEach(ThreadPoolExecutor):
    """Runs each call in a thread of its own, which the end of the process does not wait for.

    asyncio's own pool has as few as five threads: five dead ports would take them from all lines, and its end waits for each.
    Who uses this bounds how many calls of one port are under way.

    Examples
    --------
    >>> OneThreadEach().submit(sum, [1, 2]).result()
    3
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begin a call."""
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # goes to who waits, as in any executor
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, name="port", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for nothing."""
