"""The guide from an empty Debian to a running bundle: its commands, from the bank on."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from farlink.errors import OperatorError
from farlink.operator.live import ask
from tests.conftest import ROOT
from tests.operator.live_world import PATIENCE_S, until

GUIDE = ROOT / "docs" / "guides" / "bundle-from-nothing.md"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def states(folder: Path) -> list[str]:
    """Of the lines of `near`; none while nobody answers."""
    try:
        return [one["state"] for one in ask(folder / "near.journal", {"do": "status"}, bundle="near")["lines"]]
    except OperatorError:
        return []


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code < 500
    except httpx.TransportError:
        return False


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("fastapi", "nicegui")), reason="farlink[serve,web] is missing"
)
def test_the_commands_of_the_guide_lead_to_a_running_bundle(tmp_path, programs):
    metrics, pages = free_port(), free_port()
    guide = GUIDE.read_text(encoding="utf-8").replace("/tmp/modems", f"{tmp_path}/modems")
    guide = (
        guide.replace("9464", f"{metrics}")
        .replace(":8090", f":{pages}")
        .replace("far.toml 2> web.log", f"far.toml --listen 127.0.0.1:{pages} 2> web.log")
    )
    for name, text in re.findall(r"^```toml (\S+)\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    running, printed = [], {}
    ready = {  # after a program in the background
        "bank": lambda: (tmp_path / "modems" / "modem-4").is_symlink(),
        "far": lambda: (tmp_path / "far.journal.sock").exists(),
        "near": lambda: states(tmp_path) == ["connected", "connected"],
        "serve": lambda: answers(f"http://127.0.0.1:{metrics}/metrics"),
        "web": lambda: answers(f"http://127.0.0.1:{pages}/"),
    }
    try:
        for command in re.findall(r"^\$ (.*)$", guide, flags=re.MULTILINE):
            in_background = re.fullmatch(r"farlink (.*) 2> (\w+)\.log &", command)
            if in_background is not None:
                arguments, name = in_background.groups()
                log = tmp_path / f"{name}.log"
                with log.open("w") as file:
                    command = ["-m", "farlink.cli", *shlex.split(arguments)]
                    running.append(programs.start(command, cwd=tmp_path, stdout=file.fileno(), stderr=file.fileno()))
                until(ready[name], log.read_text)
                continue
            program, *arguments = shlex.split(command)
            if program == "farlink":
                done = programs.run(["-m", "farlink.cli", *arguments], cwd=tmp_path, timeout=PATIENCE_S)
            else:
                done = subprocess.run([program, "-f", *arguments], cwd=tmp_path, capture_output=True, check=False)
            assert done.returncode == 0, (command, done.stderr)
            printed[command] = done.stdout.decode()
        assert "2 of 2 lines up" in printed["farlink bundle status near.toml"]
        assert "1 of 2 lines up" in printed["farlink bundle status near.toml --once"]
        assert "injected" in printed["farlink bundle log near.journal"]
        assert 'farlink_bundle_lines{bundle="near"} 2.0' in printed[f"curl -s http://127.0.0.1:{metrics}/metrics"]
        assert (tmp_path / "monitoring" / "farlink-rules.yaml").is_file()
        assert printed["farlink bundle report near.toml"].startswith("# Connection 1 of bundle near")
        assert "nicegui" in printed[f"curl -s http://127.0.0.1:{pages}/"]
        assert [one.wait(PATIENCE_S) for one in running[1:3]] == [0, 0]
    finally:
        for one in running:
            one.kill()
            one.wait()
