"""Commands to a running operator, over a local socket: a line of JSON there, a line of JSON back."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from farlink.errors import FarlinkError, OperatorError, OutputError

_MOST_REQUEST_BYTES = 65536
_LIMIT_S = 10.0
_ANSWER_S = 60.0

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class UnreachableError(OperatorError):
    """The operator does not run, does not answer, or is another user's."""


def socket_of(journal: Path) -> Path:
    """The socket of the operator that writes a journal."""
    return journal.with_name(f"{journal.name}.sock")


class Server:
    """Answers requests. The socket belongs to its user alone (mode 0600).

    Parameters
    ----------
    path
        The socket. One that is there is left over from a killed operator: the journal's lock says that nobody uses it.
    handle
        Answers a request; a `FarlinkError` goes back as its message and remedy.
    """

    def __init__(self, path: Path, handle: Handler) -> None:
        self._path, self._handle = path, handle
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        OutputError
            If there cannot be a socket.
        """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            if self._path.exists() and not stat.S_ISSOCK(self._path.lstat().st_mode):
                raise OutputError(f"{self._path} is no socket", "move it away: the operator listens there")
            self._path.unlink(missing_ok=True)
            bind_privately(listener, self._path)
        except OSError as error:
            listener.close()
            message = f"cannot listen at {self._path}: {error.strerror}"
            raise OutputError(message, "keep the journal in a folder that you may write to") from error
        except OutputError:
            listener.close()
            raise
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=_MOST_REQUEST_BYTES)

    async def close(self) -> None:
        """Listen no longer."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_LIMIT_S):
                line = await reader.readline()
            answer = await self._answer(line)
            writer.write(json.dumps(answer).encode() + b"\n")
            async with asyncio.timeout(_LIMIT_S):
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.CancelledError):
            pass  # who asks is gone, slow, or says too much; or the operator ends, and asyncio would tell of the cancelled task
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return {"error": "the request is no JSON object", "remedy": 'send a line such as {"do": "status"}'}
        try:
            return {"answer": await self._handle(request)}
        except FarlinkError as error:
            return {"error": error.message, "remedy": error.remedy}
        except Exception as error:  # of this program: who asks is to hear of it, and the operator goes on
            return {"error": f"internal error of the operator: {error!r}", "remedy": "please report it"}


def ask(journal: Path, request: dict[str, Any], *, bundle: str, within_s: float = _ANSWER_S) -> dict[str, Any]:
    """Ask the operator of a bundle.

    Parameters
    ----------
    journal
        Its journal.
    request
        What it is to do.
    bundle
        Name of the bundle, for messages.
    within_s
        How long each part of the answer may take, in s.

    Raises
    ------
    UnreachableError
        If no operator answers.
    OperatorError
        If it refuses.
    """
    path = socket_of(journal)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(within_s)
        try:
            with short_name(path) as name:
                asking.connect(name)
            asking.sendall(json.dumps(request).encode() + b"\n")
            said = b""
            while not said.endswith(b"\n") and (data := asking.recv(_MOST_REQUEST_BYTES)):
                said += data
        except PermissionError as error:
            raise UnreachableError(f"the operator of bundle {bundle} is another user's", "ask as its user") from error
        except (FileNotFoundError, ConnectionRefusedError) as error:
            message = f"no operator of bundle {bundle} is running ({path})"
            raise UnreachableError(message, "start it: farlink bundle up FILE") from error
        except OSError as error:
            raise UnreachableError(
                f"the operator of bundle {bundle} does not answer: {error}", "look at what it says"
            ) from error
    if not said.endswith(b"\n"):
        raise UnreachableError(f"the operator of bundle {bundle} ended while it answered", "look at what it says")
    return _answer_in(said, bundle)


def _answer_in(said: bytes, bundle: str) -> dict[str, Any]:
    """The answer in a line. It may be that of another version, or of a stranger who has made the socket."""
    try:
        given = json.loads(said)
    except (ValueError, RecursionError):
        given = None
    match given:
        case {"error": str(error), "remedy": str(remedy)}:
            raise OperatorError(error, remedy)
        case {"answer": dict(answer)}:
            return answer
    message = f"the operator of bundle {bundle} answers what this farlink does not understand"
    raise UnreachableError(message, "use the farlink of the operator")


def bind_privately(listener: socket.socket, path: Path) -> None:
    """Bind a Unix socket to a path that belongs to this user alone (mode 0600), from its first moment on.

    Raises
    ------
    OSError
        If that cannot be done.
    """
    before = os.umask(0o177)
    try:
        with short_name(path) as name:
            listener.bind(name)
    finally:
        os.umask(before)


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of a socket that is short enough for one (107 bytes), however long its folder's is."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        with suppress(OSError):
            os.close(folder)
