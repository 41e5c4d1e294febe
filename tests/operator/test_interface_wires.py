"""Lines over interfaces between network namespaces: what ends them is noticed in 3 s, and they are back without a restart."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from farlink.operator.live import shown
from tests.conftest import ROOT
from tests.operator.interface_world import CONFIG, NOTICED_S, TROUBLES, configure, measured, trouble
from tests.operator.live_world import until, world_in
from tests.operator.test_rights import NOBODY, interpreter
from tests.operator.wires import missing, run, wires

__all__ = ["interpreter"]

WITHOUT = missing()
pytestmark = pytest.mark.skipif(WITHOUT is not None, reason=f"interfaces in network namespaces: {WITHOUT}")


@pytest.fixture
def nobody_folder():
    """A folder of nobody's."""
    made = Path(tempfile.mkdtemp(prefix="farlink-nobody-"))
    os.chown(made, NOBODY, NOBODY)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def wired(tmp_path_factory):
    """An operator with a line over each of three wires."""
    with wires() as made, world_in(tmp_path_factory.mktemp("wired"), made.prefix_near()) as world:
        world.wires = [made.add(f"wire{at}") for at in range(3)]
        world.near = world.start(configure(world.folder, world.wires))
        yield world


@pytest.mark.parametrize("name", TROUBLES)
def test_what_ends_a_line_is_noticed_in_time_and_the_line_is_back_without_a_restart(wired, name):
    seen = trouble(wired.near, wired.wires[0], name)
    assert 0 < seen.noticed_s <= NOTICED_S + seen.command_s
    assert seen.back_s < 5
    assert len(wired.near.of("wire1", "dropped")) == 0, "the other lines live on"


@pytest.mark.nightly
def test_troubles_are_noticed_in_time_again_and_again():
    """The table of `docs/validation/bundle-lines.md`, in short."""
    for name, seen in measured(int(os.environ.get("FARLINK_TROUBLES", "30"))).items():
        late = [one for one in seen if one.noticed_s > NOTICED_S + one.command_s]
        assert len(late) <= len(seen) / 50, (name, late)


def test_an_address_that_changes_is_noted_and_the_line_stays_up(wired):
    wire = wired.wires[2]
    until(lambda: wired.near.state(wire.name) == "connected", lambda: wired.near.log)
    before = len(wired.near.of(wire.name, "dropped"))
    wire.take_address()
    wire.give_address(7)
    until(lambda: wired.near.lines()[wire.name]["addresses"] == [f"10.{wire._at}.1.7/24"], lambda: wired.near.log)
    until(lambda: [one for one in wired.near.of(wire.name, "alive") if "instead of" in one.cause])
    last_s = wired.near.lines()[wire.name]["probe_bytes_today"]
    until(lambda: wired.near.lines()[wire.name]["probe_bytes_today"] > last_s + 2 * 88)
    assert wired.near.lines()[wire.name]["last_outward_s"] < NOTICED_S
    assert len(wired.near.of(wire.name, "dropped")) == before


def test_status_shows_what_was_observed(wired):
    until(lambda: wired.near.state("wire1") == "connected", lambda: wired.near.log)
    until(lambda: wired.near.lines()["wire1"]["bytes_in"])
    line = wired.near.lines()["wire1"]
    assert (line["port"], line["carrier"], line["addresses"]) == ("wire1", True, ["10.2.1.1/24"])
    assert line["last_outward_s"] < 3
    assert line["last_inward_s"] < 3
    assert 0 < line["least_round_trip_s"] <= line["median_round_trip_s"]
    assert line["probe_bytes_today"] % 44 == 0
    (row,) = [row for row in shown(wired.near.ask(do="status")).splitlines() if row.startswith("wire1: ")]
    assert row.startswith("wire1: wire1 with carrier, 10.2.1.1/24; last proof outward ")
    assert "bytes of probes today" in row


def test_one_bundle_has_lines_of_two_kinds(tmp_path):
    """Two interfaces before a modem of the bank, two lines in use: the modem is dialled while an interface is dead."""
    with wires() as made, world_in(tmp_path, made.prefix_near()) as world:
        one, two = made.add("one"), made.add("two")
        world.bank(1)
        far = world.start(world.configure("far", 1))
        config = world.configure("near", 1, more="use = 2")
        rows = "".join(
            f'[[line]]\nname = "{wire.name}"\nkind = "interface"\ninterface = "{wire.name}"\nprobe = ["{wire.target}"]\n'
            for wire in (one, two)
        )
        config.write_text(config.read_text() + "rank = 1\n" + rows)
        near = world.start(config)
        until(lambda: near.state("one") == near.state("two") == "connected", lambda: near.log)
        assert near.lines()["near-1"]["reason"] == "spare"

        two.drop()
        until(lambda: near.state("near-1") == "connected", lambda: near.log)
        until(lambda: far.state("far-1") == "connected", lambda: far.log)
        assert near.state("two") != "connected"
        two.carry()
        until(lambda: near.state("two") == "connected", lambda: near.log)
        until(lambda: near.lines()["near-1"]["reason"] == "spare", lambda: near.log)
        status = near.ask(do="status")
        assert (status["up"], status["use"], status["back_end"]) == (2, 2, "stand-in")
        assert status["primary"] in ("one", "two")
        found = {(each.modem, each.state) for each in near.history.transitions}
        assert {("near-1", "connected"), ("near-1", "ended"), ("two", "dropped"), ("one", "connected")} <= found
        assert json.dumps(status)


def ours(near: str) -> list[str]:
    """Default routes of the operator's."""
    done = subprocess.run(["ip", "-n", near, "route", "show", "proto", "112"], capture_output=True, text=True, check=True)
    return sorted(line.strip() for line in done.stdout.splitlines())


def test_a_default_route_is_there_while_its_line_is_up_and_after_a_killed_operator_no_longer(tmp_path):
    with wires() as made, world_in(tmp_path, made.prefix_near()) as world:
        both = [made.add("one"), made.add("two")]
        config = configure(tmp_path, both, "route = true")
        near = world.start(config)
        one, two = "default via 10.1.1.2 dev one metric 10", "default via 10.2.1.2 dev two metric 11"
        until(lambda: ours(made.near) == [one, two], lambda: (ours(made.near), near.log))
        both[0].drop()
        until(lambda: ours(made.near) == [two], lambda: (ours(made.near), near.log))
        assert near.state("one") != "connected"

        near.end(signal.SIGKILL)
        assert ours(made.near) == [two], "nobody was there to take it away"
        again = world.start(config)
        until(lambda: again.state("two") == "connected", lambda: again.log)
        both[1].drop()
        until(lambda: ours(made.near) == [], lambda: (ours(made.near), again.log))
        both[0].carry()
        until(lambda: ours(made.near) == [one], lambda: (ours(made.near), again.log))
        assert again.end() == 0
        assert ours(made.near) == []


def test_a_metric_that_another_route_has_is_told(tmp_path):
    """The kernel takes one default route of a metric: that of a DHCP client, say, or of another line."""
    with wires() as made, world_in(tmp_path, made.prefix_near()) as world:
        one, two = made.add("one"), made.add("two")
        run("ip", "-n", made.near, "route", "add", "default", "via", "10.2.1.2", "dev", "two", "metric", "10")
        near = world.start(configure(tmp_path, [one], "route = true"))
        words = "the default route over one cannot be changed: another route has metric 10; give the line another metric"
        until(lambda: near.lines().get("one", {}).get("route_failure") == words, lambda: (near.lines(), near.log))
        assert ours(made.near) == []
        assert two.name in subprocess.check_output(["ip", "-n", made.near, "route"], text=True)


def test_without_rights_the_cause_is_said_and_the_operator_stays_up(nobody_folder, interpreter):
    with wires() as made, world_in(nobody_folder, [*made.prefix_near(), *interpreter]) as world:
        pings, peers = made.add("one"), made.add("two")
        config = configure(nobody_folder, [pings])
        row = f'[[line]]\nname = "two"\nkind = "interface"\ninterface = "two"\npeer = "{peers.target}:7411"\nroute = true\n'
        config.write_text(config.read_text() + row)
        for path in nobody_folder.iterdir():
            os.chown(path, NOBODY, NOBODY)
        near = world.start(config)
        words = "this user may not probe over one (operation not permitted); give it CAP_NET_RAW"
        until(lambda: words in near.lines().get("one", {}).get("failure", ""), lambda: near.log)
        assert near.state("two") != "connected", "nobody answers there"
        # A peer needs no right to be asked, and its line comes up; the route does.
        with Answering(made.far, (peers.target, 7411)):
            until(lambda: near.state("two") == "connected", lambda: near.log)
            until(lambda: "CAP_NET_ADMIN" in near.lines()["two"]["route_failure"], lambda: near.log)
        assert near.end() == 0


def test_a_flood_of_netlink_messages_hides_nothing(tmp_path):
    """More changes than the socket's buffer holds while the operator is stopped: it asks for everything again."""
    with wires() as made, world_in(tmp_path, made.prefix_near()) as world:
        wire = made.add("one")
        near = world.start(configure(tmp_path, [wire]))
        until(lambda: near.state("one") == "connected", lambda: near.log)
        near.process.send_signal(signal.SIGSTOP)
        flood = "".join(f"link add x{at} type veth peer name y{at}\nlink del x{at}\n" for at in range(300))
        subprocess.run(["ip", "-n", made.near, "-batch", "-"], input=flood, text=True, check=True)
        wire.take_address()
        near.process.send_signal(signal.SIGCONT)
        until(lambda: near.lines()["one"]["failure"] == "one has no address", lambda: near.log)
        wire.give_address(9)
        until(lambda: near.state("one") == "connected", lambda: near.log)
        assert near.lines()["one"]["addresses"] == ["10.1.1.9/24"]


class Answering:
    """A far end that answers probes, as a process in a namespace."""

    def __init__(self, namespace: str, address: tuple[str, int]) -> None:
        self._command = ["ip", "netns", "exec", namespace, sys.executable, "-c", _ANSWERING, address[0], str(address[1])]

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._command, cwd=ROOT)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


_ANSWERING = """
import socket, sys, time
from farlink.operator.interface.answering import Answerer
from farlink.operator.interface.evidence import Evidence
answerer = Answerer(Evidence(), b"secret")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
    listening.bind((sys.argv[1], int(sys.argv[2])))
    while True:
        data, sender = listening.recvfrom(2048)
        answer = answerer.feed(data, sender, time.monotonic())
        if answer:
            listening.sendto(answer, sender)
"""


FAR = """
name = "shore"
[limits]
dropped_s = 0.2
[[line]]
name = "ear"
kind = "interface"
interface = "far1"
probe_listen = "{target}:7411"
"""


def test_two_operators_judge_both_ways_apart(tmp_path):
    with wires() as made, world_in(tmp_path, made.prefix_near()) as near_world:
        wire = made.add("one")
        config = tmp_path / "ship.toml"
        row = f'[[line]]\nname = "one"\nkind = "interface"\ninterface = "one"\npeer = "{wire.target}:7411"\n'
        config.write_text(CONFIG + row)
        far_config = tmp_path / "shore.toml"
        far_config.write_text(FAR.format(target=wire.target))
        near = near_world.start(config)
        with world_in(tmp_path, ["ip", "netns", "exec", made.far]) as far_world:
            far = far_world.start(far_config)
            both = lambda: near.state("one") == far.state("ear") == "connected"  # noqa: E731
            until(both, lambda: near.log + far.log)
            for outward, near_says, far_says in (
                (True, "outward way dead: 10.1.2.2:7411 says that nothing has arrived", "no answer from the far operator"),
                (False, "no answer from 10.1.2.2:7411", "outward way dead: the far operator says that nothing has arrived"),
            ):
                wire.drop(outward=outward, inward=not outward)
                until(lambda: near.state("one") != "connected" != far.state("ear"), lambda: near.log + far.log)
                assert near_says in near.of("one", "dropped")[-1].cause
                assert far_says in far.of("ear", "dropped")[-1].cause
                wire.carry()
                until(both, lambda: near.log + far.log)
