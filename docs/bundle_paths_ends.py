"""Programs at the ends of `bundle_paths.py` and `bundle_tcp.py`: ROLE ADDRESS PORT SECONDS [--mptcp] [--rate PACKETS_PER_S].

Roles: ``bulk-source`` writes to a connection as fast as it takes, ``bulk-sink`` counts what arrives in each 10 ms;
``stream-source`` sends numbered datagrams of 160 bytes with DSCP EF, ``stream-sink`` notes when each arrives first. Sinks print
rows of times in s.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import time

_MPTCP = 262
_EF = 46 << 2
_BIN_S = 0.01
_PAYLOAD_BYTES = 160


def _connection(given: argparse.Namespace) -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP if given.mptcp else 0)


def bulk_source(given: argparse.Namespace) -> None:
    """Write until the time is over."""
    with _connection(given) as to:
        to.connect((given.address, given.port))
        end, block = time.monotonic() + given.seconds, bytes(65_536)
        to.settimeout(1.0)
        while time.monotonic() < end:
            try:
                to.send(block)
            except TimeoutError:
                continue
            except ConnectionError:  # the sink's time was over first
                break


def bulk_sink(given: argparse.Namespace) -> None:
    """Count what arrives, in bins: rows of the bin's begin and its bytes."""
    with _connection(given) as listening:
        listening.bind((given.address, given.port))
        listening.listen(1)
        print("ready", flush=True)
        taken, _ = listening.accept()
        begin, bins = time.monotonic(), dict[int, int]()
        print(f"accepted at {begin:.3f}", flush=True)
        taken.settimeout(1.0)
        while (passed_s := time.monotonic() - begin) < given.seconds:
            try:
                count = len(taken.recv(1 << 20))
            except TimeoutError:
                continue
            if count == 0:
                break
            at = int(passed_s / _BIN_S)
            bins[at] = bins.get(at, 0) + count
    print(json.dumps([[round(at * _BIN_S, 3), count] for at, count in bins.items()]), flush=True)


def stream_source(given: argparse.Namespace) -> None:
    """Send at a constant rate."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        to.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _EF)
        begin = time.monotonic()
        for number in range(int(given.seconds * given.rate)):
            time.sleep(max(0.0, begin + number / given.rate - time.monotonic()))
            to.sendto(struct.pack("!I", number) + bytes(_PAYLOAD_BYTES - 4), (given.address, given.port))


def stream_sink(given: argparse.Namespace) -> None:
    """Note when each number arrives first: rows of time and number, and how many came twice."""
    wanted, twice, rows, seen = int(given.seconds * given.rate), 0, list[list[float]](), set[int]()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind((given.address, given.port))
        print("ready", flush=True)
        begin = time.monotonic()
        listening.settimeout(1.0)
        while time.monotonic() < begin + given.seconds + 5 and len(seen) < wanted:
            try:
                datagram = listening.recv(2048)
            except TimeoutError:
                continue
            (number,) = struct.unpack("!I", datagram[:4])
            twice += number in seen
            if number not in seen:
                rows.append([round(time.monotonic() - begin, 4), number])
            seen.add(number)
    print(f"twice {twice}")
    print(json.dumps(rows), flush=True)


ROLES = {"bulk-source": bulk_source, "bulk-sink": bulk_sink, "stream-source": stream_source, "stream-sink": stream_sink}


def main() -> None:
    """Play a role."""
    asked = argparse.ArgumentParser()
    asked.add_argument("role", choices=ROLES)
    asked.add_argument("address")
    asked.add_argument("port", type=int)
    asked.add_argument("seconds", type=float)
    asked.add_argument("--mptcp", action="store_true")
    asked.add_argument("--rate", type=float, default=50.0)
    given = asked.parse_args()
    ROLES[given.role](given)


if __name__ == "__main__":
    main()
