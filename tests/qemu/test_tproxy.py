"""Connections that a router's kernel passes to a gateway, with Debian's kernel: one smoke test, in a guest."""

from __future__ import annotations

import os
import sys

import pytest

from tests.cli.test_gateway import blocks, hosts  # noqa: F401 (a fixture)
from tests.qemu import guest

# The guest itself is the office with its router; the hub and a client have a namespace each.
SCRIPT = """
ip link set lo up
for name in far client; do ip netns add $name; ip -n $name link set lo up; done
ip link add wire type veth peer name wire netns far
ip address add 10.98.7.1/24 dev wire
ip link set wire up
ip -n far address add 10.98.7.2/24 dev wire
ip -n far link set wire up
ip -n far address add 192.0.2.80/32 dev lo
ip link add lan type veth peer name wire netns client
ip address add 10.1.0.1/16 dev lan
ip link set lan up
ip -n client address add 10.1.0.9/16 dev wire
ip -n client link set wire up
ip -n client route add default via 10.1.0.1

{rules}

ip netns exec far busybox httpd -p 192.0.2.80:8000 -h /mnt
ip netns exec far {farlink} gateway hub.toml 2>hub.log &
{farlink} gateway office.toml 2>office.log &
for log in hub.log office.log; do
    until grep -q "sessions at" $log; do sleep 0.2; done
done
ip netns exec client curl -sS --max-time 20 -o arrived http://192.0.2.80:8000/page
cmp page arrived
echo "arrived after $(cut -d " " -f 1 /proc/uptime) s"
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("FARLINK_PEERS") not in ("all", "again"),
    reason="half a minute for a guest, and make test does the same in namespaces: FARLINK_PEERS=all includes it",
)
def test_a_client_behind_a_router_gets_its_bytes_with_the_kernel_of_debian(hosts):  # noqa: F811
    if (reason := guest.missing()) is not None:
        pytest.skip(f"no guest: {reason}")
    rules, _ = blocks("nft")
    (hosts / "tproxy.nft").write_text(rules)
    [typed] = [block for block in blocks("console") if "tproxy.nft" in block]
    (hosts / "page").write_bytes(bytes(range(256)) * 800)
    (hosts / "hub.toml").write_text('keys = "hub"\nlisten = "10.98.7.2:47470"\n[peer.office]\nallow = ["192.0.2.80:8000"]\n')
    transparent, _ = [block for block in blocks("toml") if "[[transparent]]" in block]
    (hosts / "office.toml").write_text(f'keys = "office"\n[peer.hub]\naddress = "10.98.7.2:47470"\n{transparent}')

    script = SCRIPT.format(rules=typed.replace("office$ ", ""), farlink=f"{sys.executable} -m farlink.cli")
    ended = guest.run(script, hosts, modules=["nft_tproxy", "veth"])

    logs = "".join(f"{log.name}: {log.read_text()}" for log in hosts.glob("*.log"))
    assert ended.status == 0, ended.console + logs
    print(ended.console)
    assert (hosts / "arrived").read_bytes() == (hosts / "page").read_bytes()
