"""farlink's own PPP against Linux's pppd, with Debian's kernel: links of a bundle come up, drop, and are attached again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.qemu import guest, ppp_guest

SMOKE: dict[str, dict[str, Any]] = {
    "chap": {"lines": 2, "drops": [1, 0]},
    "pap, asks for its address, short numbers": {"lines": 2, "proof": "pap", "asks": True, "short": True},
    "wrong secret": {"lines": 1, "wrong": "other", "fails": "wrong secret"},
}
NIGHTLY: dict[str, dict[str, Any]] = {
    f"{lines} lines, {proof}": {"lines": lines, "proof": proof, "drops": [lines - 1, 0], "rate_bps": 9600}
    for lines in (1, 4, 8)
    for proof in ("chap", "pap")
} | {"8 lines of a satellite telephone": {"lines": 8, "drops": [3, 0], "rate_bps": 2400, "delay_s": 0.5}}


def built_program() -> Path:
    """The example `ppp`: where `.ci/checks` has built it, else built now."""
    if built := os.environ.get("FARLINK_EXAMPLES"):
        return Path(built) / "ppp"
    subprocess.run(["cargo", "build", "--quiet", "--profile", "test", "--workspace", "--example", "ppp"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples" / "ppp"


def played(cells: dict[str, dict[str, Any]], folder: Path, *, timeout_s: float) -> dict[str, Any]:
    """What was seen in a guest that plays cells; the test is skipped where there is none."""
    if (reason := ppp_guest.missing()) is not None:
        pytest.skip(f"no guest: {reason}")
    program = str(built_program())
    (folder / "cells.json").write_text(json.dumps({name: cell | {"program": program} for name, cell in cells.items()}))
    script = ppp_guest.SETUP.format(root=ROOT) + f"{sys.executable} -m tests.qemu.farlink_wires /mnt /mnt/cells.json\n"
    begin = time.monotonic()
    ended = guest.run(script, folder, modules=(*ppp_guest.MODULES, "tun"), timeout_s=timeout_s)
    print(ended.console, f"the guest took {time.monotonic() - begin:.1f} s")
    logs = "".join(
        f"{path.relative_to(folder)}: {path.read_text(errors='replace')}\n" for path in sorted(folder.rglob("*.log"))
    )
    assert ended.status == 0, ended.console + logs
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    for name, cell in found.items():
        assert "error" not in cell, f"{name}: {cell}\n{logs}"
    # pppd hides secrets of PAP in its log, too.
    assert "canary" not in "".join(cell["said"] for cell in found.values())
    return found


def is_carried(used: dict[str, Any], *lines: int) -> bool:
    """Whether all packets arrived both ways, as fragments over exactly these lines."""
    over = [at for at, ways in enumerate(used["bytes"]) if min(ways) > 300]
    return used["arrived"] == {"near": used["sent"], "far": used["sent"]} and over == list(lines)


def check(cell: dict[str, Any], found: dict[str, Any]) -> None:
    """All lines carry fragments both ways, before and after each drop; the others carry on meanwhile."""
    lines = range(cell["lines"])
    assert is_carried(found["used"], *lines), found
    for at in cell.get("drops", []):
        dropped = found[f"drop {at}"]
        assert len(lines) == 1 or is_carried(dropped["rest"], *(line for line in lines if line != at)), found
        assert is_carried(dropped["again"], *lines), found


@pytest.mark.slow
def test_farlink_and_pppd_make_a_bundle_of_two_links_that_drop_and_come_back(tmp_path):
    found = played(SMOKE, tmp_path, timeout_s=180)

    for name, cell in SMOKE.items():
        if "fails" not in cell:
            check(cell, found[name])
    assert "this end is 10.64.64.1, the peer 10.64.64.2" in found["pap, asks for its address, short numbers"]["said"]
    assert "network up" not in found["wrong secret"]["said"]


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("FARLINK_PEERS") not in ("all", "again"),
    reason="a minute or two for each of seven guests: FARLINK_PEERS=all includes them",
)
@pytest.mark.parametrize("name", NIGHTLY)
def test_bundles_of_farlink_and_pppd(name, tmp_path):
    cell = NIGHTLY[name]
    check(cell, played({name: cell}, tmp_path, timeout_s=400)[name])
