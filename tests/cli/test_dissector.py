"""`farlink dissector` as a user types it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCENARIO = """
duration_s = 60
runs = 1
link = { rate_bps = 1e6, delay_s = 0.1, channel = { kind = "loss", loss = 0.05 } }
transport.air = { kind = "aerotp", rate_bps = 9e5 }
flow.file = { transport = "air", traffic = { kind = "file", bytes = 1e5 } }
"""


def test_the_printed_path_holds_the_printed_text(farlink):
    where, text = farlink("dissector"), farlink("dissector", "--text")

    assert where.returncode == text.returncode == 0, where.stderr + text.stderr
    path = Path(where.stdout.rstrip("\n"))
    assert path.name == "aerotp.lua"
    assert path.read_text(encoding="utf-8") == text.stdout
    assert 'Proto("aerotp"' in text.stdout


def test_help_has_an_example(farlink):
    done = farlink("dissector", "--help")

    assert "tshark -X" in done.stdout
    assert "--text" in done.stdout


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed; Debian's package is tshark")
def test_tshark_reads_a_capture_with_it(farlink, tmp_path):
    (tmp_path / "air.toml").write_text(SCENARIO)
    done = farlink("run", "air.toml", "--pcap", "captures")
    assert done.returncode == 0, done.stderr
    (capture,) = (tmp_path / "captures").iterdir()
    script = farlink("dissector").stdout.strip()

    fields = [part for name in ("aerotp.hec.status", "_ws.expert", "aerotp.mode") for part in ("-e", name)]
    command = ["tshark", "-X", f"lua_script:{script}", "-r", capture, "-T", "fields", *fields]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    assert len(shown) > 70
    assert set(shown) == {"1\t\t0"}, "the header check is right, nothing else is to be said, and the mode is reliable"
