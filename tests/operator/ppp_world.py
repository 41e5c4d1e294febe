"""Both ends of `farlink bundle ppp`, a network namespace each, over lines of pseudo-terminals that drop and come back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.operator.live_world import until
from tests.qemu.farlink_wires import Wire

NEAR, FAR = "10.88.0.1", "10.88.0.2"
CANARY = "canary-of-lines"


def missing() -> str | None:
    """Why there are no such ends here; None if there can be."""
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/net/tun").exists():
        return "no /dev/net/tun"
    made = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return None if made.returncode == 0 else "no network namespaces"


class Line(Wire):
    """A line whose ports are in a folder of the test."""

    def __init__(self, folder: Path, at: int, rate_bps: float, delay_s: float) -> None:
        super().__init__(at, rate_bps, delay_s)
        self._folder = folder
        # Ports are closed while bytes are moved otherwise.
        self._guard = threading.Lock()

    def path(self, end: str) -> Path:
        """The port of an end."""
        return self._folder / f"{end}-{self.at}"

    def drop(self) -> None:
        """Both ends lose carrier."""
        with self._guard:
            self.down()

    def back(self) -> None:
        """It has carrier again."""
        with self._guard:
            self.up()

    def step(self) -> None:
        """Move what its rate allows."""
        with self._guard:
            self.tick(time.monotonic())


@contextmanager
def moving(lines: Sequence[Line]) -> Iterator[None]:
    """Lines have carrier, and carry."""
    is_over = threading.Event()

    def move() -> None:
        while not is_over.is_set():
            for line in lines:
                line.step()
            time.sleep(0.02)

    for line in lines:
        line.back()
    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        for line in lines:
            line.drop()


class End:
    """A process of one end, in a network namespace of its own."""

    def __init__(self, config: Path, *options: str) -> None:
        self.config, self._options = config, options
        self._log = config.with_suffix(".log")
        self._output: IO[str] = self._log.open("w")
        command = [sys.executable, "-m", "farlink.cli", "bundle", "ppp", str(config), *options]
        self.process = subprocess.Popen(["unshare", "-n", *command], stdout=subprocess.DEVNULL, stderr=self._output)

    def log(self) -> str:
        """What it has told."""
        return self._log.read_text()

    def said(self, pattern: str) -> list[str]:
        """What it has told that looks like this."""
        return re.findall(pattern, self.log(), re.MULTILINE)

    def inside(self, *command: str) -> str:
        """What a command says in its network; empty if it fails."""
        enter = ["nsenter", "-t", str(self.process.pid), "-n", *command]
        done = subprocess.run(enter, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    def metrics(self) -> dict[str, float]:
        """Its numbers."""
        code = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9473/metrics').read().decode())"
        self.inside("ip", "link", "set", "lo", "up")
        rows = (line.rsplit(" ", 1) for line in self.inside(sys.executable, "-c", code).splitlines() if line and line[0] != "#")
        return {name: float(value) for name, value in rows}

    def end(self, number: int = signal.SIGTERM) -> int:
        """Stop it."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(20)


class Lines:
    """Two ends and what is between them."""

    def __init__(self, folder: Path, lines: Sequence[Line], rate_bps: float, *, more: str = "") -> None:
        self.folder, self.lines = folder, lines
        self.near = End(self._write("near", "far", NEAR, FAR, rate_bps, more), "--pcap", str(folder / "near.pcapng"))
        self.far = End(self._write("far", "near", FAR, NEAR, rate_bps, more))

    def _write(self, own: str, peer: str, address: str, other: str, rate_bps: float, more: str) -> Path:
        secrets = self.folder / f"{own}.secrets.toml"
        secrets.write_text(f'own = "{CANARY}"\n[peer]\n{peer} = "{CANARY}"\n')
        secrets.chmod(0o600)
        head = [f'name = "{own}"', f'secrets = "{secrets.name}"', 'device = "lines0"', 'metrics = "127.0.0.1:9473"']
        head += [f'local = "{address}"', f'remote = "{other}"', "ipv6 = true", "restart_s = 3", "retry_s = 1", more]
        rows = [f'[[line]]\nname = "l{it.at}"\nport = "{it.path(own)}"\nrate_bps = {rate_bps}\n' for it in self.lines]
        path = self.folder / f"{own}.toml"
        path.write_text("\n".join(head) + "\n" + "".join(rows))
        return path

    def is_reached(self, address: str = FAR) -> bool:
        """Whether the near end reaches an address."""
        return bool(self.near.inside("ping", "-c", "1", "-W", "3", address))

    def logs(self) -> str:
        """What both have told."""
        return self.near.log() + self.far.log()

    def wait_until_open(self) -> None:
        """All lines are members, and packets go through."""
        for end in (self.near, self.far):
            for line in self.lines:
                until(lambda end=end, line=line: end.said(f"^up: l{line.at}"), self.logs)
            until(lambda end=end: end.said("^network: "), self.logs)
        until(self.is_reached, self.logs)

    def close(self) -> None:
        """End both."""
        for end in (self.near, self.far):
            end.end()


@contextmanager
def lines_between(
    folder: Path, lines: int = 2, rate_bps: float = 38_400, delay_s: float = 0.02, *, more: str = ""
) -> Iterator[Lines]:
    """Two ends over lines, which are gone afterwards."""
    all_lines = [Line(folder, at, rate_bps, delay_s) for at in range(lines)]
    with moving(all_lines):
        made = Lines(folder, all_lines, rate_bps, more=more)
        try:
            yield made
        finally:
            made.close()
