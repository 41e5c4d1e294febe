"""The operator with real pppds, at both ends of a bundle in a guest with Debian's kernel."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from tests.conftest import ROOT
from tests.qemu import guest, ppp_guest


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("FARLINK_PEERS") not in ("all", "again"),
    reason="a minute of a guest, two where others use the machine: FARLINK_PEERS=all includes it",
)
def test_operators_bring_a_bundle_of_real_pppds_up_and_a_dropped_line_back(tmp_path):
    if (reason := ppp_guest.missing()) is not None:
        pytest.skip(f"no guest: {reason}")
    begin = time.monotonic()
    script = ppp_guest.SETUP.format(root=ROOT) + f"{sys.executable} -m tests.qemu.ppp_operators /mnt\n"
    ended = guest.run(script, tmp_path, modules=ppp_guest.MODULES, timeout_s=300)
    print(ended.console, f"the guest took {time.monotonic() - begin:.1f} s")
    logs = "".join(f"{path.name}: {path.read_text(errors='replace')[-4000:]}\n" for path in sorted(tmp_path.rglob("*.log")))
    assert ended.status == 0, ended.console + logs
    found = json.loads((tmp_path / "found.json").read_text())
    print(found)

    assert found["interfaces"] == ["ppp0"], "one bundle"
    assert found["all"] == found["back"]["ping"] == {"sent": 6, "arrived": 6}, logs
    # What is in flight when a line drops is lost, and what goes there until the far end knows it.
    assert found["dropped"]["ping"]["arrived"] >= 4, logs
    assert found["dropped"]["interfaces"] == found["back"]["interfaces"] == ["ppp0"]
    assert found["states"]["near-2"][:2] == ["connecting", "connected"]
    assert found["near-2 dropped"] == 0, "the other line has stayed up"
    # A killed operator leaves no pppd, and the next one has the bundle again.
    assert found["killed"]["gone_s"] < 15
    assert found["killed"]["interfaces"] == ["ppp0"]
    assert found["killed"]["ping"] == {"sent": 6, "arrived": 6}, logs
    assert found["states"]["near-1"][-1] in ("ended", "waiting")
    assert found["ended"] == [0, 0]
    assert found["left"] == {"interfaces": [], "pppds": ""}
    assert all("canary-of-camp" not in path.read_text(errors="replace") for path in tmp_path.rglob("*.log"))
