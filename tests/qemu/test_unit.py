"""The systemd unit of gateways below systemd itself, in a guest: its confinement lets it work."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.test_gateway import GUIDE, UNIT, blocks, hosts  # noqa: F401 (a fixture)
from tests.qemu import guest

SCRIPT = """
ip link set lo up
ip address add 10.1.0.1/16 dev lo
ln -sf {farlink} /usr/bin/farlink
mkdir -p /etc/farlink /var/lib/private/farlink
cp hub.toml office.toml /etc/farlink/
cp -r hub office /var/lib/private/farlink/
units=/run/systemd/system
cp unit $units/farlink-gateway@.service
for drop in @ @office; do mkdir $units/farlink-gateway$drop.service.d; done
cp python.conf $units/farlink-gateway@.service.d/
cp capability.conf $units/farlink-gateway@office.service.d/
busybox httpd -p 127.0.0.1:8000 -h /mnt

systemctl daemon-reload
systemctl start farlink-gateway@hub
systemctl start farlink-gateway@office
curl -sS --max-time 20 -o arrived http://127.0.0.1:8001/page
cmp page arrived
systemctl reload farlink-gateway@office
until grep -q "^reloaded" office.log; do sleep 0.2; done
ps -o user= -p $(systemctl show --property MainPID --value farlink-gateway@office) >user
systemctl stop farlink-gateway@office farlink-gateway@hub
for name in office hub; do
    systemctl show --property Result --property ExecMainStatus farlink-gateway@$name
done >ended
echo "stopped after $(cut -d " " -f 1 /proc/uptime) s"
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("FARLINK_PEERS") not in ("all", "again"),
    reason="another half a minute: FARLINK_PEERS=all includes it",
)
def test_gateways_run_as_units_of_systemd(hosts):  # noqa: F811
    if (reason := guest.missing()) is not None:
        pytest.skip(f"no guest: {reason}")
    if not Path("/lib/systemd/systemd").exists():
        pytest.skip("systemd is not installed")
    (hosts / "unit").write_text(UNIT.read_text())
    # Where this machine has its Python, nobody else has it.
    (hosts / "python.conf").write_text(
        f"[Service]\nProtectHome=tmpfs\nBindReadOnlyPaths={sys.base_prefix}\nStandardError=append:/mnt/%i.log\n"
    )
    # As the guide says it for transparent listeners.
    settings = re.findall(r"`((?:AmbientCapabilities|CapabilityBoundingSet|PrivateUsers)=\w+)`", GUIDE.read_text())
    assert len(settings) == 3
    (hosts / "capability.conf").write_text("[Service]\n" + "".join(f"{setting}\n" for setting in settings))
    (hosts / "page").write_bytes(bytes(range(256)) * 800)
    keys = 'keys = "/var/lib/farlink/{}"\n'
    (hosts / "hub.toml").write_text(
        keys.format("hub") + 'listen = "127.0.0.1:47470"\n[peer.office]\nallow = ["127.0.0.1:8000"]\n'
    )
    transparent, _ = [block for block in blocks("toml") if "[[transparent]]" in block]
    forward = '[[forward]]\nlisten = "127.0.0.1:8001"\ndestination = "127.0.0.1:8000"\n'
    (hosts / "office.toml").write_text(
        keys.format("office") + f'[peer.hub]\naddress = "127.0.0.1:47470"\n{forward}{transparent}'
    )

    ended = guest.run(SCRIPT.format(farlink=Path(sys.executable).parent / "farlink"), hosts, systemd=True)

    logs = "".join(f"{log.name}: {log.read_text()}" for log in hosts.glob("*.log"))
    assert ended.status == 0, ended.console + logs
    assert (hosts / "ended").read_text() == "Result=success\nExecMainStatus=0\n" * 2
    assert (hosts / "user").read_text().strip() not in ("", "root")
