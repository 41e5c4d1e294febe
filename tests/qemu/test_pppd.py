"""Real pppds over modems of a bank, with Debian's kernel: links of a bundle come up, drop, and are attached again."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.qemu import guest, ppp_guest

SMOKE = ["smoke", "both at once, zaghloul-2005"]

Found = dict[str, dict[str, Any]]


def played(names: list[str], folder: Path, *, timeout_s: float) -> Found:
    """What was seen in a guest that plays rows; the test is skipped where there is none."""
    if (reason := ppp_guest.missing()) is not None:
        pytest.skip(f"no guest: {reason}")
    quoted = " ".join(f"'{name}'" for name in names)
    begin = time.monotonic()
    script = ppp_guest.SETUP.format(root=ROOT) + f"{sys.executable} -m tests.qemu.ppp_rows /mnt {quoted}\n"
    ended = guest.run(script, folder, modules=ppp_guest.MODULES, timeout_s=timeout_s)
    print(ended.console, f"the guest took {time.monotonic() - begin:.1f} s")
    logs = "".join(
        f"{path.relative_to(folder)}: {path.read_text(errors='replace')}\n" for path in sorted(folder.rglob("*.log"))
    )
    assert ended.status == 0, ended.console + logs
    found: Found = json.loads((folder / "found.json").read_text())
    for name, row in found.items():
        assert "error" not in row, f"{name}: {row}\n{logs}"
    return found


def is_carried(used: dict[str, Any], *lines: int) -> bool:
    """Whether all packets arrived, over exactly these lines."""
    over = [at for at, count in enumerate(used["bytes"], 1) if count > 100]
    return used["arrived"] == used["sent"] and over == list(lines)


@pytest.mark.slow
def test_two_links_of_real_pppds_carry_a_bundle_and_a_dropped_one_comes_back(tmp_path):
    found = played(SMOKE, tmp_path, timeout_s=300)

    smoke = found["smoke"]
    assert is_carried(smoke["both"], 1, 2)
    # 16: the modem hung up.
    assert smoke["dropped"] == {"statuses": [16, 16], "interfaces": {"near": ["ppp0"], "far": ["ppp0"]}}
    assert is_carried(smoke["one"], 1)
    assert is_carried(smoke["again"], 1, 2)
    # What was in flight on the dropped line is lost, and no more.
    assert smoke["stream"]["sent"] == 24
    assert smoke["stream"]["arrived"] >= 18
    assert smoke["addresses"] == {"near": "10.64.64.1", "far": "10.64.64.2"}
    assert is_carried(found["both at once, zaghloul-2005"]["both"], 1, 2)
    assert all("canary" not in path.read_text(errors="replace") for path in tmp_path.rglob("*.log"))
