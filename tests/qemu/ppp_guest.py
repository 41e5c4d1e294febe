"""What a guest needs for real pppds: modules of Debian's kernel, pseudo-terminals, and folders that pppd takes for granted."""

from __future__ import annotations

import shutil

from tests.qemu import guest

MODULES = ("ppp_generic", "ppp_async", "crc-ccitt")
SETUP = """
mkdir -p /dev/pts /run/lock /run/ppp
mount -t devpts devpts /dev/pts
ip link set lo up
cd {root}
"""


def missing() -> str | None:
    """Why real pppds cannot be tried here; None if they can."""
    if shutil.which("pppd", path="/usr/sbin:/sbin") is None:
        return "pppd is not installed (package ppp)"
    return guest.missing()
