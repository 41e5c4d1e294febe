"""Operators at both ends of a bundle of real pppds: `python -m tests.qemu.ppp_operators FOLDER`, in a guest.

The near end is in the guest's own namespaces; the far end has its own network and its own `/run`, as pppd joins bundles by a
database there.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from farlink.operator.backend import orphans
from farlink.operator.journal import read
from farlink.operator.live import ask

PATIENCE_S = 120.0
_BANK = """
rate_bps = 19200
delay_s = 0.05
set_up_s = 0.2
"""
_TOP = """
name = "{name}"
user = "camp"
secrets = "secrets.toml"
[ppp]
local = "{local}"
remote = "{remote}"
[limits]
dropped_s = 1
failed_s = 2
longest_failed_s = 8
"""
_FARLINK = [sys.executable, "-m", "farlink.cli", "bundle"]
# A /run of its own, with what pppd takes for granted; the operator's socket is beside its journal, which both ends see.
_FAR = 'mount -t tmpfs tmpfs /run && mkdir -p /run/ppp /run/lock && ip link set lo up && exec "$@"'


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a condition; what it gave."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {PATIENCE_S:g} s")
        time.sleep(0.1)
    return found


class End:
    """An operator and its bundle."""

    def __init__(self, folder: Path, name: str, *, lines: int) -> None:
        self.name, self.journal = name, folder / f"{name}.journal"
        local, remote = ("10.64.64.1", "10.64.64.2") if name == "near" else ("10.64.64.2", "10.64.64.1")
        rows = [_TOP.format(name=name, local=local, remote=remote)]
        for at in range(1, lines + 1):
            rows.append(f'[[line]]\nname = "{name}-{at}"\nport = "/tmp/modems/{name}-{at}"\nprofile = "iridium-9522b"\n')
            rows.append(f'number = "{200 + at}"\n' if name == "near" else 'role = "answer"\n')
        config = folder / f"{name}.toml"
        config.write_text("".join(rows))
        log = (folder / f"{name}.log").open("ab")
        inside = ["unshare", "--net", "--mount", "sh", "-c", _FAR, "sh"] if name == "far" else []
        self.process = subprocess.Popen([*inside, *_FARLINK, "up", config], stdout=log, stderr=log)

    def lines(self) -> dict[str, dict[str, Any]]:
        """The state of each line."""
        try:
            return {one["line"]: one for one in ask(self.journal, {"do": "status"}, bundle=self.name)["lines"]}
        except Exception:
            if self.process.poll() is not None:
                raise SystemExit(f"the {self.name} operator ended with {self.process.returncode}") from None
            return {}

    def are_up(self) -> bool:
        """Whether all lines are."""
        lines = self.lines()
        return bool(lines) and all(one["state"] == "connected" for one in lines.values())

    def pppds(self) -> dict[int, str]:
        """Its pppds."""
        return orphans.find({f"/run/farlink/{self.name}@{self.name}-{at}.options" for at in range(1, 9)})

    def states(self, line: str) -> list[str]:
        """What the journal says of a line, without observations."""
        history, loss = read(self.journal)
        assert loss is None
        return [one.state for one in history.transitions if one.modem == line and one.state != "alive"]


def ping() -> dict[str, float]:
    """Packets through the bundle: a UDP service needs none of its own, as the far kernel answers."""
    done = subprocess.run(
        ["busybox", "ping", "-c", "6", "-i", "0.3", "-s", "600", "10.64.64.2"], capture_output=True, text=True
    )
    found = re.search(r"(\d+) packets transmitted, (\d+) packets received", done.stdout)
    return {"sent": int(found[1]), "arrived": int(found[2])} if found else {"sent": 0, "arrived": 0}


def interfaces() -> list[str]:
    """PPP interfaces of the near end."""
    return sorted(path.name for path in Path("/sys/class/net").glob("ppp*"))


def play(folder: Path, lines: int) -> dict[str, Any]:
    """Both ends come up, packets pass, one call drops, packets pass, it is dialled again, and both ends go down."""
    rows = [_BANK]
    for at in range(1, lines + 1):
        rows += [f'[[modem]]\nname = "{name}-{at}"\nnumber = "{base + at}"\n' for name, base in (("near", 100), ("far", 200))]
    (folder / "bank.toml").write_text("".join(rows))
    secrets = folder / "secrets.toml"
    secrets.write_text('password = "canary-of-camp"\n')
    secrets.chmod(0o600)
    bank = subprocess.Popen([*_FARLINK, "bank", folder / "bank.toml", "--dir", "/tmp/modems"], stdout=subprocess.PIPE)
    assert bank.stdout is not None
    for _ in range(2 * lines):
        assert bank.stdout.readline()
    begin = time.monotonic()
    far, near = End(folder, "far", lines=lines), End(folder, "near", lines=lines)
    until(lambda: near.are_up() and far.are_up(), "all lines up")
    found: dict[str, Any] = {"up_s": time.monotonic() - begin, "interfaces": interfaces(), "all": ping()}
    ask(near.journal, {"do": "inject", "lines": ["near-1"], "now": True}, bundle="near")
    until(lambda: "dropped" in near.states("near-1"), "the drop")
    found["dropped"] = {"interfaces": interfaces(), "ping": ping()}
    begin = time.monotonic()
    until(lambda: near.states("near-1").count("connected") == 2 and near.are_up() and far.are_up(), "the line is back")
    found["back"] = {"s": time.monotonic() - begin, "interfaces": interfaces(), "ping": ping()}
    found["status"] = near.lines()
    found["near-2 dropped"] = near.states("near-2").count("dropped")
    near.process.kill()
    near.process.wait()
    begin = time.monotonic()
    until(lambda: not near.pppds() and not interfaces(), "the end of a killed operator's pppds")
    found["killed"] = {"gone_s": time.monotonic() - begin}
    begin = time.monotonic()
    near = End(folder, "near", lines=lines)
    until(lambda: near.are_up() and far.are_up() and interfaces(), "all lines up again")
    found["killed"] |= {"up_again_s": time.monotonic() - begin, "interfaces": interfaces(), "ping": ping()}
    ask(near.journal, {"do": "down"}, bundle="near")
    found["ended"] = [near.process.wait(60)]
    far.process.terminate()
    found["ended"].append(far.process.wait(60))
    found["left"] = {
        "interfaces": interfaces(),
        "pppds": subprocess.run(["pidof", "pppd"], capture_output=True, text=True).stdout,
    }
    found["states"] = {line: near.states(line) for line in ("near-1", "near-2")}
    bank.terminate()
    return found


if __name__ == "__main__":
    where = Path(sys.argv[1])
    # Not there: the journal needs memory that processes share, which 9p has not.
    work = Path("/tmp/operators")
    work.mkdir()
    try:
        (where / "found.json").write_text(json.dumps(play(work, 2), indent=1))
    finally:
        for log in (*work.glob("*.log"), *Path("/run/farlink").glob("*.log")):
            shutil.copy(log, where)
