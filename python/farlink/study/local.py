"""Worker processes on this machine, behind the interface of `concurrent.futures`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from farlink.study.execute import Job, run_unit

T = TypeVar("T")


class WorkerDied(RuntimeError):
    """A worker ended in the middle of a unit: by a crash, by lack of memory, by a signal."""


class LocalWorkers(Executor):
    """Processes that each do one unit at a time. One that dies fails its own unit only, and is replaced.

    Parameters
    ----------
    count
        How many.
    """

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="farlink-worker")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._is_over = False

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Have a unit done: `function` is `run_unit`, with the folder and the job."""
        if function is not run_unit or named:
            raise TypeError("these workers know run_unit(folder, job) only")
        return self._threads.submit(self._do, *arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers; units under way are lost unless `wait`."""
        if wait and not cancel_futures:
            self._threads.shutdown(wait=True)
        with self._lock:
            self._is_over = True
            for process in self._processes:
                process.kill()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        for process in self._processes:
            process.wait()

    def _do(self, folder: str, job: Job) -> Any:
        process = getattr(self._own, "process", None)
        if process is None or process.poll() is not None:
            process = self._own.process = self._started(folder)
        assert process.stdin is not None, "a pipe"
        assert process.stdout is not None, "a pipe"
        try:
            process.stdin.write(json.dumps(dict(job)) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            status = process.wait()
            raise WorkerDied(
                f"its worker ended by signal {-status}" if status < 0 else f"its worker ended with status {status}"
            )
        return json.loads(answer)

    def _started(self, folder: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "farlink.study.worker", folder]
        with self._lock:
            if self._is_over:
                raise WorkerDied("the study is being ended")
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", bufsize=1
            )
            self._processes.add(process)
        return process
