"""One end of a flow of the kernel's TCP, for `aerotp_kernel.py`, which starts it within a network namespace.

The receiver prints what has arrived, twice a second, as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import socket
import time

EVERY_S = 0.5
CHUNK_BYTES = 1 << 18


def receive(address: str, port: int) -> None:
    """Take one connection and read from it until it ends."""
    listener = socket.create_server((address, port))
    listener.settimeout(60)
    connection, _ = listener.accept()
    connection.settimeout(EVERY_S / 2)
    buffer = bytearray(CHUNK_BYTES)
    moved_bytes, told_s = 0, 0.0
    is_open = True
    while is_open:
        try:
            count = connection.recv_into(buffer)
            moved_bytes += count
            is_open = count > 0
        except TimeoutError:
            pass
        except ConnectionResetError:
            is_open = False
        if (now_s := time.time()) >= told_s + EVERY_S or not is_open:
            told_s = now_s
            print(json.dumps({"unix_s": now_s, "moved_bytes": moved_bytes}), flush=True)


def send(address: str, port: int, control: str) -> None:
    """Send until somebody ends it, under the kernel's congestion control of that name."""
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    connection.connect((address, port))
    piece = bytes(CHUNK_BYTES)
    while True:
        connection.sendall(piece)


def main() -> None:
    """Be the end that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("end", choices=("send", "receive"))
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--control", default="cubic", help="congestion control of the kernel (%(default)s)")
    arguments = parser.parse_args()
    if arguments.end == "send":
        send(arguments.address, arguments.port, arguments.control)
    else:
        receive(arguments.address, arguments.port)


if __name__ == "__main__":
    main()
