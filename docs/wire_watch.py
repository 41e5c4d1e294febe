"""What arrives at a receiver, for `wire.py`, which starts it within the receiver's network namespace.

It prints a line of JSON whenever it finds that something has arrived, looking a hundred times a second.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

EVERY_S = 0.01


def came_bytes(device: str) -> int:
    """Bytes of IP packets that a device has received, as the kernel counts them."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == device:
            return int(counts.split()[0])
    return 0


def content_bytes(folder: Path) -> int:
    """Bytes of file content in a folder, partial files included."""
    sizes = [0]
    for path in folder.rglob("*"):
        try:
            if path.is_file() and path.suffix != ".log":
                sizes.append(path.stat().st_size)
        except FileNotFoundError:  # it has got its name since
            continue
    return max(sizes)


def main() -> None:
    """Watch until somebody ends it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("folder", type=Path, help="where one file arrives")
    arguments = parser.parse_args()
    before = (-1, -1)
    while True:
        now = (came_bytes(arguments.device), content_bytes(arguments.folder))
        if now != before:
            print(json.dumps({"unix_s": time.time(), "came_bytes": now[0], "content_bytes": now[1]}), flush=True)
            before = now
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
