"""A serial line as one more path of `farlink bundle carry`, beside one of UDP."""

from __future__ import annotations

import pytest

from farlink import net
from farlink.errors import TransferError
from tests.operator.carry_world import carried
from tests.operator.live_world import until
from tests.operator.ppp_world import Line, moving
from tests.operator.ppp_world import missing as missing_tun
from tests.operator.wires import missing

WITHOUT = missing() or missing_tun()
RATE_BPS = 19_200


def path_of(line: Line):
    def text(end: str) -> str:
        port = f'serial = "{line.path(end)}"\nrate_bps = {RATE_BPS}\n'
        return f'[[path]]\nname = "modem"\n{port}standby = true\nprobe_interval_s = 1\n'

    return text


@pytest.mark.skipif(WITHOUT is not None, reason=f"a bundle in network namespaces: {WITHOUT}")
def test_a_serial_line_carries_on_when_the_others_die_and_is_left_when_they_come_back(tmp_path):
    line = Line(tmp_path, 0, RATE_BPS, 0.1)
    with moving([line]), carried(tmp_path, {"one": "10mbit"}, serial=path_of(line)) as world:
        world.wait_until_open()

        def data_bytes() -> float:
            return world.ship.metrics()['farlink_bundle_path_data_bytes_total{path="modem"}']

        def logs() -> str:
            return world.ship.log() + world.vps.log()

        until(lambda: world.ship.said("^up: modem") and world.vps.said("^up: modem"), logs)
        assert data_bytes() < 500
        world.wires["one"].drop()
        until(lambda: world.ship.said("^down: one"), logs)
        until(lambda: world.is_reached("10.77.0.1"), logs)
        until(lambda: data_bytes() > 0, logs)
        # The line drops, too, and comes back: its own end says so, and the bundle goes on over it.
        line.drop()
        until(lambda: "interface: modem: the line has no carrier" in world.ship.log(), logs)
        assert not world.is_reached("10.77.0.1")
        line.back()
        until(lambda: world.is_reached("10.77.0.1"), logs)
        world.wires["one"].carry()
        until(lambda: world.ship.said("^(?:up|down): one")[-1:] == ["up: one"], logs)
        assert world.is_reached("10.77.0.1")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ('serial = "/dev/ttyS0"\n', r"path\[0\]\.rate_bps: is missing"),
        ('serial = "/dev/ttyS0"\nrate_bps = 1\n', r"path\[0\]\.rate_bps: 1 is no rate"),
        ('interface = "eth0"\nrate_bps = 2400\n', r"path\[0\]\.rate_bps: the path is no serial line"),
        ('serial = "/dev/ttyS0"\nrate_bps = 2400\ninterface = "eth0"\n', r"path\[0\]\.serial: a serial line has no interface"),
    ],
)
def test_mistakes_of_a_serial_path_are_named(tmp_path, path, said):
    config = tmp_path / "ship.toml"
    net.generate_key(tmp_path / "keys")
    head = f'keys = "keys"\npeer = "vps"\npeer_key = "{net.public_key(tmp_path / "keys")}"\naddress = "192.0.2.1:47471"\n'
    config.write_text(head + '[tun]\naddresses = ["10.77.0.2/24"]\n[[path]]\nname = "modem"\n' + path)
    with pytest.raises(TransferError, match=said):
        net.check_ip_bundle(config)
