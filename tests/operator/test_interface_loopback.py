"""Two operators that probe each other over the loopback interface: garbage, a far end that goes, and wrong names."""

from __future__ import annotations

import os
import random
import signal
import socket

import pytest

from farlink.operator.interface.peer_message import PeerMessage
from tests.operator.interface_world import CONFIG
from tests.operator.live_world import until, world_in

NEAR = """
[[line]]
name = "good"
kind = "interface"
interface = "lo"
peer = "127.0.0.1:{port}"
noticed_s = 1.5

[[line]]
name = "nowhere"
kind = "interface"
interface = "none0"
probe = ["192.0.2.1"]
"""
WRONG = """
[[line]]
name = "wrong"
kind = "interface"
interface = "lo"
probe = ["no-such-host.invalid"]
"""
FAR = """
[[line]]
name = "ear"
kind = "interface"
interface = "lo"
probe_listen = {port}
noticed_s = 1.5
"""


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_two_operators_over_the_loopback_interface(tmp_path):
    port, rng = free_port(), random.Random(5)
    (tmp_path / "near.toml").write_text(CONFIG.replace("ship", "near") + NEAR.format(port=port))
    (tmp_path / "far.toml").write_text(CONFIG.replace("ship", "far") + FAR.format(port=port))
    with world_in(tmp_path) as world:
        near, far = world.start(tmp_path / "near.toml"), world.start(tmp_path / "far.toml")
        until(lambda: near.state("good") == far.state("ear") == "connected", lambda: near.log + far.log)
        until(lambda: near.state("nowhere") == "waiting", lambda: near.log)
        assert near.lines()["nowhere"]["cause"] == "there is no interface none0"

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
            for at in range(300):
                sent = PeerMessage(bool(at % 3 == 1), 0.0, rng.randrange(2**64), rng.randbytes(8), at, at, 1.0).packed()
                noise.sendto(rng.randbytes(at) if at % 2 else sent, ("127.0.0.1", port))
        far.process.send_signal(signal.SIGSTOP)
        until(lambda: near.state("good") != "connected", lambda: near.log, within_s=5)
        assert "no answer from 127.0.0.1" in near.of("good", "dropped")[-1].cause
        far.process.send_signal(signal.SIGCONT)
        until(lambda: near.state("good") == far.state("ear") == "connected", lambda: near.log + far.log)
        assert (far.end(), near.end()) == (0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="pings take a right that this user may lack")
def test_a_wrong_name_is_said(tmp_path):
    (tmp_path / "near.toml").write_text(CONFIG.replace("ship", "near") + WRONG)
    with world_in(tmp_path) as world:
        near = world.start(tmp_path / "near.toml")
        until(lambda: "no-such-host.invalid: " in near.lines().get("wrong", {}).get("failure", ""), lambda: near.log)
        assert near.end() == 0
