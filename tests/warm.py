"""Python programs that start warm: a process that has imported what takes long to import forks for each of them.

Each program is a process of its own, with its own folder, environment, standard streams, signals and exit, as if it had been
started; only the interpreter, the imports and the tree of commands are there already, and what was imported is not freed at
the end. Most tests of commands run them so, since the rest takes fifty times as long as a short command. A few start the
interpreter, as users do: those of interrupts, pipes, terminals and full disks.

`Programs` starts the process from which they are forked. This file is also that process: it imports nothing of the tests.
"""

from __future__ import annotations

import array
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

_MOST_BYTES = 1 << 20
_FIRST = ("farlink.cli.commands", "farlink.engines", "numpy")
_OF_OPERATORS = ("farlink.operator.live", "farlink.operator.bank", "serialx")
# What one program has imported of these, the next ones find imported. Others start threads, which no fork keeps.
_KEPT = {"farlink", "numpy", "scipy", "h5py", "matplotlib", "rich", "pydantic", "typer", "tomllib", "json", "csv"}


class Programs:
    """Runs Python programs one after another, each in a process that is forked from one with the imports.

    Examples
    --------
    >>> with Programs() as programs:  # doctest: +SKIP
    ...     programs.run(["-m", "farlink.cli", "schema"], cwd="/tmp")
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._socket, theirs):
            for way in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                end.setsockopt(socket.SOL_SOCKET, way, 2 * _MOST_BYTES)
        command = [sys.executable, "-P", __file__, str(theirs.fileno())]
        none = subprocess.DEVNULL
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=none, stdout=none)
        theirs.close()

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait()

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: str | Path,
        env: Mapping[str, str] | None = None,
        given: bytes = b"",
        timeout: float | None = None,
        is_merged: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """What a program did that ``python ARGUMENTS`` would start: ``-m MODULE ...``, ``-c CODE ...`` or ``FILE ...``.

        Parameters
        ----------
        arguments
            Of the interpreter.
        cwd
            The folder in which it runs.
        env
            Its environment; this process's by default.
        given
            Its standard input.
        timeout
            Seconds after which it is killed.
        is_merged
            Whether its messages stand among its output.

        Raises
        ------
        subprocess.TimeoutExpired
            If it was killed.
        """
        asked = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(os.environ if env is None else env)}
        ways = [os.pipe(), os.pipe(), os.pipe()]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = ways
        theirs = [theirs_in, theirs_out, theirs_out if is_merged else theirs_err]
        socket.send_fds(self._socket, [json.dumps(asked).encode()], theirs)
        for end in (theirs_in, theirs_out, theirs_err):
            os.close(end)
        (pid,) = self._answer()
        killer = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL)) if timeout is not None else None
        if killer is not None:
            killer.daemon = True
            killer.start()
        found: dict[int, bytes] = {}
        threads = [threading.Thread(target=_read, args=(end, found)) for end in (ours_out, ours_err)]
        threads.append(threading.Thread(target=_write, args=(ours_in, given)))
        for thread in threads:
            thread.start()
        (status,) = self._answer()
        is_late = killer is not None and not killer.is_alive() and status == -signal.SIGKILL
        if killer is not None:
            killer.cancel()
        for thread in threads:
            thread.join()
        if is_late:
            assert timeout is not None
            raise subprocess.TimeoutExpired(asked["arguments"], timeout, found[ours_out], found[ours_err])
        return subprocess.CompletedProcess(asked["arguments"], status, found[ours_out], found[ours_err])

    def start(
        self,
        arguments: Sequence[str],
        *,
        stdout: int,
        stderr: int,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Started:
        """A program that runs until it ends by itself or by a signal, beside others.

        Parameters
        ----------
        arguments
            Of the interpreter.
        stdout, stderr
            File descriptors of its output.
        cwd, env
            Its folder and environment; those of this process by default.
        """
        asked = {"arguments": list(arguments), "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
        status, theirs = os.pipe()
        with Path(os.devnull).open("rb") as none:
            message = json.dumps({**asked, "is_started": True}).encode()
            socket.send_fds(self._socket, [message], [none.fileno(), stdout, stderr, theirs])
        os.close(theirs)
        (pid,) = self._answer()
        return Started(pid, status)

    def _answer(self) -> tuple[int]:
        said = self._socket.recv(64)
        if not said:
            msg = "the process that forks for programs has ended; what it printed stands above"
            raise ChildProcessError(msg)
        return (int(said),)


class Started:
    """A program that was started, with the methods of `subprocess.Popen` that tests need."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid, self.returncode = pid, None
        self._status = status

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._within(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        status = self._within(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired([f"process {self.pid}"], timeout)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal; to an ended one nothing."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """End it by SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def _within(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            with os.fdopen(self._status, "rb") as file:
                self.returncode = int(file.read())
        return self.returncode


def _read(end: int, found: dict[int, bytes]) -> None:
    with os.fdopen(end, "rb") as file:
        found[end] = file.read()


def _write(end: int, given: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(end, "wb") as file:
        file.write(given)


def _serve(ours: socket.socket) -> list[str]:
    """Fork for each program that is asked for; in the fork, give the arguments of its interpreter."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in _FIRST:
        import_module(name)
    # Each program would build the tree of all commands anew, for longer than most commands take.
    typer = import_module("typer.main")
    typer.get_command = cache(typer.get_command)
    typer.get_command(import_module("farlink.cli.commands").app)
    nurses: list[int] = []
    while True:
        nurses = [one for one in nurses if os.waitpid(one, os.WNOHANG)[0] == 0]
        said, ends, _, _ = socket.recv_fds(ours, _MOST_BYTES, 4)
        if not said:
            os._exit(0)
        asked = json.loads(said)
        if asked.get("is_started"):
            for name in _OF_OPERATORS:
                import_module(name)
            nurse = _started(asked, ends, ours)
            if nurse == 0:
                return list(asked["arguments"])
            nurses.append(nurse)
            continue
        report, reported = os.pipe()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            os.close(report)
            ours.close()
            _become(asked, ends, reported)
            return list(asked["arguments"])
        os.close(reported)
        for end in ends:
            os.close(end)
        ours.send(str(pid).encode())
        with os.fdopen(report, "rb") as file:
            names = file.read().decode().split()
        _, status = os.waitpid(pid, 0)
        ours.send(str(os.waitstatus_to_exitcode(status)).encode())
        for name in names:
            # A program may have changed what is found, and may import what is not for others.
            with suppress(Exception):
                import_module(name)


def _started(asked: dict[str, object], ends: array.array[int] | list[int], ours: socket.socket) -> int:
    """Fork for a program that runs beside others. Its parent is a process that waits for its end: the number of that, or 0."""
    *ends, status = ends
    told, tells = os.pipe()
    gc.freeze()
    nurse = os.fork()
    if nurse == 0:
        ours.close()
        os.close(told)
        pid = os.fork()
        if pid == 0:
            for end in (status, tells):
                os.close(end)
            nothing, reported = os.pipe()
            os.close(nothing)
            _become(asked, ends, reported)
            return 0
        os.write(tells, str(pid).encode())
        for end in (*ends, tells):
            os.close(end)
        _, left = os.waitpid(pid, 0)
        os.write(status, str(os.waitstatus_to_exitcode(left)).encode())
        os._exit(0)
    for end in (*ends, status, tells):
        os.close(end)
    with os.fdopen(told, "rb") as file:
        ours.send(file.read())
    return nurse


def _become(asked: dict[str, object], ends: array.array[int] | list[int], reported: int) -> None:
    """Take on the folder, environment and streams of a program, and tell at its end what it has imported."""
    import atexit

    for place, end in enumerate(ends):
        os.dup2(end, place)
    for end in ends:
        os.close(end)
    os.chdir(str(asked["cwd"]))
    os.environ.clear()
    os.environ.update(asked["env"])  # type: ignore[call-overload]
    before, pid = set(sys.modules), os.getpid()

    def tell() -> None:
        if os.getpid() == pid:
            new = [name for name in sys.modules if name not in before and name.partition(".")[0] in _KEPT]
            with suppress(BrokenPipeError):
                os.write(reported, " ".join(new).encode()[:60_000])

    atexit.register(tell)
    os.set_inheritable(reported, False)


def _run(arguments: list[str]) -> None:
    """Run a program as the interpreter does."""
    import runpy

    kind, *rest = arguments
    if kind == "-m":
        sys.argv = rest
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")


def _end(status: int) -> None:
    """End as the interpreter does, but for freeing all that is imported, which takes longer than most programs."""
    import atexit

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if not stream.closed:
                stream.flush()
        except OSError:
            return  # The interpreter tells it.
    os._exit(status & 0xFF)


if __name__ == "__main__":
    _arguments = _serve(socket.socket(fileno=int(sys.argv[1])))
    _status: object = 0
    try:
        _run(_arguments)
    except SystemExit as _left:
        _status = 0 if _left.code is None else _left.code
        if not isinstance(_status, int):
            raise
    _end(_status)
    sys.exit(_status)
