"""`farlink bundle ppp` between network namespaces: traffic over two lines that drop, rights, captures, and the end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from farlink import net
from farlink.errors import TransferError
from tests.conftest import ROOT
from tests.operator.live_world import until
from tests.operator.ppp_world import CANARY, FAR, NEAR, lines_between, missing

WITHOUT = missing()
LINKTYPE_PPP_WITH_DIR = 204


@pytest.mark.skipif(WITHOUT is not None, reason=f"lines between network namespaces: {WITHOUT}")
def test_two_lines_carry_packets_drop_come_back_and_end_with_a_word(tmp_path):
    with lines_between(tmp_path) as world:
        world.wait_until_open()
        shown = world.near.inside("ip", "-o", "address", "show", "dev", "lines0")
        assert f"{NEAR} peer {FAR}/32" in shown
        assert "fe80::" in shown
        # Long packets go in pieces over both lines.
        assert world.near.inside("ping", "-c", "2", "-W", "5", "-s", "1200", FAR), world.logs()
        status = Path(f"/proc/{world.near.process.pid}/status").read_text()
        assert "CapEff:\t0000000000000000" in status
        assert "CapPrm:\t0000000000000000" in status
        until(lambda: world.near.metrics().get("farlink_ppp_delivered_total", 0) >= 2, world.logs)
        numbers = world.near.metrics()
        for line in ("l0", "l1"):
            assert numbers[f'farlink_ppp_line_up{{line="{line}"}}'] == 1
            assert numbers[f'farlink_ppp_line_sent_bytes_total{{line="{line}"}}'] > 500
        # The first line too: it owns nothing.
        for at in (0, 1):
            ups = {end: len(end.said(f"^up: l{at}")) for end in (world.near, world.far)}
            world.lines[at].drop()
            until(lambda at=at: world.near.said(f"^down: l{at}: no carrier"), world.logs)
            assert world.is_reached(), world.logs()
            world.lines[at].back()
            # At both ends: the next line drops at once.
            for end, before in ups.items():
                until(lambda at=at, end=end, before=before: len(end.said(f"^up: l{at}")) > before, world.logs)
        assert world.near.end(signal.SIGINT) == 0
        until(lambda: len(world.far.said("^down: l[01]: terminated by the peer")) == 2, world.logs)
        until(lambda: world.far.said("^no-network: "), world.logs)
        assert CANARY not in world.logs()
    captured = (tmp_path / "near.pcapng").read_bytes()
    # Of each line one interface description block (type 1), with the type of its link behind the length.
    kinds = [int.from_bytes(captured[at + 8 : at + 10], "little") for at in _blocks(captured) if captured[at] == 1]
    assert kinds == [LINKTYPE_PPP_WITH_DIR, LINKTYPE_PPP_WITH_DIR]


def _blocks(captured: bytes) -> list[int]:
    """Where the blocks of a pcapng file begin."""
    found, at = [], 0
    while at + 12 <= len(captured):
        found.append(at)
        at += int.from_bytes(captured[at + 4 : at + 8], "little")
    return found


def test_a_wrong_configuration_is_an_error_with_a_remedy_and_status_2(tmp_path):
    config = tmp_path / "lines.toml"
    config.write_text('name = "ship"\nrequire = []\n[[line]]\nport = "/dev/ttyUSB0"\nrate_bps = 0\n')
    with pytest.raises(TransferError, match=r"line\[0\]\.rate_bps: 0 is not within 50 and 10,000,000 bit/s") as refused:
        net.check_ppp_bundle(config)
    assert refused.value.exit_code == 2
    command = [sys.executable, "-m", "farlink.cli", "bundle", "ppp", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint: give the rate over the air" in done.stderr


def test_check_says_what_a_configuration_does(tmp_path):
    config = tmp_path / "lines.toml"
    config.write_text('name = "ship"\nrequire = []\n[[line]]\nname = "iridium"\nport = "/dev/ttyUSB0"\nrate_bps = 2400\n')
    said = net.check_ppp_bundle(config)
    assert said[1] == "line iridium: /dev/ttyUSB0, 2400 bit/s"
    assert said[-1].startswith("warning: latency_s = 1 cannot be kept: a packet of 1500 bytes takes 5.0 s")


def test_the_guide_shows_what_check_says_and_names_all_keys(tmp_path):
    guide = (ROOT / "docs" / "guides" / "bundle-ppp.md").read_text(encoding="utf-8")
    config = re.search(r"```toml near\.toml\n(.*?)```", guide, re.DOTALL)
    secrets = re.search(r"```toml\n(own = .*?)```", guide, re.DOTALL)
    shown = re.search(r"\$ farlink bundle ppp near\.toml --check\n(.*?)```", guide, re.DOTALL)
    assert config is not None
    assert secrets is not None
    assert shown is not None
    (tmp_path / "near.toml").write_text(config[1])
    (tmp_path / "near.secrets.toml").write_text(secrets[1])
    (tmp_path / "near.secrets.toml").chmod(0o600)
    assert "".join(f"{line}\n" for line in net.check_ppp_bundle(tmp_path / "near.toml")) == shown[1]
    (tmp_path / "near.toml").write_text(config[1] + "nonsense = 1\n")
    with pytest.raises(TransferError) as refused:
        net.check_ppp_bundle(tmp_path / "near.toml")
    of_line = re.findall(r"`(\w+)`", str(refused.value).partition("expected")[2])
    (tmp_path / "near.toml").write_text("nonsense = 1\n" + config[1])
    with pytest.raises(TransferError) as refused:
        net.check_ppp_bundle(tmp_path / "near.toml")
    of_bundle = re.findall(r"`(\w+)`", str(refused.value).partition("expected")[2])
    assert len(of_line) >= 6
    assert len(of_bundle) >= 25
    named = guide.partition("## All keys")[2]
    for key in [f"line.{key}" for key in of_line] + [key for key in of_bundle if key != "line"]:
        assert f"`{key}`" in named, key
