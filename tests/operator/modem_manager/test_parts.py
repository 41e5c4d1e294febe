"""Parts of lines over ModemManager: numbers in words, names of modems, addresses on an interface."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.operator.lines.modem_manager import addresses
from farlink.operator.lines.modem_manager.bearer import Bearer
from farlink.operator.lines.modem_manager.bus import BusError
from farlink.operator.lines.modem_manager.modem import (
    MODEM,
    MODEM_3GPP,
    SIGNAL,
    Modem,
    cell_of,
    listed,
    network_words,
    observed,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9) | st.integers(0, 9), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["State", "UnlockRequired", "UnlockRetries", "SignalQuality", "Sim", "Model", "Device", "AccessTechnologies"]
OF_BEARERS = ["Connected", "Interface", "Ip4Config", "Ip6Config", "Stats", "ConnectionError"]
NETWORKS = ["Imei", "RegistrationState", "OperatorName", "OperatorCode"]


@given(st.dictionaries(st.sampled_from(KEYS), VALUES), st.dictionaries(st.sampled_from(NETWORKS), VALUES), VALUES)
def test_no_property_of_a_modem_is_trusted(own, network, signal):
    interfaces = {MODEM: own, MODEM_3GPP: network, SIGNAL: {"Lte": signal, "Nr5g": signal}}
    for given_interfaces in (interfaces, dict.fromkeys(interfaces, signal)):
        modem = Modem.of("/m", given_interfaces)
        assert modem.signal is None or 0 <= modem.signal <= 100
        assert listed([modem]).isprintable()
        assert network_words(observed(given_interfaces), cell_of(signal)).isprintable()


@given(st.dictionaries(st.sampled_from(OF_BEARERS), VALUES))
def test_no_property_of_a_bearer_is_trusted(own):
    bearer = Bearer.of(own)
    assert bearer.words().isprintable()
    assert bearer.error.isprintable()
    # What goes into the arguments of a program.
    assert not bearer.interface.startswith("-")
    assert not bearer.interface or len(bearer.interface) <= 15


@pytest.mark.parametrize("name", ["-n", "wwan0 up", "../x", "a" * 16, ""])
def test_names_that_are_no_interface_are_none(name):
    assert Bearer.of({"Interface": name}).interface == ""


def test_control_characters_of_an_error_do_nothing():
    assert str(BusError("x.y", "a\x1b[2Jb\nc")) == "a[2Jb c (x.y)"


STATIC = {"Interface": "wwan0", "Ip4Config": {"method": 2, "address": "10.64.0.2", "prefix": 30, "mtu": 1430}}


def set_and_clear(own: dict) -> None:
    async def run() -> None:
        one = addresses.Set(Bearer.of(own))
        await one.set()
        await one.clear()

    asyncio.run(run())


def test_addresses_are_set_and_removed_with_iproute2(tmp_path, monkeypatch):
    program = tmp_path / "ip"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    set_and_clear(STATIC)

    assert (tmp_path / "asked").read_text().splitlines() == [
        "link set dev wwan0 mtu 1430 up",
        "address replace 10.64.0.2/30 dev wwan0",
        "address del 10.64.0.2/30 dev wwan0",
    ]


def test_an_address_that_may_not_be_set_says_why(tmp_path, monkeypatch):
    program = tmp_path / "ip"
    program.write_text("#!/bin/sh\necho RTNETLINK answers: Operation not permitted >&2\nexit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(addresses.AddressError, match="ip link set: RTNETLINK answers: Operation not permitted"):
        set_and_clear(STATIC)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(addresses.AddressError, match="No such file"):
        set_and_clear(STATIC)
    with pytest.raises(addresses.AddressError, match="does not name its interface"):
        set_and_clear({})


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")
def test_addresses_are_set_on_a_real_interface():
    code = """
        import asyncio, subprocess
        from farlink.operator.lines.modem_manager import addresses
        from farlink.operator.lines.modem_manager.bearer import Bearer
        def shown(): return subprocess.run(["ip", "-o", "address", "show", "wwan0"], capture_output=True, text=True).stdout
        async def run():
            one = addresses.Set(Bearer.of(STATIC))
            await one.set()
            assert "10.64.0.2/30" in shown(), shown()
            await one.clear()
            assert "10.64.0.2" not in shown(), shown()
        subprocess.run(["ip", "link", "add", "wwan0", "type", "veth", "peer", "name", "far0"], check=True)
        asyncio.run(run())
    """.replace("STATIC", repr(STATIC))
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if "not permitted" in done.stderr or "not supported" in done.stderr:
        pytest.skip(done.stderr.strip()[:200])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("pair", "level"), [([101, True], None), ([-1, True], None), ([True, True], None), ([], None), ([7], 7)]
)
def test_a_signal_is_a_percentage_or_unknown(pair, level):
    assert Modem.of("/m", {MODEM: {"SignalQuality": pair}}).signal == level
