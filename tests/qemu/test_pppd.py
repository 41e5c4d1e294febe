"""Real pppds over modems of a bank, with Debian's kernel: links of a bundle come up, drop, and are attached again."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
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
@pytest.mark.skipif(
    os.environ.get("FARLINK_PEERS") not in ("all", "again"),
    reason="a minute of a guest, and test_farlink_pppd.py has one with a real pppd: FARLINK_PEERS=all includes it",
)
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


# What pppd 2.4.9 does in each case, as `docs/validation/bundle-pppd.md` has it. A hang-up ends pppd with 16, SIGTERM with 5.
Check = Callable[[dict[str, Any]], None]


def later_link(row: dict[str, Any]) -> None:
    assert row["statuses"] == [16, 16]
    assert is_carried(row["after"], 1, 2)
    assert is_carried(row["again"], 1, 2, 3)


def first_link(row: dict[str, Any]) -> None:
    assert row["owners_live"] == [True, True], "the owner lives on without its link"
    assert is_carried(row["after"], 2, 3)
    assert is_carried(row["again"], 1, 2, 3)


def hang_up(row: dict[str, Any]) -> None:
    assert (row["lives"], row["others"]) == (True, [True, True])
    assert "Link terminated" in row["log"]
    assert is_carried(row["after"], 2, 3)


def termination(row: dict[str, Any]) -> None:
    assert row["interfaces"] == {"near": [], "far": []}
    assert row["statuses"][:3] == [5, 5, 5]
    assert row["far_when_near_ended"] == [True] * 3, "they wait for a restart of LCP, or the loss of carrier"


def kill(row: dict[str, Any]) -> None:
    assert row["interfaces"] == {"near": [], "far": ["ppp0"]}
    assert row["near"] == [False, True, True], "the others are orphans"
    assert row["after"]["arrived"] == 0
    assert row["redialled"]["used"]["arrived"] == 0, "the far end has its old bundle still"
    assert row["interfaces_ended"] == {"near": [], "far": []}
    assert is_carried(row["all_again"], 1, 2, 3)


def last_link(row: dict[str, Any]) -> None:
    assert row["statuses"] == [16] * 4
    assert row["interfaces"] == {"near": [], "far": []}
    assert is_carried(row["next"], 2)
    assert is_carried(row["both"], 1, 2)


def persist(row: dict[str, Any]) -> None:
    for line, negotiations in (("line_1", 0), ("line_2", 1)):
        assert row[line]["lives"] == [True, True]
        assert max(row[line]["negotiations"]) <= negotiations
        assert row[line]["joined"] == [0, 0]
    assert is_carried(row["after"], 3)


def black_hole(row: dict[str, Any]) -> None:
    # Three echoes of 2 s, the one under way, and one restart of LCP, 8 s, until the line leaves the bundle.
    assert 12 < row["noticed_s"] < 20
    assert row["lost_during"] > 0.8 * row["sent_during"]
    assert row["arrived_after"] >= 15


def black_hole_both_ways(row: dict[str, Any]) -> None:
    # Four echoes of 15 s, the one under way, one restart of LCP; and one interval more where packets put echoes off.
    assert row["lives"] == [False, False]
    assert 60 < row["after_s"] < 110
    assert sum(row["arrived"]) < 0.1 * sum(row["sent"])


def load_kills(row: dict[str, Any]) -> None:
    assert row["killed"]
    assert row["no_response"] > 0


def load_is_borne(row: dict[str, Any]) -> None:
    assert (row["killed"], row["no_response"]) == ([], 0)
    assert row["after_s"] >= 90
    # Two lines carry 600 bytes/s.
    assert row["arrived_bytes"] > 0.7 * 600 * 80


def given_up(row: dict[str, Any]) -> None:
    """A line that pppd gave up is seen to be down although its call is up, and comes back."""
    gone = [(at, line) for at, line, what in row["events"] if "near: No response to 3 echo-requests" in what]
    assert gone
    assert row["all_up"] < 0.97, "of 100 s, a pause of 2 s and a call's set-up"
    began, line = gone[0]
    assert any(at > began and (other, what) == (line, "up") for at, other, what in row["events"]), "dialled again"
    back = min(at for at, other, what in row["events"] if at > began and what == "up")
    assert back - began < 40, "the modem is ready at once"
    assert row["arrived"][-1][0] > back, "and the bundle carries packets again"
    assert not row["wrong"]


def requests(row: dict[str, Any]) -> None:
    assert all(count > 10 for count in row["requests"].values())
    assert not any(row["joined"].values()), "each repeated request takes the link out of the state open"
    assert row["interfaces"] == {"near": [], "far": []}


def discriminator(row: dict[str, Any]) -> None:
    assert row["interfaces"] == {"near": ["ppp0", "ppp1"], "far": ["ppp0"]}


def small_mrru(row: dict[str, Any]) -> None:
    assert row["mtu_bytes"] == {"near": {"ppp0": 700}, "far": {"ppp0": 1500}}, "each end keeps to what the other takes"
    assert is_carried(row["used"], 1, 2)


def later_mrru(row: dict[str, Any]) -> None:
    assert row["mtu_bytes"] == {"near": {"ppp0": 1500}, "far": {"ppp0": 1500}}, "that of the first link stays"
    assert is_carried(row["used"], 1, 2)


def no_multilink(row: dict[str, Any]) -> None:
    for name, address in (("near", "10.64.64.1"), ("far", "10.64.64.2")):
        assert {key: one["address"] for key, one in row["interfaces"][name].items()} == {"ppp0": address, "ppp1": address}


ROWS: dict[str, Check] = {
    "later link dropped": later_link,
    "first link dropped": first_link,
    "SIGHUP to the owner": hang_up,
    "SIGTERM to the owner": termination,
    "SIGKILL to the owner": kill,
    "last link lost": last_link,
    "persist": persist,
    "black hole": black_hole,
    "black hole, packets both ways, adaptive": black_hole_both_ways,
    "black hole, packets both ways": black_hole_both_ways,
    "load, 5 s x 3": load_kills,
    "load, farlink": load_is_borne,
    "given up under load": given_up,
    "requests repeated": requests,
    "other discriminator": discriminator,
    "peer without multilink": no_multilink,
    "unequal MRRU": small_mrru,
    "other MRRU later": later_mrru,
}


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("FARLINK_PEERS") not in ("all", "again"),
    reason="a minute or two for each of eighteen guests: FARLINK_PEERS=all includes them",
)
@pytest.mark.parametrize("name", ROWS)
def test_what_pppd_does_to_a_bundle(name, tmp_path):
    ROWS[name](played([name], tmp_path, timeout_s=400)[name])
