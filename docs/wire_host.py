"""A network namespace with programs in it, for `wire_faults.py` and `wire_shortages.py`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from kernel_paths import MEMORY, PREFIX, cpu_s, output_of

LISTEN = "127.0.0.1:47470"
LIBFAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


class Host:
    """A network namespace with nothing but its loopback interface, and programs in it; both end with it."""

    def __init__(self) -> None:
        """Nothing is made before `with`."""
        self.name = f"{PREFIX}{os.getpid()}-faults"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=MEMORY if MEMORY.is_dir() else None)
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Self:
        """Make the namespace."""
        output_of("ip", "netns", "add", self.name)
        output_of("ip", "-n", self.name, "link", "set", "lo", "up")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End all programs and remove the namespace."""
        for process in self.running.values():
            process.kill()
            process.wait()
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)
        self._folder.cleanup()

    def start(self, name: str, *command: str | Path, step_s: float = 0.0, may_step: bool = False) -> subprocess.Popen[bytes]:
        """Start a program, with a wall clock that is a step ahead, or one that `step` changes while it runs."""
        words = ["ip", "netns", "exec", self.name, *map(str, command)]
        environment = dict(os.environ)
        if step_s:
            environment |= {"LD_PRELOAD": LIBFAKETIME, "FAKETIME": f"{step_s:+g}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        elif may_step:
            self.step(name, 0.0)
            environment |= {"LD_PRELOAD": LIBFAKETIME, "FAKETIME_TIMESTAMP_FILE": str(self._clock(name))}
            environment |= {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        with (self.folder / f"{name}.out").open("ab") as out, (self.folder / f"{name}.err").open("ab") as err:
            process = subprocess.Popen(
                words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=self.folder, env=environment
            )
        self.running[name] = process
        return process

    def step(self, name: str, ahead_s: float) -> None:
        """Set the wall clock of a program that was started so, also while it runs."""
        new = self._clock(name).with_suffix(".new")
        new.write_text(f"{ahead_s:+g}\n", encoding="ascii")
        new.replace(self._clock(name))

    def _clock(self, name: str) -> Path:
        return self.folder / f"{name}.clock"

    def said(self, name: str) -> str:
        """What a program wrote to stdout and stderr."""
        return "".join((self.folder / f"{name}.{end}").read_text(encoding="utf-8") for end in ("out", "err"))

    def cpu_s(self, name: str) -> float:
        """Processor time that a running program has used, with its threads."""
        return cpu_s(self.running[name])

    def memory_bytes(self, name: str) -> int:
        """Resident memory of a running program."""
        return resident_bytes(self.running[name].pid)

    def arrived(self) -> int:
        """Datagrams that programs of the namespace could read."""
        lines = output_of("ip", "netns", "exec", self.name, "cat", "/proc/net/snmp").splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("InDatagrams")])


def resident_bytes(process: int) -> int:
    """Resident memory of a process."""
    pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
