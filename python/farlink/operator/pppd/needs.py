"""Needs of pppd that this machine, or the user, lacks, with remedies.

Root needs pppd and a kernel with PPP. Without root the right to make an interface (CAP_NET_ADMIN) is that of pppd's own setuid
bit, which the group `dip` may use (Debian). Such a pppd takes options like `noauth` only from files that root wrote:
``/etc/ppp/peers``, and passwords from ``/etc/ppp/chap-secrets``. `Pppd.install` writes both, once.
"""

from __future__ import annotations

import grp
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from farlink.operator.config.bundle import Bundle
from farlink.operator.pppd.options import Pppd

_PATHS = "/usr/sbin:/sbin:/usr/bin:/usr/local/sbin"
INSTALL = "sudo farlink bundle check FILE --install"


@dataclass(frozen=True)
class Need:
    """Something that is missing, and what to do."""

    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}"


def program_of(name: str | None = None) -> str:
    """The path of pppd, or its name where there is none."""
    return name or shutil.which("pppd", path=_PATHS) or "pppd"


def needs_of(bundle: Bundle, compiler: Pppd, *, program: str | None = None, device: Path = Path("/dev/ppp")) -> list[Need]:
    """Missing needs of the links of a bundle.

    Parameters
    ----------
    bundle
        The bundle.
    compiler
        Of its options.
    program
        pppd.
    device
        The kernel's PPP.
    """
    path = shutil.which(program_of(program), mode=os.F_OK)
    found = [] if path is not None else [Need("pppd is not installed here", "apt install ppp")]
    if not device.exists():
        remedy = "modprobe ppp_generic, or another kernel"
        found.append(Need(f"this kernel has no PPP ({device} is missing), so pppd cannot start", remedy))
    if os.geteuid() == 0:
        return found
    if path is not None:
        found += _rights(Path(path))
    if compiler.differing(bundle):
        where = f"{compiler.peers}/{compiler.peer(bundle, bundle.ppp_lines[0])}"
        found.append(Need(f"{where} is missing, or is not what the file says; pppd takes its options from there", INSTALL))
    folder = compiler.folder
    if not (os.access(folder, os.W_OK) or (not folder.exists() and os.access(folder.parent, os.W_OK))):
        remedy = f'sudo install -d -o "$USER" {folder}; in a unit of systemd RuntimeDirectory={folder.name}'
        found.append(Need(f"this user may not write to {folder}, where messages of pppd are kept", remedy))
    return found


def _rights(program: Path) -> list[Need]:
    status = program.stat()
    found = []
    if status.st_uid != 0 or not status.st_mode & stat.S_ISUID:
        remedy = f"sudo chown root:dip {program} && sudo chmod 4754 {program}, or run the operator as root"
        found.append(Need(f"{program} is not setuid root, and this user may make no interface", remedy))
    if not os.access(program, os.X_OK):
        group = _group(status.st_gid)
        remedy = f'sudo usermod -aG {group} "$USER", then log in again'
        found.append(Need(f"this user may not start {program}, only its group {group} may", remedy))
    return found


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
