"""A guest with Debian's kernel: programs of this machine where they have a kernel of their own, root and all modules.

The guest has the root of this machine by 9p, with its own changes on top, so that nothing is packed; what it needs beside that
is the kernel's package, which is downloaded once. QEMU emulates the processor: no KVM is needed, and everything takes about
twenty times as long.
"""

from __future__ import annotations

import functools
import io
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "farlink-tests"
"""Where downloaded kernels are kept."""
_PACKAGE = "linux-image-amd64"
# What the guest needs to have this machine's files.
_MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]
_WORK = "/mnt"

# Written to the serial console: the end of a run, with its status.
_END = "guest ended with status"
_ENVIRONMENT = "PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp"

_INIT = f"""#!/bin/busybox sh
export PATH=/bin
busybox mkdir -p /proc /below /above /host
busybox mount -t proc proc /proc
for module in $(busybox cat /modules/order); do busybox insmod /modules/$module || echo "no $module"; done
busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=500000 host /below
busybox mount -t tmpfs tmpfs /above
busybox mkdir /above/upper /above/work
busybox mount -t overlay -o lowerdir=/below,upperdir=/above/upper,workdir=/above/work overlay /host
busybox rm -f /host/.dockerenv # systemd would take the guest for a container
busybox mount -t proc proc /host/proc
busybox mount -t sysfs sysfs /host/sys
busybox mount -t devtmpfs devtmpfs /host/dev
for at in tmp run; do busybox mount -t tmpfs tmpfs /host/$at; done
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=500000 work /host{_WORK}
if [ -s /unit ]; then
    busybox mkdir -p /host/run/systemd/system
    busybox cp /unit /host/run/systemd/system/guest.service
    exec busybox switch_root /host /lib/systemd/systemd --unit=guest.service
fi
busybox chroot /host /bin/sh -c "cd {_WORK}; export {_ENVIRONMENT}; exec /bin/sh -eu guest.sh" </host/dev/null
echo "{_END} $?"
busybox poweroff -f
"""

# What systemd does when it is the guest's first process.
_UNIT = f"""[Unit]
DefaultDependencies=no

[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
ExecStart=/bin/sh -c 'cd {_WORK}; export {_ENVIRONMENT}; /bin/sh -eu guest.sh; echo "{_END} $?"; systemctl poweroff -ff'
"""


@dataclass(frozen=True)
class Ended:
    """A run of a guest."""

    status: int | None
    """Status of the script; None if the guest did not get to its end."""
    console: str
    """What the guest wrote."""


def missing() -> str | None:
    """Why there is no guest here; None if there is one. A kernel is downloaded if there is none."""
    if os.geteuid() != 0:
        return "not root: the guest reads this machine's files"
    for program, package in (("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"), ("dpkg-deb", "dpkg")):
        if shutil.which(program) is None:
            return f"{program} is not installed (package {package})"
    try:
        _kernel()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"no kernel of Debian: {error}"
    return None


def run(
    script: str,
    work: Path,
    *,
    modules: Sequence[str] = (),
    systemd: bool = False,
    memory_mib: int = 384,
    timeout_s: float = 180,
) -> Ended:
    """Run a shell script as root in a guest that has this machine's files.

    Parameters
    ----------
    script
        Lines of `sh`; the first that fails ends it. It begins in `/mnt`, which is `work`; `/tmp` and `/run` are empty. What it
        changes elsewhere is gone with the guest.
    work
        A folder of this machine that the guest may write.
    modules
        Modules of the kernel, without those that they need.
    systemd
        The script runs below systemd, for `systemctl`.
    memory_mib
        Memory of the guest.
    timeout_s
        The guest is killed after so long.
    """
    (work / "guest.sh").write_text(script)
    initrd = work / "initrd"
    initrd.write_bytes(_initrd([*_MODULES, *modules], _UNIT if systemd else ""))
    share = "security_model=none,multidevs=remap"
    command = [
        *("qemu-system-x86_64", "-accel", "tcg,thread=single", "-machine", "pc", "-cpu", "max", "-smp", "1"),
        *("-m", str(memory_mib), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"),
        *("-kernel", str(_kernel()[0]), "-initrd", str(initrd)),
        *("-virtfs", f"local,path=/,mount_tag=host,readonly=on,{share}"),
        *("-virtfs", f"local,path={work},mount_tag=work,{share}"),
        "-append",
        "console=ttyS0 quiet panic=-1 tsc=unstable mitigations=off nokaslr no_timer_check random.trust_cpu=on rdinit=/init",
    ]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
        said = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"") + (error.stderr or b"")
    console = said.decode(errors="replace").replace("\r\n", "\n")
    found = re.search(rf"{_END} (\d+)", console)
    return Ended(status=int(found[1]) if found else None, console=console)


@functools.cache
def _kernel() -> tuple[Path, Path]:
    """The kernel's file, and the folder with its modules."""
    CACHE.mkdir(parents=True, exist_ok=True)
    places = sorted(CACHE.glob("linux-image-*/unpacked"))
    if not places:
        shown = _apt("apt-cache", "depends", "--no-suggests", "--no-recommends", _PACKAGE)
        [package, *_] = re.findall(r"Depends: (linux-image-[\w.+-]+)", shown) or [""]
        if not package:
            raise ValueError(f"apt does not know {_PACKAGE}")
        folder = CACHE / package
        folder.mkdir(exist_ok=True)
        _apt("apt-get", "download", package, cwd=folder)
        [downloaded, *_] = folder.glob("*.deb")
        _apt("dpkg-deb", "--extract", str(downloaded), str(folder / "partial"))
        downloaded.unlink()
        places = [(folder / "partial").rename(folder / "unpacked")]
    [kernel, *_] = places[-1].glob("boot/vmlinuz-*")
    [modules, *_] = places[-1].glob("lib/modules/*")
    return kernel, modules


def _apt(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=cwd)
    if done.returncode != 0:
        raise ValueError(" ".join(f"{' '.join(command)}: {done.stderr}".split())[:300])
    return done.stdout


def _initrd(modules: Sequence[str], unit: str) -> bytes:
    """Busybox, modules in an order in which they can be loaded, and what starts them, as an archive of cpio."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    files = {"init": _INIT.encode(), "unit": unit.encode(), "bin/busybox": Path(busybox).read_bytes()}
    order: list[str] = []
    known = {path.stem.replace("-", "_"): path for path in _kernel()[1].rglob("*.ko")}
    for module in modules:
        _add(module, known, files, order)
    files["modules/order"] = "\n".join(order).encode()
    archive = io.BytesIO()
    for number, (name, content) in enumerate([("bin", b""), ("modules", b""), *files.items()], 1):
        mode = 0o040755 if name in ("bin", "modules") else 0o100755
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        _put(archive, b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0")
        _put(archive, content)
    fields = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, len("TRAILER!!!") + 1, 0]
    _put(archive, b"070701" + b"".join(b"%08x" % field for field in fields) + b"TRAILER!!!\0")
    return archive.getvalue()


def _put(archive: io.BytesIO, content: bytes) -> None:
    archive.write(content + b"\0" * (-len(content) % 4))


def _add(module: str, known: dict[str, Path], files: dict[str, bytes], order: list[str]) -> None:
    """Add a module behind those that it needs; what the kernel has built in is no file."""
    path = known.get(module.replace("-", "_"))
    if path is None or path.name in order:
        return
    content = path.read_bytes()
    needed = ",".join(text.decode() for text in re.findall(rb"\0depends=([^\0]*)\0", content)).split(",")
    # An algorithm that is asked for by its name, as crc32c.
    algorithms = b" ".join(re.findall(rb"\0softdep=pre: ([^\0]*)\0", content)).decode().split()
    for each in [*needed, *(f"{name}_generic" for name in algorithms)]:
        _add(each, known, files, order)
    files[f"modules/{path.name}"] = content
    order.append(path.name)
