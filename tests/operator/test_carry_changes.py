"""`farlink bundle carry` over IPv6, with a configuration that changes, with marks of congestion, and for several peers."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.operator.carry_world import PORT, VPS, End, carried, inside, keygen, output, try_inside
from tests.operator.live_world import until
from tests.operator.wires import missing, wires

RELOADED = r"^(?:\S+: )?(?:not-)?reloaded: .*"
WITHOUT = missing() or (None if Path("/dev/net/tun").exists() else "no /dev/net/tun")
pytestmark = pytest.mark.skipif(WITHOUT is not None, reason=f"a bundle in network namespaces: {WITHOUT}")


FLOOD = """
import socket, sys, time
host, port, s = sys.argv[1], int(sys.argv[2]), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
until = time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    for _ in range(100):
        try: s.sendto(bytes([0x40]) + bytes(1200), (host, port))
        except OSError: pass
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A ship with a path of both families, IPv6 first, and one of IPv4; the interface for a third one is there."""
    rates = {"one": "20mbit", "two": "10mbit"}
    with carried(tmp_path_factory.mktemp("changes"), rates, families={"one": "64", "two": "4"}) as made:
        made.wait_until_open()
        yield made


def sample(end: End, name: str) -> float:
    """A number of an end that is newer than this call."""
    time.sleep(0.6)  # metrics are renewed each quarter of a second
    return end.metrics()[f"farlink_bundle_{name}"]


def ping(namespace: str, to: str, count: int, interval_s: float = 0.02, *options: str) -> tuple[int, float]:
    """Send pings; how many were lost, and the longest time without an answer, in seconds."""
    command = ["ping", "-D", "-i", str(interval_s), "-c", str(count), "-W", "2", *options, to]
    text = output(namespace, *command)
    arrivals = [float(at) for at in re.findall(r"^\[([\d.]+)\].*icmp_seq", text, re.MULTILINE)]
    gaps = [late - early for early, late in itertools.pairwise(arrivals)]
    return count - len(arrivals), max(gaps, default=float("inf"))


def test_a_path_over_ipv6_has_shorter_packets_beside_one_over_ipv4(world):
    assert "interface: one: goes through one over IPv6" in world.ship.log()
    assert "interface: two: goes through two\n" in world.ship.log()
    until(lambda: "answers at [fd00:1:1::1]" in world.vps.log(), world.vps.log)

    def sizes():
        output(world.near, sys.executable, "-c", FLOOD, VPS, "9", "0.5")
        ends = [end.metrics() for end in (world.ship, world.vps)]
        return [end[f'farlink_bundle_path_packet_bytes{{path="{name}"}}'] for end in ends for name in ("one", "two")]

    until(lambda: sizes() == [1500 - 48 - 25, 1500 - 28 - 25] * 2, world.ship.log, within_s=20)


def test_a_path_roams_between_families(world):
    for change, family in ((world.wires["one"].take_ipv6, r"10\.1\.1\.1"), (world.wires["one"].give_ipv6, r"\[fd00:1:1::1\]")):
        pattern = rf"^proven: one: ship answers at {family}"
        before = len(world.vps.said(pattern))
        change()
        lost, gap_s = ping(world.near, VPS, 80)
        assert (lost <= 4, gap_s < 1) == (True, True), world.ship.log()
        until(lambda pattern=pattern, before=before: len(world.vps.said(pattern)) > before, world.vps.log)
    until(lambda: world.ship.said("^(?:up|down): one")[-1] == "up: one", world.ship.log)
    assert len(world.ship.said("^open: ")) == 1


def reload(end: End, config: Path, text: str) -> str:
    """Give a running end another configuration; what it says."""
    before = len(end.said(RELOADED))
    config.write_text(text)
    end.process.send_signal(signal.SIGHUP)
    until(lambda: len(end.said(RELOADED)) > before, end.log)
    return end.said(RELOADED)[-1]


def test_a_configuration_that_changes_keeps_the_bundle(world):
    ship, vps = world.ship_config.read_text(), world.vps_config.read_text()
    extra = f'[[path]]\nname = "more"\nsource = "10.2.1.1"\naddress = "{world.wires["two"].target}:{PORT}"\n'
    more = (
        ship.replace('["0.0.0.0/0"]', '["0.0.0.0/0", "198.51.100.0/24"]').replace('carried0"', 'carried0"\nmtu_bytes = 1300')
        + extra
    )
    try:
        said = reload(world.vps, world.vps_config, vps + '[[path]]\nname = "more"\n')
        assert said == "reloaded: the new configuration is in force; new paths: more"
        assert reload(world.ship, world.ship_config, more) == said
        until(lambda: "up: more" in world.ship.log(), lambda: world.ship.log() + world.vps.log())
        assert "carried0" in output(world.near, "ip", "route", "get", "198.51.100.1")
        assert "mtu 1300" in output(world.near, "ip", "link", "show", "carried0")
        assert ping(world.near, VPS, 20)[0] == 0

        said = reload(world.ship, world.ship_config, "peer = 1")
        assert "not-reloaded: the configuration before stays in force" in said
        assert "line 1" in said
        said = reload(
            world.ship,
            world.ship_config,
            re.sub("carried0", "carried1", re.sub("peer_key = .*", f'peer_key = "{"A" * 43}="', more)),
        )
        assert "peer_key, tun.name: cannot change while the bundle runs; start it again, or undo the change" in said
        # The kernel refuses the second address, and the first one is taken back.
        inside(world.near, "sysctl", "-qw", "net.ipv6.conf.carried0.disable_ipv6=1")
        said = reload(
            world.ship, world.ship_config, more.replace('"10.77.0.2/24"', '"10.77.0.2/24", "10.99.0.1/24", "fd00:99::1/64"')
        )
        assert "not-reloaded" in said
        assert "fd00:99::1/64 cannot be added" in said
        assert "10.99.0.1" not in output(world.near, "ip", "address", "show", "carried0")
        assert world.is_reached(VPS)
    finally:
        said = reload(world.ship, world.ship_config, ship)
        reload(world.vps, world.vps_config, vps)
    assert said == "reloaded: the new configuration is in force; paths that are gone: more"
    assert "carried0" not in output(world.near, "ip", "route", "show", "198.51.100.0/24", "table", "17996")
    assert "mtu 1400" in output(world.near, "ip", "link", "show", "carried0")
    assert ping(world.near, VPS, 20)[0] == 0
    # And once more: the path has its numbers from before.
    reload(world.vps, world.vps_config, vps + '[[path]]\nname = "more"\n')
    ups = len(world.ship.said("^up: more"))
    reload(world.ship, world.ship_config, more)
    until(lambda: len(world.ship.said("^up: more")) > ups, lambda: world.ship.log() + world.vps.log())
    reload(world.ship, world.ship_config, ship)
    reload(world.vps, world.vps_config, vps)
    assert len(world.ship.said("^open: ")) == len(world.vps.said("^open: ")) == 1


def test_marks_of_congestion_go_through_and_take_the_place_of_drops(world):
    for namespace in (world.near, world.far):
        inside(namespace, "sysctl", "-qw", "net.ipv4.tcp_ecn=1", "net.ipv4.tcp_congestion_control=cubic")
    before = {name: sample(world.ship, name) for name in ("marked_total", "dropped_total")}
    middle = f"{world.near.removesuffix('-near')}-2"
    inside(
        middle,
        "nft",
        "add table ip e; add chain ip e c { type filter hook forward priority 0; }; add rule ip e c ip ecn ect0 counter",
    )
    code = (
        "import socket\n"
        f"s=socket.create_server(('{VPS}',5001)); print('ready',flush=True); c,_=s.accept()\n"
        "while c.recv(65536): pass\n"
        "c.sendall(b'all')"
    )
    send = (
        f"import socket; c=socket.create_connection(('{VPS}',5001))\n"
        "c.sendall(bytes(16_000_000)); c.shutdown(1); print(c.recv(9))"
    )
    listen = ["ip", "netns", "exec", world.far, sys.executable, "-c", code]
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as far:
        assert far.stdout.readline() == "ready\n"
        assert "all" in output(world.near, sys.executable, "-c", send)
    assert sample(world.ship, "marked_total") > before["marked_total"]
    assert sample(world.ship, "dropped_total") == before["dropped_total"]
    packets = int(re.search(r"ecn ect0 counter packets (\d+)", output(middle, "nft", "list", "ruleset"))[1])
    # On a busy machine most of the 11,000 packets take the other path: 409 and 445 came by here.
    assert packets > 100, "datagrams have the mark of what they carry"

    # A router marks what is capable; a packet of the bundle that is not is none of these.
    inside(middle, "nft", "add rule ip e c udp dport 47471 ip ecn ect0 ip ecn set ce")
    path_one = ["ip", "-n", f"{world.near.removesuffix('-near')}-1", "link", "set", "farside"]
    subprocess.run([*path_one, "down"], check=True)
    marked = sample(world.vps, "marked_on_the_way_total")
    assert ping(world.near, VPS, 20, 0.02, "-Q", "2")[0] <= 2
    assert sample(world.vps, "marked_on_the_way_total") >= marked + 15
    assert sample(world.vps, "wrongly_marked_total") == 0
    subprocess.run([*path_one, "up"], check=True)


def test_a_dscp_is_copied_only_if_that_is_asked_for(world):
    middles = [f"{world.near.removesuffix('-near')}-{at}" for at in (1, 2)]
    for middle in middles:
        rule = "add rule inet d c meta l4proto udp ip dscp ef counter; add rule inet d c meta l4proto udp ip6 dscp ef counter"
        inside(middle, "nft", f"add table inet d; add chain inet d c {{ type filter hook forward priority 0; }}; {rule}")

    def counted():
        return sum(
            int(n)
            for middle in middles
            for n in re.findall(r"dscp ef counter packets (\d+)", output(middle, "nft", "list", "ruleset"))
        )

    assert ping(world.near, VPS, 20, 0.02, "-Q", "0xb8")[0] == 0
    assert counted() == 0
    text = world.ship_config.read_text()
    assert reload(world.ship, world.ship_config, "copy_dscp = true\n" + text) == "reloaded: the new configuration is in force"
    assert ping(world.near, VPS, 20, 0.02, "-Q", "0xb8")[0] == 0
    assert counted() >= 20
    reload(world.ship, world.ship_config, text)


def one_of(folder: Path, number: int, own: str, peer: str, key: str, where: str, path: str) -> Path:
    """The configuration of one end of the bundle with this number."""
    config = folder / f"{own}-{peer}.toml"
    last, metrics = (1, 2) if own == "vps" else (2, number)
    config.write_text(
        f'keys = "{own}"\npeer = "{peer}"\npeer_key = "{key}"\nmetrics = "127.0.0.1:947{metrics}"\n{where}\n'
        f'[tun]\nname = "carried{number}"\naddresses = ["10.77.{number}.{last}/24"]\n[[path]]\nname = "any"\n{path}'
    )
    return config


def test_several_peers_have_one_process_and_a_flood_of_one_does_not_starve_the_other(tmp_path):
    with wires() as made:
        ships, vps, own = [], [], keygen(tmp_path / "vps")
        for number in (1, 2):
            wire, port = made.add(f"wire{number}"), PORT + number
            key = keygen(tmp_path / f"ship{number}")
            inside(
                made.near,
                "tc",
                "qdisc",
                "replace",
                "dev",
                f"wire{number}",
                "root",
                "tbf",
                "rate",
                "50mbit",
                "burst",
                "64kb",
                "latency",
                "50ms",
            )
            where = f'address = "{wire.target}:{port}"'
            ships.append(one_of(tmp_path, number, f"ship{number}", "vps", own, where, f'interface = "wire{number}"\n'))
            vps.append(one_of(tmp_path, number, "vps", f"ship{number}", key, f'listen = "0.0.0.0:{port}"', ""))
        ends = [End(made.far, vps[0], vps[1]), *(End(made.near, ship) for ship in ships)]
        log = lambda: "\n".join(end.log() for end in ends)  # noqa: E731
        try:
            for number in (1, 2):
                until(lambda number=number: try_inside(made.near, "ping", "-c", "1", "-W", "1", f"10.77.{number}.1"), log)
                assert f"ship{number}: up: any: carries packets" in ends[0].log()
            floods = [
                subprocess.Popen(["ip", "netns", "exec", made.near, sys.executable, "-c", FLOOD, host, str(port), "4"])
                for host, port in (("10.77.1.1", 9), ("10.1.2.2", PORT + 1))
            ]
            lost, gap_s = ping(made.near, "10.77.2.1", 150)
            for flood in floods:
                flood.wait(20)
            assert (lost <= 1, gap_s < 1) == (True, True), (lost, gap_s, log())
            time.sleep(0.6)
            numbers = ends[0].metrics()
            assert numbers['farlink_bundle_path_received_bytes_total{peer="ship1",path="any"}'] > 1e6
            assert numbers['farlink_bundle_stray_total{peer="ship1"}'] > 1000
            assert numbers['farlink_bundle_stray_total{peer="ship2"}'] == 0
            reload(ends[0], vps[1], vps[1].read_text().replace("[tun]", "[limits]\nlatency_s = 0.1\n[tun]"))
            until(lambda: len(ends[0].said(RELOADED)) == 2, log)
            assert sorted(line.split(": ")[:2] for line in ends[0].said(RELOADED)) == [
                ["ship1", "reloaded"],
                ["ship2", "reloaded"],
            ]
        finally:
            for end in reversed(ends):
                if end.process.poll() is None:
                    end.end()
        assert not output(made.far, "ip", "-br", "link", "show", "type", "tun")


def test_peers_that_cannot_be_together_are_refused(tmp_path):
    key = keygen(tmp_path / "vps")
    where = 'listen = "0.0.0.0:47471"'
    configs = [one_of(tmp_path, 1, "vps", f"ship{number}", key, where, "") for number in (1, 2)]
    command = [sys.executable, "-m", "farlink.cli", "bundle", "carry", *map(str, configs), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "vps-ship2.toml: peer_key: " in done.stderr
    assert "give each peer a key of its own" in done.stderr
