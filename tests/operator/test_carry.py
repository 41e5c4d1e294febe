"""`farlink bundle carry` between network namespaces: traffic, troubles of paths, rights, and what is left behind."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.operator.carry_world import BEYOND, SHIP, VPS, Carried, carried, output, try_inside
from tests.operator.live_world import until
from tests.operator.wires import missing

WITHOUT = missing() or (None if Path("/dev/net/tun").exists() else "no /dev/net/tun")
pytestmark = pytest.mark.skipif(WITHOUT is not None, reason=f"a bundle in network namespaces: {WITHOUT}")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A ship with two paths and a slow one that is a last resort."""
    folder = tmp_path_factory.mktemp("carry")
    rates = {"one": "20mbit", "two": "10mbit", "iridium": "9600bit"}
    with carried(folder, rates, options=("--pcap", str(folder / "tun.pcapng"))) as made:
        made.wait_until_open()
        yield made


def pings(world: Carried, count: int, interval_s: float, trouble=lambda: None) -> tuple[int, float]:
    """Send pings, and make trouble meanwhile; how many were lost, and the longest time without an answer, in seconds."""
    command = ["ip", "netns", "exec", world.near, "ping", "-D", "-i", str(interval_s), "-c", str(count), "-W", "2", VPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ping:
        trouble()
        text = ping.communicate(timeout=count * interval_s + 20)[0]
    arrivals = [float(at) for at in re.findall(r"^\[([\d.]+)\].*icmp_seq", text, re.MULTILINE)]
    gaps = [late - early for early, late in itertools.pairwise(arrivals)]
    return count - len(arrivals), max(gaps, default=float("inf"))


def test_tcp_goes_over_both_paths_and_the_last_resort_carries_nothing(world):
    before = world.ship.metrics()
    code = (
        "import socket,sys\n"
        f"s=socket.create_server(('{VPS}',5000)); print('ready',flush=True); c,_=s.accept(); n=0\n"
        "while d:=c.recv(65536): n+=len(d)\n"
        "c.sendall(str(n).encode())"
    )
    listen = ["ip", "netns", "exec", world.far, sys.executable, "-c", code]
    send = (
        "import socket\n"
        f"c=socket.create_connection(('{VPS}',5000))\n"
        "c.sendall(bytes(6_000_000)); c.shutdown(1); assert c.recv(99)==b'6000000'; print('all')"
    )
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as far:
        assert far.stdout.readline() == "ready\n"
        assert output(world.near, sys.executable, "-c", send) == "all\n"
    time.sleep(0.5)  # metrics are as old as that
    after = world.ship.metrics()
    for name in ("one", "two"):
        key = f'farlink_bundle_path_data_bytes_total{{path="{name}"}}'
        assert after[key] - before[key] > 1_000_000
    # Nothing, unless this machine is so busy that both other paths seem dead for a moment.
    last = 'farlink_bundle_path_data_bytes_total{path="iridium"}'
    assert after[last] - before[last] < 6_000


def test_a_path_that_is_unplugged_costs_little_and_comes_back(world):
    ups = len(world.ship.said("^up: one"))

    def trouble():
        world.wires["one"].delete()
        until(lambda: "interface: one: there is no interface one" in world.ship.log(), world.ship.log)
        world.wires["one"].make()

    lost, gap_s = pings(world, 150, 0.02, trouble)
    assert lost <= 2
    assert gap_s < 1
    until(lambda: len(world.ship.said("^up: one")) > ups, world.ship.log, within_s=5)


def test_a_path_that_dies_in_silence_costs_little_and_comes_back(world):
    lost, gap_s = pings(world, 200, 0.02, world.wires["two"].drop)
    world.wires["two"].carry()
    assert lost <= 2
    assert gap_s < 1
    until(lambda: not world.ship.said("^down: two") or world.ship.said("^(?:up|down): two")[-1] == "up: two", world.ship.log)


def test_an_address_that_is_translated_anew_is_followed(world):
    proven = len(world.vps.said("^proven: one"))
    for times in (1, 2):
        lost, gap_s = pings(world, 60, 0.02, lambda: world.translate("one"))
        assert (lost <= 2, gap_s < 1) == (True, True)
        until(lambda times=times: len(world.vps.said("^proven: one")) >= proven + times, world.vps.log)


def test_an_own_address_that_changes_is_followed_without_a_restart(world):
    world.wires["two"].take_address()
    world.wires["two"].give_address(9)
    until(lambda: "10.2.1.9" in world.vps.log(), lambda: world.ship.log() + world.vps.log(), within_s=10)
    assert world.is_reached(VPS)


def test_a_black_hole_for_long_packets_is_named_and_passed(world):
    def longest(name):
        return world.ship.metrics()[f'farlink_bundle_path_packet_bytes{{path="{name}"}}']

    def is_long_reached():
        return try_inside(world.near, "ping", "-c", "1", "-W", "1", "-M", "do", "-s", "1372", VPS)

    def are_long():
        return is_long_reached() and longest("one") == longest("two") == 1500 - 28 - 25

    until(are_long, world.ship.log)
    for name in ("one", "two"):
        world.shorten(name, 1300)
    until(
        lambda: [is_long_reached() for _ in range(5)] == [True] * 5 and "an MTU black hole" in world.ship.log(),
        lambda: world.ship.log() + world.vps.log(),
        within_s=40,
    )
    # A path that carries nothing meanwhile notices it when it does.
    assert min(longest("one"), longest("two")) < 1300
    for name in ("one", "two"):
        world.shorten(name, 1500)


def test_no_process_has_more_rights_than_it_needs(world):
    for end in (world.ship, world.vps):
        helper = end.helper()
        parent = int(re.search(r"PPid:\t(\d+)", Path(f"/proc/{helper}/status").read_text())[1])
        for thread in Path(f"/proc/{parent}/task").iterdir():
            for kind in ("Prm", "Eff", "Bnd", "Amb", "Inh"):
                assert re.search(rf"Cap{kind}:\t0+\n", (thread / "status").read_text()), (thread, kind)
        status = Path(f"/proc/{helper}/status").read_text()
        assert re.search(r"CapEff:\t0+1000\n", status)
        assert re.search(r"CapBnd:\t0+1000\n", status)
        assert "NoNewPrivs:\t1" in status


def test_the_capture_has_packets_of_the_device(world):
    pings(world, 5, 0.02)
    capture = world.folder / "tun.pcapng"
    until(lambda: capture.stat().st_size > 2000)
    content = capture.read_bytes()
    block = content[28 + 0 :] if content[4] == 28 else content[content[4] :]
    assert block[8] == 101, "LINKTYPE_RAW"
    assert bytes(map(int, SHIP.split("."))) + bytes(map(int, VPS.split("."))) in content


def rest(namespace: str) -> str:
    """What a bundle may have left in a namespace."""
    routes = [output(namespace, "ip", family, "route", "show", "table", "all") for family in ("-4", "-6")]
    kept = [line for line in "".join(routes).splitlines() if "proto 244" in line]
    rules = [line for line in output(namespace, "ip", "rule").splitlines() if "proto 244" in line or "17996" in line]
    devices = [line for line in output(namespace, "ip", "-br", "link").splitlines() if "carried0" in line]
    return "\n".join(kept + rules + devices)


def test_nothing_leaves_outside_the_device_until_the_bundle_is_stopped(tmp_path):
    with carried(tmp_path) as world:
        world.wait_until_open()
        assert "carried0" in output(world.near, "ip", "route", "get", BEYOND)
        assert world.is_reached(BEYOND)
        world.vps.end(signal.SIGKILL)
        assert not rest(world.far)
        assert not world.is_reached(BEYOND), "the bundle is down, and its device takes the packets"

        world.ship.end(signal.SIGKILL)
        assert "carried0" not in rest(world.near)
        assert "unreachable default" in rest(world.near)
        assert not world.is_reached(BEYOND), "the guard is left"

        world.vps.start()
        world.ship.start()
        world.wait_until_open()
        assert world.is_reached(BEYOND)

        os.kill(world.ship.helper(), signal.SIGKILL)
        assert world.ship.process.wait(10) == 1
        assert "the helper process has ended" in world.ship.log()
        assert "carried0" not in rest(world.near)
        assert not world.is_reached(BEYOND)

        world.ship.start()
        world.wait_until_open()
        assert world.ship.end() == 0
        assert not rest(world.near)
        assert world.is_reached(BEYOND), "by the routes that there were before"


def test_with_fallback_the_old_routes_are_used_while_the_bundle_is_down(tmp_path):
    with carried(tmp_path, fallback=True) as world:
        world.wait_until_open()
        until(lambda: "packets go through the bundle" in world.ship.log(), world.ship.log)
        assert "carried0" in output(world.near, "ip", "route", "get", BEYOND)
        world.vps.end(signal.SIGKILL)
        until(lambda: "packets leave by the machine's other routes" in world.ship.log(), world.ship.log, within_s=15)
        assert world.is_reached(BEYOND)
        world.ship.end(signal.SIGKILL)
        assert not rest(world.near)
        assert world.is_reached(BEYOND)


def test_wrong_secrets_and_keys_are_named(tmp_path):
    with carried(tmp_path) as world:
        world.wait_until_open()
        world.ship.end()
        for name in ("psk-a", "psk-b"):
            (tmp_path / name).write_text(output(world.near, "sh", "-c", "head -c 32 /dev/urandom | base64"))
            (tmp_path / name).chmod(0o600)
        good = world.ship_config.read_text()
        world.ship_config.write_text('psk_file = "psk-a"\n' + good)
        world.ship.start()
        until(lambda: "calls with another pre-shared key; give both ends the same psk_file" in world.vps.log(), world.vps.log)
        until(lambda: "vps does not answer; look whether" in world.ship.log(), world.ship.log, within_s=20)
        world.ship.end()
        world.ship_config.write_text(re.sub("peer_key = .*", f'peer_key = "{"A" * 43}="', good))
        world.ship.start()
        until(lambda: "calls a host with another key" in world.vps.log(), world.vps.log)
        world.ship.end()
        assert "PRIVATE" not in world.vps.log()
        key = (tmp_path / "vps" / "key").read_text().strip()
        assert key not in world.vps.log()
        world.ship_config.write_text(good)
        world.ship.start()
        world.wait_until_open()


def test_refusals_are_known_before_anything_is_made(tmp_path):
    for text, what in [
        ("peer = 1", "line 1"),
        ('listen = "0.0.0.0:53"\npeer = "x"\n[tun]\naddresses = ["10.0.0.1/24"]', "belongs to the system"),
    ]:
        bad = tmp_path / "bad.toml"
        bad.write_text(text)
        command = [sys.executable, "-m", "farlink.cli", "bundle", "carry", str(bad), "--check"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert what in done.stderr
        assert "Traceback" not in done.stderr


def test_without_the_right_it_says_what_is_missing(tmp_path):
    with carried(tmp_path) as world:
        world.ship.end()
        command = [sys.executable, "-m", "farlink.cli", "bundle", "carry", str(world.ship_config)]
        done = subprocess.run(
            ["setpriv", "--bounding-set", "-net_admin", *command], capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert "CAP_NET_ADMIN is missing" in done.stderr
    assert "Traceback" not in done.stderr
