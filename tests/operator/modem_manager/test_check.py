"""What `farlink bundle check` knows of lines of kind `modemmanager`."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from farlink.operator.config import check, load
from farlink.operator.config.kinds import KINDS, traits_of
from farlink.operator.config.modem_manager import ModemManagerSettings
from tests.conftest import ROOT
from tests.operator.modem_manager.world import Control, needs_mock, service_in

LINE = """name = "ship"
secrets = "secrets.toml"

[[line]]
name = "lte"
kind = "modemmanager"
modem = "dev-1"
apn = "internet"
ip_type = "ipv4v6"
user = "me"
least_signal = 20
"""
SECRETS = '[pin]\nlte = "1234"\n[apn_password]\nlte = "canary-77"\n'


@pytest.fixture
def bundle(tmp_path):
    def write(*replaced: tuple[str, str], secrets: str = SECRETS):
        text = LINE
        for former, new in replaced:
            assert former in text
            text = text.replace(former, new)
        (tmp_path / "bundle.toml").write_text(text)
        (tmp_path / "secrets.toml").write_text(secrets)
        (tmp_path / "secrets.toml").chmod(0o600)
        return tmp_path / "bundle.toml"

    return write


def test_keys_reach_the_line_and_secrets_are_not_shown(bundle, tmp_path):
    config, secrets = load(bundle(), needs_ports=False)
    (line,) = config.lines

    assert line.settings == ModemManagerSettings("dev-1", "internet", "ipv4v6", "me")
    assert KINDS["modemmanager"].device(line) == "dev-1"
    traits = traits_of(config, tmp_path)["lte"]
    assert (traits.most_signal, traits.least_signal) == (100, 20)
    assert (secrets.pins, secrets.apn_passwords) == ({"lte": "1234"}, {"lte": "canary-77"})
    assert {"1234", "canary-77"} <= set(secrets.texts())
    assert "canary" not in repr(secrets)
    assert not config.ppp_lines


MISTAKES = {
    "a pin": (("least_signal = 20", "pin = '4711'"), (11, 7), ["line[0].pin", "[pin]", "secrets"]),
    "a password": (("least_signal = 20", "password = 'canary-77'"), (11, 12), ["line[0].password", "[apn_password]"]),
    "an index": (('"dev-1"', '"/org/freedesktop/ModemManager1/Modem/3"'), (7, 9), ["line[0].modem", "not its index"]),
    "a number": (('"dev-1"', '"3"'), (7, 9), ["line[0].modem", "not its index"]),
    "no modem": (('modem = "dev-1"\n', ""), (4, 1), ["line[0].modem is missing"]),
    "a tty": (('"dev-1"', '"dev-1"\nport = "/dev/ttyUSB0"'), (8, 1), ["line[0].port", "no such key"]),
    "ip type": (('"ipv4v6"', '"ipv5"'), (9, 11), ["line[0].ip_type", "one of ipv4, ipv6, ipv4v6"]),
    "signal": (("= 20", "= 101"), (11, 16), ["line[0].least_signal", "0 to 100"]),
    "route": (("least_signal = 20", "route = true"), (11, 9), ["line[0].route", "neither probe nor peer"]),
    "slow probes": (
        ("least_signal = 20", 'peer = "far:1"\nprobe_interval_s = 2'),
        (12, 20),
        ["line[0].probe_interval_s", "a single lost packet"],
    ),
    "apn": (('"internet"', '"in ternet"'), (8, 7), ["line[0].apn"]),
    "answers": (("least_signal = 20", 'role = "answer"'), (11, 1), ["line[0].role: there is no such key"]),
}


@pytest.mark.parametrize(("replaced", "place", "words"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_named_with_its_place_and_without_secrets(bundle, replaced, place, words):
    (mistake,) = check(bundle(replaced), needs_ports=False).mistakes

    said = f"{mistake.message} {mistake.remedy}"
    assert (mistake.line, mistake.column) == place, mistake
    assert all(word in said for word in words), said
    assert "4711" not in said
    assert "canary" not in said


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ('[apn_password]\nlt = "x"', "apn_password.****: there is no such line"),
        ("[apn_password]\nlte = 7", "apn_password.lte: not a text"),
        ('apn_password = "x"', "apn_password: not a table"),
    ],
)
def test_mistakes_of_passwords_are_named(bundle, secrets, words):
    (mistake,) = check(bundle(secrets=secrets), needs_ports=False).mistakes

    assert words in mistake.message


def test_a_modem_of_two_lines_is_named(bundle):
    twice = ("least_signal = 20", 'least_signal = 20\n[[line]]\nname = "two"\nkind = "modemmanager"\nmodem = "dev-1"')
    (mistake,) = check(bundle(twice), needs_ports=False).mistakes

    assert mistake.message == "line[1].modem: dev-1 is that of line[0], too"


def test_a_bus_that_is_not_there_is_named(bundle, monkeypatch):
    pytest.importorskip("dbus_fast")
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus")
    (mistake,) = check(bundle()).mistakes

    assert (mistake.line, mistake.column) == (7, 9)
    assert "the D-Bus system bus cannot be reached: No such file" in mistake.message
    assert "systemctl" in mistake.remedy


@needs_mock
def test_modems_that_are_there_are_named(bundle, tmp_path):
    with service_in(tmp_path) as service:

        async def act() -> None:
            control = await Control.open(service)
            # A page checks files in its own event loop.
            (mistake,) = check(bundle()).mistakes
            assert "ModemManager has no such modem; it has none" in mistake.message
            await control.plug()
            assert not check(bundle()).mistakes
            (mistake,) = check(bundle(('"dev-1"', '"dev-2"'))).mistakes
            assert "QUALCOMM EM7455 (dev-1, 357...5678, /sys/devices/usb1/1-1, 890...0001)" in mistake.message
            control.close()
            service.end_mock()
            (mistake,) = check(bundle()).mistakes
            assert "ModemManager does not answer" in mistake.message

        asyncio.run(act())


def test_the_guide_names_every_key_and_its_file_is_right(tmp_path):
    guide = (ROOT / "docs" / "guides" / "bundle-lines.md").read_text(encoding="utf-8")
    part = guide.partition("## `modemmanager`")[2]
    for key in KINDS["modemmanager"].keys.keys() - {"pin", "password"}:
        assert f"`{key}`" in part, key
    for name, text in re.findall(r"^```toml\n# (\w+\.toml)\n(.*?)^```$", part, flags=re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)

    assert not check(tmp_path / "bundle.toml", needs_ports=False).mistakes


def test_a_missing_dbus_fast_is_said_with_its_remedy(bundle, monkeypatch):
    def missing(module: str, purpose: str):
        from farlink.errors import MissingExtraError

        raise MissingExtraError(f"{purpose} needs {module}", "pip install 'farlink[operator]'")

    monkeypatch.setattr("farlink.operator.config.kinds.modem_manager.require", missing)
    checked = check(bundle())

    assert checked.bundle is not None
    (said,) = KINDS["modemmanager"].notes(checked.bundle.lines[0])
    assert "pip install" in said
    assert json.dumps(said)


BAD = st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6) | st.booleans() | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.sampled_from(sorted(KINDS["modemmanager"].keys)), BAD, max_size=4))
def test_no_value_ends_in_a_traceback(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("fuzz") / "bundle.toml"
    line = {"name": "lte", "kind": "modemmanager", "modem": "dev-1", **values}
    path.write_text(tomli_w.dumps({"name": "ship", "line": [line]}), encoding="utf-8")
    checked = check(path, needs_ports=False)
    assert (checked.bundle is None) == bool(checked.mistakes)
    assert not {"pin", "password"} & set(values) or checked.mistakes
