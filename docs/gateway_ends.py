"""Clients, servers and generators of load for `gateway_paths.py`, which starts them within network namespaces.

Each prints lines of JSON: servers one a second, clients one at their end.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import http.server
import json
import os
import resource
import selectors
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from farlink import net

PIECE = bytes(1 << 16)
# What is longer between two arrivals is a pause.
PAUSE_S = 1.0


def tell(**said: Any) -> None:
    """Print a line."""
    print(json.dumps({"unix_s": time.time(), **said}), flush=True)


def address(text: str) -> tuple[str, int]:
    """Host and port."""
    host, _, port = text.rpartition(":")
    return host, int(port)


class Web(http.server.BaseHTTPRequestHandler):
    """Answers `/COUNT` with so many bytes."""

    protocol_version = "HTTP/1.1"
    # One segment for head and body of a short answer.
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer."""
        count = int(self.path.strip("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(count))
        self.end_headers()
        while count > 0:
            self.wfile.write(PIECE[:count])
            count -= len(PIECE)

    def do_POST(self) -> None:
        """Take what is sent, and answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def web(arguments: argparse.Namespace) -> None:
    """Serve HTTP."""
    with http.server.ThreadingHTTPServer(address(arguments.at), Web) as server:
        if arguments.control:
            # Those that it accepts inherit it.
            server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, arguments.control.encode())
        tell(ready=True)
        server.serve_forever()


class Served:
    """A connection of a server or a client, and what has passed."""

    def __init__(self, line: socket.socket) -> None:
        """It is in no loop yet."""
        self.line, self.bytes, self.last_s = line, 0, time.time()


def server(arguments: argparse.Namespace) -> None:
    """Serve TCP: `sink` reads, `mute` does not, `echo` answers, `source` writes as long as it can."""
    listener = socket.create_server(address(arguments.at), backlog=4096)
    listener.setblocking(False)
    loop = selectors.DefaultSelector()
    loop.register(listener, selectors.EVENT_READ)
    served: set[Served] = set()
    pauses: list[tuple[float, float]] = []
    accepted, failed, total, told_s = 0, 0, 0, time.time()
    events = {"sink": selectors.EVENT_READ, "echo": selectors.EVENT_READ, "source": selectors.EVENT_WRITE}
    tell(ready=True)
    while True:
        for key, _ in loop.select(0.2):
            if key.data is None:
                try:
                    line, _ = listener.accept()
                except OSError:
                    continue
                line.setblocking(False)
                one = Served(line)
                served.add(one)
                accepted += 1
                if arguments.kind in events:
                    loop.register(line, events[arguments.kind], one)
                continue
            one = key.data
            try:
                if arguments.kind == "source":
                    count = one.line.send(PIECE)
                else:
                    came = one.line.recv(len(PIECE))
                    count = len(came)
                    if arguments.kind == "echo":
                        one.line.sendall(came)
            except BlockingIOError:
                continue
            except OSError:
                failed, count = failed + 1, 0
            if count == 0:
                loop.unregister(one.line)
                one.line.close()
                served.discard(one)
                continue
            now_s = time.time()
            if one.bytes and now_s - one.last_s > PAUSE_S:
                pauses.append((one.last_s, now_s))
            one.last_s, one.bytes, total = now_s, one.bytes + count, total + count
        if time.time() - told_s >= arguments.every:
            told_s = time.time()
            each = sorted(one.bytes for one in served) or [0]
            tell(bytes=total, open=len(served), accepted=accepted, failed=failed, least=each[0], most=each[-1], pauses=pauses)


def clients(arguments: argparse.Namespace) -> None:
    """Open connections at a rate, and keep them: `push` writes, `pull` reads, `idle` says a byte at the end and awaits it."""
    loop = selectors.DefaultSelector()
    lines: list[Served] = []
    total, failed, first_s = 0, 0, time.time()
    pauses: list[tuple[float, float]] = []
    told_s = first_s
    events = {"push": selectors.EVENT_WRITE, "pull": selectors.EVENT_READ}

    def watch(one: Served) -> None:
        if arguments.kind in events:
            loop.register(one.line, events[arguments.kind], one)

    while (now_s := time.time()) < first_s + arguments.seconds:
        while len(lines) + failed < min(arguments.count, 1 + (now_s - first_s) * arguments.per_s):
            try:
                line = socket.create_connection(address(arguments.at))
            except OSError:
                failed += 1
                continue
            line.setblocking(False)
            lines.append(Served(line))
            watch(lines[-1])
        ready = loop.select(0.02) if loop.get_map() else time.sleep(0.02) or []
        for key, _ in ready:
            one = key.data
            try:
                count = one.line.send(PIECE) if arguments.kind == "push" else len(one.line.recv(len(PIECE)))
            except BlockingIOError:
                continue
            except OSError:
                count = 0
            if count == 0:
                loop.unregister(one.line)
                failed += 1
                continue
            came_s = time.time()
            if one.bytes and came_s - one.last_s > PAUSE_S:
                pauses.append((one.last_s, came_s))
            one.bytes, one.last_s, total = one.bytes + count, came_s, total + count
        if time.time() - told_s >= 1:
            told_s = time.time()
            tell(bytes=total, open=len(lines), failed=failed, pauses=pauses)
    each = sorted(one.bytes for one in lines) or [0]
    alive = answered(lines) if arguments.kind == "idle" else len(lines) - failed
    tell(end=True, bytes=total, open=len(lines), failed=failed, least=each[0], most=each[-1], pauses=pauses, alive=alive)


def answered(lines: list[Served]) -> int:
    """How many connections bring a byte to an echo and back, all at once, within 60 s."""
    loop = selectors.DefaultSelector()
    for one in lines:
        try:
            one.line.send(b"x")
            loop.register(one.line, selectors.EVENT_READ, one)
        except OSError:
            continue
    alive, until_s = 0, time.time() + 60
    while loop.get_map() and time.time() < until_s:
        for key, _ in loop.select(0.2):
            loop.unregister(key.fileobj)
            try:
                alive += key.data.line.recv(1) == b"x"
            except OSError:
                continue
    return alive


def own_cpu_s() -> float:
    """Processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def generate(seconds: float, per_s: float, act: Callable[[], bool]) -> None:
    """Act so often for so long; say how often it was, and what that cost."""
    began_s, done, failed = time.monotonic(), 0, 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        if done + failed >= passed_s * per_s:
            time.sleep(0.001)
            continue
        if act():
            done += 1
        else:
            failed += 1
    tell(end=True, done=done, failed=failed, per_s=(done + failed) / passed_s, cpu=own_cpu_s() / passed_s)


def storm(arguments: argparse.Namespace) -> None:
    """Connect, say a byte, and close, at a rate."""
    to = address(arguments.at)
    # A reset: ports in TIME-WAIT would run out in three seconds.
    linger = struct.pack("ii", 1, 0)

    def act() -> bool:
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            line.settimeout(1)
            try:
                line.connect(to)
                line.send(b"x")
            except OSError:
                return False
        return True

    generate(arguments.seconds, arguments.per_s, act)


def flood(arguments: argparse.Namespace) -> None:
    """Send datagrams at a rate."""
    line = socket.socket(type=socket.SOCK_DGRAM)
    line.connect(address(arguments.at))
    datagram = bytes(arguments.bytes)

    def act() -> bool:
        try:
            line.send(datagram)
        except OSError as error:
            return error.errno == errno.ECONNREFUSED
        return True

    generate(arguments.seconds, arguments.per_s, act)


def loris(arguments: argparse.Namespace) -> None:
    """Keep `count` clients that send their request a byte a second; who is turned away or given up comes again."""
    whole = b"\x05\xff" + bytes(255) if arguments.kind == "socks" else b"CONNECT a:1 HTTP/1.1\r\nX: " + b"x" * 1000
    began_s, ended, lines = time.monotonic(), 0, []
    while (passed_s := time.monotonic() - began_s) < arguments.seconds:
        for _ in range(arguments.count - len(lines)):
            try:
                line = socket.create_connection(address(arguments.at), 1)
            except OSError:
                ended += 1
                continue
            line.setblocking(False)
            lines.append([line, 0])
        kept = []
        for line, sent in lines:
            try:
                line.send(whole[sent : sent + 1])
                if line.recv(1) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                line.close()
                ended += 1
                continue
            sent = min(sent, len(whole) - 2)
            kept.append([line, sent + 1])
        lines = kept
        time.sleep(max(0.0, 1 - (time.monotonic() - began_s - passed_s)))
    tell(end=True, ended=ended, per_s=ended / passed_s, cpu=own_cpu_s() / passed_s)


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Of a stream."""
    return {"keys": arguments.keys} | ({"rate_bps": arguments.rate} if arguments.rate else {})


def stream_server(arguments: argparse.Namespace) -> None:
    """Accept streams of `farlink.net`: what comes is counted each second, and `GET COUNT` answered with so many bytes."""

    async def serve(stream: net.Connection) -> None:
        asked = await stream.read(64)
        if asked.startswith(b"GET "):
            await stream.write(bytes(int(asked.split()[1])))
            await stream.finish()
            return
        total, told_s, first_s = len(asked), time.time(), time.time()
        tell(bytes=total, since_s=0.0)
        async for piece in stream:
            total += len(piece)
            if (now_s := time.time()) - told_s >= arguments.every:
                told_s = now_s
                tell(bytes=total, since_s=now_s - first_s)

    async def run() -> None:
        async with net.listen(arguments.at, **settings(arguments)) as listener:
            tell(ready=True)
            waiting = set()
            async for stream in listener:
                task = asyncio.create_task(serve(stream))
                waiting.add(task)
                task.add_done_callback(waiting.discard)

    asyncio.run(run())


def stream_client(arguments: argparse.Namespace) -> None:
    """Write for some seconds, or get `count` bytes."""

    async def run() -> None:
        began_s, came = time.time(), 0
        async with net.connect(arguments.at, **settings(arguments)) as stream:
            if not arguments.count:
                while time.time() < began_s + arguments.seconds:
                    await stream.write(PIECE)
                os._exit(0)
            await stream.write(b"GET %d" % arguments.count)
            async for piece in stream:
                came += len(piece)
                if time.time() > began_s + arguments.seconds:
                    break
            tell(bytes=came, took_s=time.time() - began_s)
            os._exit(0)

    asyncio.run(run())


ROLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "web": web,
    "server": server,
    "clients": clients,
    "storm": storm,
    "flood": flood,
    "loris": loris,
    "stream-server": stream_server,
    "stream-client": stream_client,
}


def main() -> None:
    """Play one role."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("at", help="address with a port")
    parser.add_argument("--kind", default="sink")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--bytes", type=int, default=1200)
    parser.add_argument("--per-s", type=float, default=1e9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--control", help="congestion control of `web`")
    parser.add_argument("--keys")
    parser.add_argument("--rate", type=float, default=0.0)
    arguments = parser.parse_args()
    ROLES[arguments.role](arguments)


if __name__ == "__main__":
    main()
