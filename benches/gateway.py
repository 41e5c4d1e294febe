"""A download through a pair of gateways, and one over a stream of `farlink.net`, over the same slow, lossy path.

    python benches/gateway.py [--rate 10e6] [--one-way 0.125] [--loss 0 0.01 0.1] [--bytes 12e6]

The path is a relay of UDP datagrams of this process: a queue with the rate, a delay, independent losses. Both ends are told the
rate, less 2 %. Printed are goodputs in Mb/s and their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from farlink import net

HEADERS = 28  # of IPv4 and UDP, which a relay does not see


class Relay(asyncio.DatagramProtocol):
    """One direction's socket; what arrives is sent by the other one's."""

    def __init__(self, path: Channel, to: tuple[str, int] | None) -> None:
        self.path, self.to, self.busy_until, self.other = path, to, 0.0, self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.to is None:
            self.answer_to = addr
        now = time.monotonic()
        if self.busy_until - now > self.path.queue_s:
            return
        self.busy_until = max(self.busy_until, now) + (len(data) + HEADERS) * 8 / self.path.rate_bps
        if self.path.random.random() >= self.path.loss:
            asyncio.get_running_loop().call_at(self.busy_until + self.path.one_way_s, self.other.forward, data)

    answer_to: tuple[str, int] | None = None

    def forward(self, data: bytes) -> None:
        to = self.to or self.answer_to
        if to is not None:
            self.transport.sendto(data, to)


class Channel:
    """A path to an address, run by a thread of its own."""

    queue_s = 0.25

    def __init__(self, to: str, rate_bps: float, one_way_s: float, loss: float) -> None:
        self.rate_bps, self.one_way_s, self.loss, self.random = rate_bps, one_way_s, loss, random.Random(1)
        host, _, port = to.rpartition(":")
        started = threading.Event()

        async def run() -> None:
            loop = asyncio.get_running_loop()
            _, near = await loop.create_datagram_endpoint(lambda: Relay(self, None), ("127.0.0.1", 0))
            _, far = await loop.create_datagram_endpoint(lambda: Relay(self, (host, int(port))), ("127.0.0.1", 0))
            near.other, far.other = far, near
            for it in (near, far):
                it.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            self.address = f"127.0.0.1:{near.transport.get_extra_info('sockname')[1]}"
            started.set()
            await asyncio.Event().wait()

        threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
        started.wait()


def serve(count: int) -> tuple[str, threading.Thread]:
    """A TCP server that sends so many bytes to each client."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            client, _ = listener.accept()
            with client:
                client.sendall(bytes(count))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return f"127.0.0.1:{listener.getsockname()[1]}", thread


def through_gateways(folder: Path, rate_bps: float, one_way_s: float, loss: float, count: int) -> float:
    destination, _ = serve(count)
    packets = f"[packets]\nrate_bps = {rate_bps * 0.98}\n[limits]\nwindow_bytes = 4_000_000\n"
    (folder / "hub.toml").write_text(f'keys = "hub"\nlisten = "127.0.0.1:0"\n{packets}[peer.office]\nallow = ["127.0.0.1:*"]\n')
    running = []

    def start(name: str) -> list[str]:
        command = [sys.executable, "-m", "farlink.cli", "gateway", f"{name}.toml", "--log", "error"]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stderr is not None
        return re.findall(r"[\d.]+:\d+", process.stderr.readline())

    try:
        [sessions, *_] = start("hub")
        path = Channel(sessions, rate_bps, one_way_s, loss)
        (folder / "office.toml").write_text(
            f'keys = "office"\n{packets}[peer.hub]\naddress = "{path.address}"\n'
            f'[[forward]]\nlisten = "127.0.0.1:0"\ndestination = "{destination}"\n'
        )
        [_, forward, *_] = start("office")
        host, _, port = forward.partition(":")
        began, arrived = time.monotonic(), 0
        with socket.create_connection((host, int(port))) as client:
            while piece := client.recv(1 << 16):
                arrived += len(piece)
        assert arrived == count, arrived
        return count * 8 / (time.monotonic() - began) / 1e6
    finally:
        for process in running:
            process.kill()
            process.wait()


async def as_stream(folder: Path, rate_bps: float, one_way_s: float, loss: float, count: int) -> float:
    settings = {"rate_bps": rate_bps * 0.98}
    async with net.listen("127.0.0.1:0", keys=str(folder / "hub"), **settings) as listener:
        path = Channel(listener.address, rate_bps, one_way_s, loss)

        async def send() -> None:
            async with await listener.accept() as accepted:
                await accepted.read(1)
                await accepted.write(bytes(count))
                await accepted.finish()

        sending = asyncio.create_task(send())
        began, arrived = time.monotonic(), 0
        async with net.connect(path.address, keys=str(folder / "office"), **settings) as connection:
            await connection.write(b"x")
            async for piece in connection:
                arrived += len(piece)
            took = time.monotonic() - began
        await sending
        assert arrived == count, arrived
        return count * 8 / took / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=10e6)
    parser.add_argument("--one-way", type=float, default=0.125)
    parser.add_argument("--loss", type=float, nargs="+", default=[0.0, 0.01, 0.1])
    parser.add_argument("--bytes", type=float, default=12e6)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys = {host: net.generate_key(keys=str(folder / host)) for host in ("office", "hub")}
        net.trust(keys["hub"], "hub", keys=str(folder / "office"))
        net.trust(keys["office"], "office", keys=str(folder / "hub"))
        for loss in options.loss:
            arguments = (folder, options.rate, options.one_way, loss, int(options.bytes))
            alone = asyncio.run(as_stream(*arguments))
            gateways = through_gateways(*arguments)
            print(f"loss {loss}: stream {alone:.2f}, gateways {gateways:.2f}, ratio {gateways / alone:.2f}", flush=True)


if __name__ == "__main__":
    main()
