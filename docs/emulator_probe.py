"""Timed datagrams between two ends of a path, as separate processes: `source` sends at given instants, `sink` notes arrivals.

Both write, for each datagram, its number and an instant in ns since 1970 as 64-bit integers: that before the call that sent it,
and that at which the kernel got it.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

SO_TIMESTAMPNS = 35
UDP_SEGMENT = 103
NUMBER = struct.Struct("!q")
PAIR = struct.Struct("=qq")


def prioritise() -> None:
    """Take a real-time priority below the emulator's, if there is one to be had."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(40))


def source(address: str, port: str, payload_bytes: str, interval_s: str, count: str, name: str) -> None:
    """Send datagrams at equal distances."""
    prioritise()
    data = bytearray(int(payload_bytes))
    with socket.socket(type=socket.SOCK_DGRAM) as line, Path(name).open("wb") as sent:
        line.connect((address, int(port)))
        begin, gap = time.monotonic_ns() + 50_000_000, round(float(interval_s) * 1e9)
        for number in range(int(count)):
            due = begin + number * gap
            while (left := due - time.monotonic_ns()) > 0:
                if left > 200_000:
                    time.sleep((left - 150_000) / 1e9)
            NUMBER.pack_into(data, 0, number)
            sent.write(PAIR.pack(number, time.time_ns()))
            line.send(data)


def flood(address: str, port: str, payload_bytes: str, seconds: str, rate_bps: str) -> None:
    """Send at a rate, or as fast as it goes, 40 datagrams to a call."""
    with socket.socket(type=socket.SOCK_DGRAM) as line:
        line.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, int(payload_bytes))
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        line.connect((address, int(port)))
        data, due = bytes(int(payload_bytes) * 40), time.monotonic()
        end, gap = due + float(seconds), 40 * (int(payload_bytes) + 28) * 8 / float(rate_bps)
        while (now := time.monotonic()) < end:
            if now < due:
                time.sleep(due - now)
            due += gap
            line.send(data)


def sink(address: str, port: str, seconds: str, name: str) -> None:
    """Note arrivals until none came for so long."""
    prioritise()
    with socket.socket(type=socket.SOCK_DGRAM) as line, Path(name).open("wb") as came:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        line.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        line.bind((address, int(port)))
        print("ready", flush=True)
        line.settimeout(float(seconds))
        with suppress(TimeoutError):
            while True:
                data, notes, _, _ = line.recvmsg(65536, 64)
                seconds_, nanoseconds = struct.unpack("=qq", notes[0][2][:16])
                came.write(PAIR.pack(NUMBER.unpack_from(data)[0], seconds_ * 1_000_000_000 + nanoseconds))


if __name__ == "__main__":
    {"source": source, "sink": sink, "flood": flood}[sys.argv[1]](*sys.argv[2:])
