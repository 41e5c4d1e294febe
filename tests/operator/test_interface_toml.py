"""Lines of kind `interface` in a bundle.toml: every mistake has its place, and contradictions say how long noticing takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from farlink.operator.backend import back_end_of
from farlink.operator.config import check, load
from farlink.operator.config.kinds import KINDS, traits_of
from farlink.operator.live.loop import dialler_config
from farlink.operator.pppd import Pppd
from tests.conftest import ROOT

GOOD = """\
name = "ship"

[[line]]
name = "dish"
kind = "interface"
interface = "eth1"
probe = ["192.0.2.1", "far.example"]
rank = 2

[[line]]
name = "router"
kind = "interface"
interface = "eth2"
peer = "[2001:db8::1]:7411"
probe_listen = 7411
"""


@pytest.fixture
def written(tmp_path):
    """Write a bundle.toml."""

    def write(*edits: tuple[str, str]) -> Path:
        text = GOOD
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "bundle.toml"
        path.write_text(text)
        return path

    return write


def test_a_good_file_is_taken(written, tmp_path):
    bundle, secrets = load(written())
    dish, router = bundle.lines
    assert (dish.kind, dish.rank, dish.settings.interface, dish.settings.probe) == (
        *("interface", 2, "eth1"),
        ("192.0.2.1", "far.example"),
    )
    assert (router.settings.peer, router.settings.probe_listen) == ("[2001:db8::1]:7411", "127.0.0.1:7411")
    assert (dish.settings.interval_s, dish.settings.noticed_s, dish.settings.probe_bytes) == (1.0, 3.0, 128)
    told = json.loads(dialler_config(bundle, traits_of(bundle, tmp_path)))
    assert [line["least_signal"] for line in told["lines"]] == [None, None]
    assert told["limits"]["dial_s"] == told["limits"]["link_s"] == 14
    assert back_end_of(bundle, secrets, profiles_folder=tmp_path).missing() is None, "pppd is not needed"
    assert Pppd(tmp_path).files(bundle) == {}


MISTAKES = {
    "no interface": ('interface = "eth1"\n', "", (3, 1), "line[0].interface is missing"),
    "a path": ('"eth1"', '"/dev/eth1"', (6, 13), "the name of an interface"),
    "a long name": ('"eth1"', '"an-interface-too"', (6, 13), "up to 15 characters"),
    "a key of another kind": ("rank = 2", 'port = "/dev/ttyUSB0"', (8, 1), "line[0].port: there is no such key"),
    "no probe": ('probe = ["192.0.2.1", "far.example"]\n', "", (3, 1), "neither probe nor peer nor probe_listen"),
    "empty probe": ('["192.0.2.1", "far.example"]', "[]", (7, 9), "a list of 1 to 16 addresses"),
    "probe that is none": ('"far.example"', '"far example"', (7, 9), "a list of 1 to 16 addresses"),
    "probe whose name nobody can look up": ('"far.example"', '"far..example"', (7, 9), "a list of 1 to 16 addresses"),
    "peer with an endless label": ('"[2001:db8::1]:7411"', f'"{"a" * 64}:7411"', (14, 8), "HOST:PORT of a far operator"),
    "peer without a port": ('"[2001:db8::1]:7411"', '"far.example"', (14, 8), "HOST:PORT of a far operator"),
    "peer without brackets": ('"[2001:db8::1]:7411"', '"2001:db8::1:7411"', (14, 8), "HOST:PORT of a far operator"),
    "listening at a name": ("probe_listen = 7411", 'probe_listen = "far.example:1"', (15, 16), "ADDRESS:PORT"),
    "negative budget": ("rank = 2", "probe_bytes_per_day = -5", (8, 23), "line[0].probe_bytes_per_day: -5 is not"),
    "negative time": ("rank = 2", "noticed_s = -1", (8, 13), "line[0].noticed_s: -1 is not a number from 0.5"),
    "interval above the time": (
        *("rank = 2", "probe_interval_s = 2", (8, 20)),
        "2 s, and noticed_s is 3: a single lost packet would drop the line, so noticing takes 4 s | give at most 1.5, "
        "or noticed_s = 4",
    ),
    "budget below the time": (
        *("rank = 2", "probe_bytes_per_day = 100000", (8, 23)),
        "100000 allows a probe of 128 bytes every 110.6 s, so noticing a dead line takes 221.2 s, and noticed_s is 3 | "
        "give at least 7372800, or noticed_s = 222",
    ),
    "a metric without a route": ("rank = 2", "metric = 7", (8, 10), "there is no route that it is for"),
    "a gateway without a route": ("rank = 2", 'gateway = "192.0.2.1"', (8, 11), "there is no route that it is for"),
    "two lines on one interface": ('"eth2"', '"eth1"', (13, 13), "line[1].interface: eth1 is that of line[0], too"),
    "two lines on one port": ("rank = 2", "probe_listen = 7411", (15, 16), "127.0.0.1:7411 is that of line[0], too"),
    "a kind that is none": (
        'kind = "interface"\ninterface = "eth2"',
        'kind = "interfaces"\ninterface = "eth2"',
        (12, 8),
        "mean 'i",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_named_with_its_place(written, name):
    old, new, place, words = MISTAKES[name]
    (one,) = check(written((old, new))).mistakes
    assert words in f"{one.message} | {one.remedy}"
    assert (one.line, one.column) == place


@pytest.mark.parametrize("name", ["interval above the time", "budget below the time"])
def test_the_remedies_of_contradictions_are_right(written, name):
    old, new, _, words = MISTAKES[name]
    for remedy in re.findall(r"noticed_s = \d+", words):
        assert not check(written((old, f"{new}\n{remedy}"))).mistakes
    least = re.search(r"give at least (\d+)", words)
    if least:
        assert not check(written((old, f"probe_bytes_per_day = {least[1]}"))).mistakes
        assert check(written((old, f"probe_bytes_per_day = {int(least[1]) - 1}"))).mistakes


def test_check_says_how_soon_a_dead_line_is_noticed(written, farlink):
    done = farlink("bundle", "check", written(("rank = 2", "noticed_s = 60\nprobe_bytes_per_day = 1000000")))
    assert done.returncode == 0, done.stderr
    assert "note: dish: a dead line is noticed within 60 s; probes every 20 s take 0.553 MB a day" in done.stderr
    assert "dish" in done.stdout
    assert "eth1" in done.stdout


BAD = st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6) | st.booleans() | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.sampled_from(sorted(KINDS["interface"].keys)), BAD, max_size=4))
def test_no_value_ends_in_a_traceback(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("fuzz") / "bundle.toml"
    line = {"name": "dish", "kind": "interface", "interface": "eth1", "probe": ["192.0.2.1"], **values}
    path.write_text(tomli_w.dumps({"name": "ship", "line": [line]}), encoding="utf-8")
    checked = check(path)
    assert (checked.bundle is None) == bool(checked.mistakes)


def test_the_guide_names_every_key():
    guide = (ROOT / "docs" / "guides" / "bundle-lines.md").read_text(encoding="utf-8")
    for key in KINDS["interface"].keys:
        assert f"`{key}`" in guide, key


def test_the_files_of_the_guide_are_right(tmp_path):
    guide = (ROOT / "docs" / "guides" / "bundle-lines.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"^```toml (\w+\.toml)\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
        assert not check(tmp_path / name).mistakes
    small = (tmp_path / "lines.toml").read_text().replace("route = true", "probe_bytes_per_day = 100000", 1)
    (tmp_path / "lines.toml").write_text(small)
    (one,) = check(tmp_path / "lines.toml").mistakes
    assert f"error: lines.toml, line {one.line}, column {one.column}: {one.message}\nhint: {one.remedy}\n" in guide
